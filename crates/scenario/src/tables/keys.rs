//! The keys of a table: each is read by name, and one that was never read is an error.

use super::diagnostic::Diagnostic;
use std::ops::Range;
use tidegate_syntax::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
pub type TableValue<'t> = &'t Spanned<DeValue<'t>>;

/// A table being read.
pub struct Keys<'t> {
    table: &'t DeTable<'t>,
    at: Range<usize>,
    known_keys: Vec<&'static str>,
}

impl<'t> Keys<'t> {
    /// The keys of a table at this place.
    pub fn new(table: &'t DeTable<'t>, at: Range<usize>) -> Keys<'t> {
        Keys { table, at, known_keys: Vec::new() }
    }

    /// Of a value that is a table.
    ///
    /// # Errors
    /// When it is none.
    pub fn of(value: TableValue<'t>) -> Result<Keys<'t>, Diagnostic> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(Keys::new(table, value.span())),
            _ => Err(Diagnostic::new(
                value.span(),
                "expected a table",
                "write `{ key = value, … }`, or a `[section]`",
            )),
        }
    }

    /// The place of the table.
    pub fn place(&self) -> Range<usize> {
        self.at.clone()
    }

    /// The value of a key, if it is there.
    pub fn get(&mut self, key: &'static str) -> Option<TableValue<'t>> {
        self.known_keys.push(key);
        self.table.get(key)
    }

    /// The value of a key, read, if it is there.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        how: impl FnOnce(TableValue<'t>) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.get(key).map(how).transpose()
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn need(&mut self, key: &'static str, remedy: &str) -> Result<TableValue<'t>, Diagnostic> {
        let at = self.at.start..self.at.start + 1;
        self.get(key).ok_or_else(|| Diagnostic::new(at, format!("`{key}` is missing"), remedy))
    }

    /// A key that looks like one of these and is not: a slip of the pen, where one of them must be there.
    pub fn slip(&self, known: &[&'static str]) -> Option<Diagnostic> {
        in_order(self.table).into_iter().find_map(|(key, _)| {
            let near = nearest(key.get_ref(), known.iter().copied())?;
            Some(Diagnostic::new(key.span(), "unknown key", format!("did you mean `{near}`?")))
        })
    }

    /// Fails if there are other keys.
    ///
    /// # Errors
    /// The first unknown key, and the nearest known one.
    pub fn finish(mut self) -> Result<(), Diagnostic> {
        self.known_keys.sort_unstable();
        self.known_keys.dedup();
        for (key, _) in in_order(self.table) {
            let name: &str = key.get_ref();
            if !self.known_keys.contains(&name) {
                let remedy = match nearest(name, self.known_keys.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`? There are {}", self.known_keys.join(", ")),
                    None => format!("there are {}", self.known_keys.join(", ")),
                };
                return Err(Diagnostic::new(key.span(), "unknown key", remedy));
            }
        }
        Ok(())
    }
}

/// The entries of a table in the order of the file.
pub fn in_order<'t>(table: &'t DeTable<'t>) -> Vec<(&'t Spanned<toml::de::DeString<'t>>, TableValue<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
