//! Aligned columns for people.

use std::io::{self, Write};

/// Rows under a heading; numbers stand to the right.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with one text per column of the heading.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let head: Vec<String> = self.head.iter().map(|cell| (*cell).to_owned()).collect();
        let all = || std::iter::once(&head).chain(&self.rows);
        let widths: Vec<usize> =
            (0..head.len()).map(|column| all().map(|row| width(row, column)).max().unwrap_or(0)).collect();
        let right: Vec<bool> = (0..head.len()).map(|column| self.is_numeric(column)).collect();
        for row in all() {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&right) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, behind) = if *right { (gap.as_str(), "") } else { ("", gap.as_str()) };
                line.push_str(before);
                line.push_str(cell);
                line.push_str(behind);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column)).peekable();
        cells.peek().is_some() && cells.all(|cell| cell.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

fn width(row: &[String], column: usize) -> usize {
    row.get(column).map_or(0, |cell| cell.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_with_numbers_to_the_right() {
        let mut table = Table::new(&["lane", "queued", "hold"]);
        table.row(vec!["booking_com:default/rates".into(), "7".into(), "-".into()]);
        table.row(vec!["agoda:default/rates".into(), "1200".into(), "paused".into()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        lane                       queued  hold
        booking_com:default/rates       7  -
        agoda:default/rates          1200  paused
        ");
    }
}
