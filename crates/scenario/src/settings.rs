//! Values of a scenario set from outside: `home.rtt=50ms`, `values.target=1ms`, `traffic.0.count=3`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use tidegate_syntax::nearest;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// A value to be set, by its path in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Keys with points between them; in lists, the number of an element (from 0), or its `id`.
    pub path: String,
    /// As it would be written in the file, without quotes.
    pub value: String,
}

/// Why a value cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// The path that was given.
    pub path: String,
    /// Why, in words.
    pub reason: String,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl Error for BadSetting {}

impl FromStr for Setting {
    type Err = BadSetting;

    /// `PATH=VALUE`.
    fn from_str(text: &str) -> Result<Setting, BadSetting> {
        let (path, value) = text.split_once('=').unwrap_or((text, ""));
        if value.trim().is_empty() {
            let reason = "write PATH=VALUE, such as home.rtt=50ms".into();
            return Err(BadSetting { path: path.to_owned(), reason });
        }
        Ok(Setting { path: path.trim().to_owned(), value: value.trim().to_owned() })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

/// The text of a scenario with values set; everything else, comments too, stays as it is. A value becomes
/// of the type that stood there: where a text stood, `10` is a text.
///
/// # Errors
/// A path that leads nowhere in the file; its last key may be new, and so may a policy
/// (`policies.mine.gateway`). That a new key means anything, and that the value is one, is for
/// [`parse`](crate::parse) to say.
///
/// ```
/// use tidegate_scenario::settings::{Setting, set};
///
/// let text = "[home]\nup = '5mbit'  # measured\n";
/// let setting = |path: &str, value: &str| Setting { path: path.into(), value: value.into() };
/// let set = set(text, &[setting("home.up", "10mbit"), setting("repeats", "3")]).unwrap();
/// assert!(set.contains("up = \"10mbit\"  # measured") && set.contains("repeats = 3"));
/// ```
pub fn set(text: &str, settings: &[Setting]) -> Result<String, BadSetting> {
    if settings.is_empty() {
        return Ok(text.to_owned());
    }
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| BadSetting {
        path: settings[0].path.clone(),
        reason: format!("the file is no TOML: {}", error.message()),
    })?;
    for setting in settings {
        let is_known = |key: &str| TOP_KEYS.contains(&key) || text.contains(&format!("${{{key}}}"));
        no_slip(&document, &setting.path, is_known)
            .map_err(|reason| BadSetting { path: setting.path.clone(), reason })?;
        make_policy(document.as_table_mut(), &setting.path);
        set_one(document.as_table_mut(), setting)
            .map_err(|reason| BadSetting { path: setting.path.clone(), reason })?;
    }
    Ok(document.to_string())
}

/// What is set at this path, as it is written in the file, without quotes; `None`: nothing, or no value.
///
/// ```
/// use tidegate_scenario::settings::get;
///
/// assert_eq!(get("[home]\nup = '5mbit'", "home.up").as_deref(), Some("5mbit"));
/// ```
#[must_use]
pub fn get(text: &str, path: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let mut item = document.get_mut(first)?;
    for key in rest.split('.').filter(|key| !key.is_empty()) {
        item = within(item, key).ok()?;
    }
    match item.as_value()? {
        Value::String(text) => Some(text.value().clone()),
        Value::Array(_) | Value::InlineTable(_) => None,
        other => Some(other.to_string().trim().to_owned()),
    }
}

/// Keys of a scenario that may be set where its file does not have them.
const TOP_KEYS: [&str; 8] = ["about", "duration", "jitter", "repeats", "seed", "source", "step", "warm-up"];

/// Refuses the name of a value that `[values]` does not have and that no text uses.
fn no_slip(file: &DocumentMut, path: &str, is_known: impl Fn(&str) -> bool) -> Result<(), String> {
    let Some(values) = file.get("values").and_then(Item::as_table_like) else { return Ok(()) };
    let name = path.strip_prefix("values.").unwrap_or(path);
    let is_elsewhere = name == path && file.contains_key(name);
    if name.contains('.') || is_elsewhere || values.contains_key(name) || is_known(name) {
        return Ok(());
    }
    let known = names(values);
    let all: Vec<&str> = known.iter().map(String::as_str).collect();
    let near = match nearest(name, all.iter().copied().chain(TOP_KEYS)) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => ".".to_owned(),
    };
    Err(format!("the scenario has no value of this name{near} Its table [values] has {}", all.join(", ")))
}

/// The path of a named value, or the path itself: `target` is `values.target` where `[values]` has it.
#[must_use]
pub fn full_path(text: &str, path: &str) -> String {
    let document: Option<DocumentMut> = text.parse().ok();
    let values = document.as_ref().and_then(|document| document.get("values")?.as_table_like());
    match values {
        Some(values) if values.contains_key(path) => format!("values.{path}"),
        _ => path.to_owned(),
    }
}

/// The text with these values set, whose paths may be short ([`full_path`]).
///
/// # Errors
/// As for [`set`].
pub fn set_named(text: &str, settings: &[Setting]) -> Result<String, BadSetting> {
    let full = |setting: &Setting| Setting { path: full_path(text, &setting.path), ..setting.clone() };
    set(text, &settings.iter().map(full).collect::<Vec<_>>())
}

/// Makes the table of a policy that the file does not have.
fn make_policy(file: &mut Table, path: &str) {
    let name = path.strip_prefix("policies.").and_then(|rest| rest.split_once('.')).map(|(name, _)| name);
    let Some(name) = name.filter(|name| !name.is_empty()) else { return };
    let mut policies = Table::new();
    policies.set_implicit(true);
    let policies = file.entry("policies").or_insert(Item::Table(policies));
    if let Some(policies) = policies.as_table_like_mut() {
        policies.entry(name).or_insert(Item::Table(Table::new()));
    }
}

fn set_one(table: &mut dyn TableLike, setting: &Setting) -> Result<(), String> {
    let keys: Vec<&str> = setting.path.split('.').collect();
    let Some((last, above)) = keys.split_last().filter(|_| keys.iter().all(|key| !key.is_empty())) else {
        return Err("a path is keys with points between them: home.rtt".into());
    };
    match above.split_first() {
        None => put(table, last, &setting.value),
        Some((first, rest)) => {
            let known = names(table);
            let mut at = table.get_mut(first).ok_or_else(|| unknown(first, &known))?;
            for key in rest {
                at = within(at, key)?;
            }
            if let Some(table) = at.as_table_like_mut() {
                return put(table, last, &setting.value);
            }
            let item = within(at, last)?;
            replace(item, &setting.value)
        }
    }
}

/// What a key, a number or an `id` leads to.
fn within<'i>(item: &'i mut Item, key: &str) -> Result<&'i mut Item, String> {
    match item {
        Item::ArrayOfTables(_) | Item::Value(Value::Array(_)) => {
            let at = element(item, key)?;
            item.get_mut(at).ok_or_else(|| format!("the list has no element {key}"))
        }
        _ => {
            let table = item.as_table_like_mut().ok_or_else(|| format!("nothing is below `{key}`"))?;
            let known = names(table);
            table.get_mut(key).ok_or_else(|| unknown(key, &known))
        }
    }
}

/// The number of an element of a list.
fn element(item: &Item, key: &str) -> Result<usize, String> {
    let id = |table: &dyn TableLike| table.get("id").and_then(Item::as_str).map(str::to_owned);
    let ids: Vec<Option<String>> = match item {
        Item::ArrayOfTables(tables) => tables.iter().map(|table| id(table)).collect(),
        Item::Value(Value::Array(values)) => {
            values.iter().map(|value| value.as_inline_table().and_then(|table| id(table))).collect()
        }
        _ => Vec::new(),
    };
    let by_number = key.parse().ok().filter(|at| *at < ids.len());
    by_number.or_else(|| ids.iter().position(|id| id.as_deref() == Some(key))).ok_or_else(|| {
        let known: Vec<&str> = ids.iter().flatten().map(String::as_str).collect();
        let named = if known.is_empty() { String::new() } else { format!(", or {}", known.join(", ")) };
        format!("no element `{key}` is in the list: there are 0 to {}{named}", ids.len().saturating_sub(1))
    })
}

fn put(table: &mut dyn TableLike, key: &str, value: &str) -> Result<(), String> {
    match table.get_mut(key) {
        Some(item) => replace(item, value),
        None => {
            let literal: Option<Value> = value.parse().ok().filter(is_plain);
            table.insert(key, Item::Value(literal.unwrap_or_else(|| Value::from(value))));
            Ok(())
        }
    }
}

/// A number or a truth value.
fn is_plain(value: &Value) -> bool {
    matches!(value, Value::Integer(_) | Value::Float(_) | Value::Boolean(_))
}

fn replace(item: &mut Item, value: &str) -> Result<(), String> {
    let old = item.as_value().ok_or("this is a table, no value; name a key in it")?;
    let mut new = match old {
        Value::Array(_) | Value::InlineTable(_) => {
            return Err("this is a list or a table, no value; name an element of it".into());
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            value.parse().ok().filter(is_plain).unwrap_or_else(|| Value::from(value))
        }
        _ => Value::from(value),
    };
    *new.decor_mut() = old.decor().clone();
    *item = Item::Value(new);
    Ok(())
}

fn names(table: &dyn TableLike) -> Vec<String> {
    table.iter().map(|(name, _)| name.to_owned()).collect()
}

fn unknown(key: &str, known: &[String]) -> String {
    let all: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(key, all.iter().copied()) {
        Some(near) => format!("no `{key}` is there; did you mean `{near}`?"),
        None => format!("no `{key}` is there: {}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
title = 'x' # kept
[home]
up = '5mbit'
up-line = { loss = '1%' }
[values]
target = '5ms'
[[traffic]]
ping = 'a -> server'
id = 'fast'
[loads.two]
traffic = [{ tcp = 'a -> server', count = 2 }, { tcp = 'b -> server', id = 'other' }]
";

    fn of(path: &str, value: &str) -> String {
        let setting = Setting { path: full_path(TEXT, path), value: value.into() };
        set(TEXT, &[setting]).unwrap_or_else(|error| format!("! {error}"))
    }

    #[test]
    fn a_path_leads_through_tables_and_lists() {
        let differs = |path: &str, value: &str| {
            let now = of(path, value);
            let new: Vec<String> =
                now.lines().filter(|line| !TEXT.lines().any(|was| was == *line)).map(str::to_owned).collect();
            new.join("|")
        };
        assert_eq!(differs("home.up", "10"), "up = \"10\"");
        assert_eq!(differs("title", "y"), "title = \"y\" # kept");
        assert_eq!(differs("home.rtt", "50ms"), "rtt = \"50ms\"");
        assert_eq!(differs("home.up-line.loss", "2%"), "up-line = { loss = \"2%\" }");
        assert_eq!(differs("target", "9ms"), "target = \"9ms\"");
        assert_eq!(differs("traffic.fast.every", "1s"), "every = \"1s\"");
        assert_eq!(differs("traffic.0.id", "slow"), "id = \"slow\"");
        assert!(differs("loads.two.traffic.0.count", "3").contains("count = 3 }"));
        assert!(differs("loads.two.traffic.other.count", "3").contains("count = 3"));
        assert_eq!(differs("repeats", "3"), "repeats = 3");
    }

    #[test]
    fn a_policy_may_be_new() {
        let now = of("policies.mine.gateway", "tc qdisc add dev eth0 root codel");
        assert!(
            now.ends_with("\n[policies.mine]\ngateway = \"tc qdisc add dev eth0 root codel\"\n"),
            "{now}"
        );
        assert_eq!(
            "policies.mine.gateway = tc qdisc".parse::<Setting>().map(|setting| setting.to_string()),
            Ok("policies.mine.gateway=tc qdisc".to_owned())
        );
        assert!("home.rtt=".parse::<Setting>().is_err() && "home.rtt".parse::<Setting>().is_err());
    }

    #[test]
    fn what_leads_nowhere_is_said() {
        assert_eq!(of("hme.up", "1"), "! hme.up: no `hme` is there; did you mean `home`?");
        assert_eq!(of("home", "1"), "! home: this is a table, no value; name a key in it");
        assert!(
            of("traffic.4.every", "1s").contains("no element `4` is in the list: there are 0 to 0, or fast")
        );
        assert!(of("loads.two.traffic", "1").contains("this is a list or a table"));
        assert!(of("home..up", "1").contains("a path is keys"));
        assert_eq!(
            of("tagret", "1ms"),
            "! tagret: the scenario has no value of this name; did you mean `target`? Its table [values] has target"
        );
        assert!(of("values.tagret", "1ms").contains("did you mean `target`?"));
        assert!(of("repaets", "3").contains("did you mean `repeats`?"));
        assert_eq!(of("title.x", "1"), "! title.x: nothing is below `x`");
    }
}
