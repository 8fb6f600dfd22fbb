//! Writing: objects indented, lists of figures on one line.

use serde_json::Value;

/// A document's text: objects indented, lists of figures on one line, ended by a newline.
pub(crate) fn laid_out(document: &Value) -> String {
    let mut out = String::new();
    write(&mut out, document, 0);
    out.push('\n');
    out
}

/// Spaces per level.
const INDENT: usize = 2;

fn write(out: &mut String, value: &Value, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * INDENT));
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (n, (name, value)) in members.iter().enumerate() {
                out.push(if n == 0 { '{' } else { ',' });
                line(out, depth + 1);
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push_str(": ");
                write(out, value, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_string()) => {
            for (n, item) in items.iter().enumerate() {
                out.push(if n == 0 { '[' } else { ',' });
                line(out, depth + 1);
                write(out, item, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        flat => out.push_str(&flat.to_string()),
    }
}
