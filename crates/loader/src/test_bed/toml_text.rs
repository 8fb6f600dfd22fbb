//! Keys and texts as TOML has them.

/// A key of TOML.
pub(super) fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
    if bare { name.to_owned() } else { quoted(name) }
}

/// A text of TOML.
pub(super) fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}
