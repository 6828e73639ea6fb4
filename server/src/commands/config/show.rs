use crate::failure::Failure;
use crate::print;
use crate::settings::{Setting, Settings, Source};
use crate::table::{Align, Table};

pub(super) fn show(settings: &Settings, json: bool) -> Result<(), Failure> {
    if json {
        return print::document(settings);
    }
    let mut table = Table::new(&[("setting", Align::Left), ("value", Align::Left), ("from", Align::Left)]);
    for Setting { name, value, source } in &settings.settings {
        let from = match (source, &settings.file) {
            (Source::File, Some(file)) => file.display().to_string(),
            (source, _) => source.to_string(),
        };
        table.row([name.clone(), value.clone().unwrap_or("(not set)".into()), from]);
    }
    print::text(table)
}
