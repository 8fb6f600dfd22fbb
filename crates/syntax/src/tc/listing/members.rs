//! An object of `tc -j … show`, as the words that tc prints of it for people.

use super::object::{FilterHead, ListedObject, NO_PARENT, NotListed, shown};
use super::{filters, options};
use crate::tc::command_line::Object;
use crate::tc::spelling::ListedValue;

/// Members that hold more than a word: an expression of conditions, and of a qdisc from outside its options.
const SENTENCES: [&str; 2] = ["ematch", "words"];

fn is_no_letter(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control()
}

/// The object that a listing in JSON has in a line. `dev` and `parent` are those of objects that name none.
///
/// # Errors
/// It is none of tc's.
pub fn object_of_members(
    members: Vec<(String, ListedValue)>,
    (dev, parent): (Option<&str>, Option<&str>),
    (file, line): (usize, usize),
) -> Result<ListedObject, NotListed> {
    let wrong = |why: String| NotListed { file, line, why };
    members.iter().try_for_each(|(key, value)| must_be_words(key, value)).map_err(wrong)?;
    let text = |key: &str| ListedValue::get(&members, key).and_then(ListedValue::word);
    let kind = text("kind").or(text("class")).ok_or_else(|| wrong("is an object without a kind".into()))?;
    let block = text("block");
    let dev = match (text("dev").or(dev), block) {
        (Some(dev), _) => dev.to_owned(),
        (None, Some(_)) => String::new(),
        (None, None) => {
            return Err(wrong(
                "does not say of which device; add --dev DEV (check, run, try), or save what tc prints without \
                 -j below a line `# dev DEV`"
                    .to_owned(),
            ));
        }
    };
    let hook =
        ["root", "ingress", "egress"].into_iter().find(|key| ListedValue::get(&members, key).is_some());
    let parent = match block {
        Some(number) => format!("block {number}"),
        None => text("parent").or(hook).or(parent).unwrap_or_default().to_owned(),
    };
    let is_filter =
        ListedValue::get(&members, "protocol").is_some() || ListedValue::get(&members, "pref").is_some();
    let of_filter =
        |key: &str| ListedValue::get(ListedValue::get(&members, "options")?.members(), key)?.word();
    let handle = if is_filter { of_filter("fh").or_else(|| of_filter("handle")) } else { text("handle") };
    let is_class = || {
        let minor = handle.and_then(|handle| handle.split(':').nth(1)).is_some_and(|minor| !minor.is_empty());
        minor || ListedValue::get(&members, "class").is_some()
    };
    let what = match is_filter {
        true => Object::Filter,
        false if is_class() => Object::Class,
        false => Object::Qdisc,
    };
    if !is_filter && handle.is_none() {
        return Err(wrong(format!("is an object without a handle ({})", shown(kind))));
    }
    let part = |key: &str, default: &str| text(key).unwrap_or(default).to_owned();
    let head = is_filter.then(|| FilterHead {
        protocol: part("protocol", "all"),
        pref: part("pref", "0"),
        chain: part("chain", "0"),
    });
    if is_filter && parent.is_empty() {
        return Err(wrong(NO_PARENT.to_owned()));
    }
    let parent = if parent.is_empty() { "root".to_owned() } else { parent };
    let mut object = ListedObject {
        file,
        line,
        what,
        kind: kind.to_owned(),
        dev,
        handle: handle.unwrap_or_default().to_owned(),
        parent,
        head,
        words: Vec::new(),
        stab: options::stab_of(&members),
        members: None,
    };
    object.words = match what {
        Object::Filter => filters::words_of(&object.kind, &members).map_err(|why| object.wrong(why))?,
        Object::Qdisc | Object::Class => options::words_of(&object, &members),
    };
    object.members = Some(members);
    Ok(object)
}

/// Refuses strings that would be several words of a command, or none.
fn must_be_words(key: &str, value: &ListedValue) -> Result<(), String> {
    match value {
        ListedValue::Text(_) if SENTENCES.contains(&key) => Ok(()),
        ListedValue::Text(text) if !text.contains(is_no_letter) => Ok(()),
        ListedValue::Text(text) => Err(format!(
            "`{}` is \"{}\", and no word of tc has blanks or line breaks",
            shown(key),
            shown(text)
        )),
        ListedValue::List(items) => items.iter().try_for_each(|item| must_be_words(key, item)),
        ListedValue::Object(members) => members.iter().try_for_each(|(key, value)| must_be_words(key, value)),
        _ => Ok(()),
    }
}
