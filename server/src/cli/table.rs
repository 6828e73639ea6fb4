use std::fmt;

use anstyle::Style;

const HEADING: Style = Style::new().bold();

/// Rows of text under headings, as wide as they need be.
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    headed: bool,
}

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    /// For numbers.
    Right,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new(), headed: true }
    }

    /// Adds a row; control characters are shown as escapes, so that a payload cannot move the cursor.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// Whether the headings are shown: not where the rows go on from those before.
    #[must_use]
    pub(crate) fn headed(mut self, headed: bool) -> Table {
        self.headed = headed;
        self
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(heading, _)| heading.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let cells = cells.zip(&self.columns).zip(widths).map(|((cell, (_, align)), width)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        let mut line = cells.collect::<Vec<_>>().join("  ");
        line.truncate(line.trim_end().len());
        line
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        if self.headed {
            let headings = self.line(self.columns.iter().map(|(heading, _)| *heading), &widths);
            writeln!(f, "{HEADING}{headings}{HEADING:#}")?;
        }
        for row in &self.rows {
            writeln!(f, "{}", self.line(row.iter().map(String::as_str), &widths))?;
        }
        Ok(())
    }
}

/// Text that stays where it is printed.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_be() {
        let mut table = Table::new(&[("queue", Align::Left), ("ready", Align::Right), ("", Align::Left)]);
        table.row(["é".into(), "5".into(), "paused".into()]);
        table.row(["a-long-name\x1b[2J".into(), "1234567".into(), String::new()]);
        let plain = anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(
            plain,
            "queue                   ready\né                           5  paused\na-long-name\\u{1b}[2J  1234567\n"
        );
    }
}
