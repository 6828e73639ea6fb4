use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An empty project of somebody who uses the package; it is removed when it is dropped.
pub(crate) struct Project(PathBuf);

impl Project {
    pub(crate) fn new() -> Project {
        let path = std::env::temp_dir().join(format!("delayline-npm-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Project(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("a file in a temporary directory");
    }

    /// Copies the files of a directory.
    pub(crate) fn copy(&self, from: &Path) {
        for file in fs::read_dir(from).expect("a directory") {
            let file = file.expect("a file of it").path();
            let name = file.file_name().expect("a name");
            fs::copy(&file, self.0.join(name)).expect("a copy in a temporary directory");
        }
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Whether there is such a program.
    pub(crate) fn has(program: &str) -> bool {
        let mut command = Command::new(program);
        let asked = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    }

    /// Runs a command that must succeed, and answers what it wrote.
    pub(crate) fn run(command: &mut Command) -> String {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let [out, err] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success(), "{command:?} failed:\n{out}{err}");
        out
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
