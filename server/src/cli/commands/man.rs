use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use serde_json::json;

use crate::cli::Cli;
use crate::cli::print;
use crate::failure::Failure;

/// Prints the main page of the manual, or writes the pages of all commands into a folder.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  delayline man > delayline.1
  delayline man --dir man1")]
pub struct Man {
    /// Write a page a command here; the folder is made if it is not there
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, json: bool) -> Result<(), Failure> {
        let Some(dir) = &self.dir else {
            let page = rendered(Cli::command())?;
            return if json { print::document(&json!({ "page": page })) } else { print::text(page) };
        };
        std::fs::create_dir_all(dir).map_err(|why| Failure::Unwritable { path: dir.clone(), why })?;
        let mut written = Vec::new();
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        write_all(command, dir, &mut written)?;
        if json {
            return print::document(&json!({ "pages": written }));
        }
        written.iter().try_for_each(print::line)
    }
}

fn write_all(command: Command, dir: &Path, written: &mut Vec<String>) -> Result<(), Failure> {
    for inner in command.get_subcommands() {
        write_all(inner.clone(), dir, written)?;
    }
    let page = Page::new(command);
    let path = dir.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    std::fs::write(&path, text).map_err(|why| Failure::Unwritable { path: path.clone(), why })?;
    written.push(path.display().to_string());
    Ok(())
}

fn rendered(command: Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    Page::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
