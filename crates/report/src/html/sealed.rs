//! A page's content security policy: it may show itself, with exactly the style and the script that this
//! program wrote.
//!
//! Both are named by their hash (CSP Level 3, section 2.3.1), so that markup which slips through the escaping
//! of foreign text can neither run nor restyle anything. Style attributes have no hash in the browsers there
//! are; those of our own charts become rules of the style sheet.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The beginning of a style attribute. Quotation marks of foreign text are written `&quot;`, so it is always
/// one of ours.
const ATTRIBUTE: &str = " style=\"";

/// The document around a page's content.
pub(crate) fn document(title: &str, styles: &[&str], script: &str, content: Markup) -> String {
    let (body, own) = hoisted(&content.0);
    let (style, script) = (format!("\n{}{own}", styles.concat()), format!("\n{script}"));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; \
        form-action 'none'",
        hash(&style),
        hash(&script)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (shown(title)) " – tidegate" }
                // Our own, as hashed above: escaped, neither would be what the policy allows.
                style { (PreEscaped(&style)) }
            }
            body {
                // Was markup already: only its style attributes and unseen letters were replaced.
                (PreEscaped(shown(&body)))
                script { (PreEscaped(&script)) }
            }
        }
    };
    page.0 + "\n"
}

/// Without characters that are invisible, or that reverse the text after them: a script's text is shown as it
/// is.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || tidegate_text::is_visible(c) { c } else { '\u{fffd}' }).collect()
}

/// The content with a number in place of each style attribute, and the rules for the numbers.
fn hoisted(body: &str) -> (String, String) {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut out, mut rules, mut rest) = (String::with_capacity(body.len()), String::new(), body);
    while let Some((before, after)) = rest.split_once(ATTRIBUTE) {
        let (declarations, after) = after.split_once('"').unwrap_or((after, ""));
        let next = numbers.len();
        let number = *numbers.entry(declarations).or_insert_with(|| {
            // Repeated, so that it outweighs the classes of the element, as an attribute does.
            let one = format!("[data-s=\"{next}\"]");
            let _ = writeln!(rules, "{one}{one}{one}{one}{{{declarations}}}");
            next
        });
        let _ = write!(out, "{before} data-s=\"{number}\"");
        rest = after;
    }
    out.push_str(rest);
    (out, rules)
}

/// The SHA-256 of a text, in base64 (RFC 4648, section 4).
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_as_policies_have_them() {
        // The example of CSP Level 3 in section 2.3.1's spirit: `alert('Hello, world.');`.
        assert_eq!(hash("alert('Hello, world.');"), "qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
    }

    #[test]
    fn style_attributes_become_rules() {
        let (body, rules) =
            hoisted("<i style=\"width:1%\"></i><b class=\"x\" style=\"width:2%\"/><u style=\"width:1%\">");
        assert_eq!(body, "<i data-s=\"0\"></i><b class=\"x\" data-s=\"1\"/><u data-s=\"0\">");
        assert_eq!(rules.lines().count(), 2);
        assert!(rules.ends_with("[data-s=\"1\"]{width:2%}\n"), "{rules}");
        assert_eq!(hoisted("none"), ("none".to_owned(), String::new()));
    }
}
