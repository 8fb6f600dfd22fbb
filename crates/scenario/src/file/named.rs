//! Tables of tables.

use crate::tables::{Diagnostic, TableValue, in_order};

/// The entries of a table of tables, in the order of the file.
pub(super) fn named<'t>(value: Option<TableValue<'t>>) -> Result<Vec<(&'t str, TableValue<'t>)>, Diagnostic> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let toml::de::DeValue::Table(table) = value.get_ref() else {
        return Err(Diagnostic::new(
            value.span(),
            "expected a table",
            "write `[policies.NAME]`, `[loads.NAME]`",
        ));
    };
    let entries = in_order(table).into_iter();
    entries
        .map(|(key, value)| {
            let name: &str = key.get_ref();
            let is_no_word = |letter: char| letter.is_whitespace() || letter.is_control();
            if name.is_empty() || name.contains(['/', ',']) || name.contains(is_no_word) {
                let how = "names are one word, without `/`, `,` and control characters";
                return Err(Diagnostic::new(key.span(), "no name", how));
            }
            Ok((name, value))
        })
        .collect()
}
