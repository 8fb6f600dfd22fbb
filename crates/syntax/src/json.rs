//! JSON as tc writes it: keys in order, and its own way of laying out `-pretty`. Where tc 6.1 writes what is
//! none (`{default 10 }`), or one key twice, this is JSON all the same.

/// A value of JSON as tc writes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// A number, already in digits.
    Number(String),
    /// A string without characters that need an escape, or with.
    Text(String),
    /// true or false.
    Bool(bool),
    /// null: a word that is there.
    Null,
    /// An object.
    Object(Vec<(&'static str, Json)>),
    /// Numbers in a row.
    Numbers(Vec<u32>),
    /// Values of any kind in a row.
    List(Vec<Json>),
}

impl Json {
    pub(crate) fn number(value: impl std::fmt::Display) -> Json {
        Json::Number(value.to_string())
    }
    pub(crate) fn text(value: impl Into<String>) -> Json {
        Json::Text(value.into())
    }
}

/// A text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    quote(text, &mut out);
    out
}

/// A list of objects, with the end of line.
pub(crate) fn list(items: &[Json], pretty: bool) -> String {
    if items.is_empty() {
        return if pretty { "[ ]\n".into() } else { "[]\n".into() };
    }
    let mut out = String::from(if pretty { "[ " } else { "[" });
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, pretty.then_some(4), &mut out);
    }
    out.push_str(if pretty { " ]\n" } else { "]\n" });
    out
}

/// `indent`: the column of the closing brace; members are indented by four more.
fn write(value: &Json, indent: Option<usize>, out: &mut String) {
    match value {
        Json::Number(digits) => out.push_str(digits),
        Json::Text(text) => quote(text, out),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Null => out.push_str("null"),
        Json::Numbers(numbers) => {
            let row = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            out.push_str(&if indent.is_some() { format!("[ {row} ]") } else { format!("[{row}]") });
        }
        Json::List(items) => {
            out.push_str(if indent.is_some() { "[ " } else { "[" });
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, indent.map(|indent| indent + 4), out);
            }
            out.push_str(if indent.is_some() { " ]" } else { "]" });
        }
        Json::Object(all) => {
            out.push('{');
            members(all, indent, out);
            out.push('}');
        }
    }
}

fn members(all: &[(&'static str, Json)], indent: Option<usize>, out: &mut String) {
    for (index, (key, member)) in all.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match indent {
            Some(indent) => out.push_str(&format!("\n{:width$}\"{key}\": ", "", width = indent + 4)),
            None => out.push_str(&format!("\"{key}\":")),
        }
        write(member, indent.map(|indent| indent + 4), out);
    }
    if let (Some(indent), false) = (indent, all.is_empty()) {
        out.push_str(&format!("\n{:indent$}", ""));
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}
