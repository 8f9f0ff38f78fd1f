//! What was measured, for people and for programs.

use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};

/// What one part found.
pub(crate) struct Section {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) tables: Vec<Table>,
    pub(crate) bounds: Vec<Bound>,
    /// The figures, for programs.
    pub(crate) figures: Value,
}

/// A table with one line of heads; the first column is text.
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// What has to be known to read it.
    pub(crate) notes: Vec<String>,
}

/// Something that this product promises.
pub(crate) struct Bound {
    pub(crate) text: String,
    pub(crate) kept: bool,
}

impl Section {
    /// Whether it missed no bound.
    pub(crate) fn is_kept(&self) -> bool {
        self.bounds.iter().all(|bound| bound.kept)
    }

    /// Prints it.
    pub(crate) fn print(&self) {
        for table in &self.tables {
            table.print();
        }
        for bound in &self.bounds {
            let word = if bound.kept { "kept" } else { "MISSED" };
            println!("{word:>7}  {}", bound.text);
        }
    }
}

impl Table {
    fn print(&self) {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            longest.max(self.heads.get(column).map_or(0, |head| head.len()))
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        println!("\n{}", self.title);
        let heads: Vec<String> = self.heads.iter().map(ToString::to_string).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            println!("  {}", cells.join("  ").trim_end());
        }
        for note in &self.notes {
            println!("  {note}");
        }
    }
}

/// Writes the figures of all parts and whether each bound was kept.
pub(crate) fn write(path: &Path, machine: &Value, sections: &[Section]) -> anyhow::Result<()> {
    let mut parts = Map::new();
    for section in sections {
        let bounds: Vec<Value> = section
            .bounds
            .iter()
            .map(|bound| json!({ "text": bound.text, "kept": bound.kept }))
            .collect();
        let part = json!({ "figures": section.figures, "bounds": bounds });
        parts.insert(section.name.to_owned(), part);
    }
    let all = json!({ "machine": machine, "parts": parts });
    let text = serde_json::to_string_pretty(&all)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// A ratio with its spread over the rounds.
pub(crate) fn ratio(ratios: &[f64]) -> String {
    let (low, high) = crate::crowd::extremes(ratios);
    format!(
        "{:.2} ({low:.2}–{high:.2})",
        crate::crowd::median(ratios.to_vec())
    )
}
