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
            if name.is_empty() || name.contains(['/', ',']) || name.contains(char::is_whitespace) {
                return Err(Diagnostic::new(
                    key.span(),
                    "no name",
                    "names are one word, without `/` and `,`",
                ));
            }
            Ok((name, value))
        })
        .collect()
}
