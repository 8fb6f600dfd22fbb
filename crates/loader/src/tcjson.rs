//! What `tc -j … show` writes, as the lines that tc prints for people: those are read back.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Kinds whose options in JSON come to the same as in tc's words.
const WHOLE: [&str; 20] = [
    "bfifo",
    "blackhole",
    "clsact",
    "codel",
    "drr",
    "ets",
    "fq_codel",
    "hfsc",
    "htb",
    "ingress",
    "mq",
    "multiq",
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "pie",
    "prio",
    "qfq",
    "sfq",
    "tbf",
];
/// What to do about a listing in JSON that cannot be read.
const TEXT_INSTEAD: &str = "save what tc prints without -j instead, or give the commands that made it";

/// The listing for a file of tc's JSON. `dev` is the device of entries that name none.
///
/// # Errors
/// What cannot be read.
pub(super) fn listing(text: &str, dev: Option<&str>) -> Result<String, String> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Repeated>();
    if let Some(key) = documents.flatten().find_map(|one| one.0) {
        return Err(format!(
            "has `{key}` twice in one object, as tc writes filters with several matches, and JSON keeps the last \
             alone; {TEXT_INSTEAD}"
        ));
    }
    let mut out = String::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let document = document.map_err(|error| format!("is not JSON: {error}"))?;
        for (at, object) in objects(&document).into_iter().enumerate() {
            let words = line(object, dev).map_err(|why| format!("{why} ({})", entry(at, object)))?;
            out.push_str(&words);
            out.push('\n');
        }
    }
    Ok(out)
}

/// The objects of a list of tc's, or of the document of `tidegate run --print json`.
fn objects(document: &Value) -> Vec<&Map<String, Value>> {
    let lists: Vec<&Value> = match document {
        Value::Object(whole) if whole.contains_key("kind") => return vec![whole],
        Value::Object(whole) => {
            ["qdiscs", "classes", "filters"].iter().filter_map(|key| whole.get(*key)).collect()
        }
        list => vec![list],
    };
    lists.into_iter().filter_map(Value::as_array).flatten().filter_map(Value::as_object).collect()
}

/// Which of a document's objects it is, for people.
fn entry(at: usize, object: &Map<String, Value>) -> String {
    let named = ["kind", "class", "handle", "parent"]
        .iter()
        .filter_map(|key| Some((key, object.get(*key)?.as_str()?)));
    let named: Vec<String> = named.map(|(key, value)| format!("{key} {value}")).collect();
    format!("entry {} of the list{}{}", at + 1, if named.is_empty() { "" } else { ": " }, named.join(" "))
}

fn line(object: &Map<String, Value>, dev: Option<&str>) -> Result<String, String> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let dev = text("dev").or(dev).ok_or(
        "does not say of which device; add --dev DEV (check, run, try), or save what tc prints without -j below \
         a line `# dev DEV`",
    )?;
    let options = object.get("options").and_then(Value::as_object);
    if object.contains_key("protocol") {
        return filter(object, options, dev);
    }
    let kind = text("kind").or_else(|| text("class")).ok_or("has an object without a kind")?;
    let handle = text("handle").ok_or("has an object without a handle")?;
    let is_class =
        object.contains_key("class") || handle.split(':').nth(1).is_some_and(|minor| !minor.is_empty());
    let place = text("parent").map_or_else(|| "root".to_owned(), |parent| format!("parent {parent}"));
    let mut words = if is_class {
        format!("class {kind} {handle} dev {dev} {place}")
    } else {
        format!("qdisc {kind} {handle} dev {dev} {place}")
    };
    let says = options.is_some_and(|options| !options.is_empty());
    if says && !WHOLE.contains(&kind) {
        return Err(format!("has options of {kind}, which are not read from tc's JSON; {TEXT_INSTEAD}"));
    }
    let values = options.unwrap_or(object);
    let known = |key: &str| {
        !matches!(key, "kind" | "class" | "handle" | "dev" | "parent" | "root" | "leaf" | "stats" | "level")
    };
    for (key, value) in values.iter().filter(|(key, _)| known(key)) {
        option(&mut words, key, value);
    }
    Ok(words)
}

/// The first key that an object anywhere in a document has twice.
struct Repeated(Option<String>);

impl<'de> Deserialize<'de> for Repeated {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Repeated, D::Error> {
        source.deserialize_any(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Repeated;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Repeated, A::Error> {
        let (mut seen, mut twice) = (BTreeSet::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            let inside = map.next_value::<Repeated>()?.0;
            twice = twice.or(inside).or_else(|| seen.contains(&key).then(|| key.clone()));
            seen.insert(key);
        }
        Ok(Repeated(twice))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Repeated, A::Error> {
        let mut twice = None;
        while let Some(one) = list.next_element::<Repeated>()? {
            twice = twice.or(one.0);
        }
        Ok(Repeated(twice))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_unit<E>(self) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }
}

/// Keys that hold a rate in bytes per second, a time in microseconds; the rest are numbers as they are.
const RATES: [&str; 4] = ["rate", "ceil", "peakrate", "bandwidth"];
const TIMES: [&str; 6] = ["target", "interval", "tupdate", "ce_threshold", "lat", "latency"];
/// Counters among the options.
const COUNTED: [&str; 12] = [
    "refcnt",
    "direct_packets_stat",
    "ver",
    "Scell_log",
    "ewma",
    "prob_mark",
    "prob_mark_head",
    "prob_drop",
    "forced_mark",
    "forced_mark_head",
    "forced_drop",
    "multiqueue",
];

fn option(words: &mut String, key: &str, value: &Value) {
    if COUNTED.contains(&key) {
        return;
    }
    let key_said = |words: &mut String, value: String| {
        words.push_str(&format!(" {key} {value}"));
    };
    match value {
        Value::Bool(true) => words.push_str(&format!(" {key}")),
        Value::Bool(false) | Value::Null | Value::Object(_) => {}
        Value::Number(number) if RATES.contains(&key) => {
            key_said(words, format!("{}bit", number.as_u64().unwrap_or(0) * 8))
        }
        Value::Number(number) if TIMES.contains(&key) => key_said(words, format!("{number}us")),
        Value::Number(number) if matches!(key, "rehash" | "db") => {
            key_said(words, (number.as_u64().unwrap_or(0) / 1000).to_string());
        }
        Value::Array(list) => {
            let all: Vec<String> =
                list.iter().map(|item| item.to_string().trim_matches('"').to_owned()).collect();
            key_said(words, all.join(if key == "keys" { "," } else { " " }));
        }
        other => key_said(words, other.to_string().trim_matches('"').to_owned()),
    }
}

fn filter(
    object: &Map<String, Value>,
    options: Option<&Map<String, Value>>,
    dev: &str,
) -> Result<String, String> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = text("kind").ok_or("has a filter without a kind")?;
    let parent = text("parent").map_or(String::new(), |parent| format!("parent {parent} "));
    let pref = object.get("pref").map_or(String::new(), Value::to_string);
    let mut words = format!(
        "filter {parent}dev {dev} protocol {} pref {pref} {kind} chain 0",
        text("protocol").unwrap_or("all")
    );
    let Some(options) = options else { return Ok(words) };
    if options.contains_key("actions") {
        return Err("holds filters with actions, which tc's JSON does not list completely; save what `tc \
        filter show` prints instead"
            .into());
    }
    if kind == "u32" {
        return u32_filter(words, options);
    }
    for (key, value) in options {
        match key.as_str() {
            // `"mode": "hash"` is the word itself.
            "mode" => words.push_str(&format!(" {}", value.as_str().unwrap_or("hash"))),
            _ => option(&mut words, key, value),
        }
    }
    Ok(words)
}

fn u32_filter(mut words: String, options: &Map<String, Value>) -> Result<String, String> {
    if options.contains_key("ht_divisor") {
        return Ok(words + " fh 800: ht divisor 1");
    }
    if let Some(flowid) = options.get("flowid").and_then(Value::as_str) {
        words.push_str(&format!(" flowid {flowid}"));
    }
    let keys: Vec<&Value> = match options.get("match") {
        Some(Value::Array(keys)) => keys.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    for key in keys {
        let part = |name: &str| key.get(name).map(|value| value.to_string().trim_matches('"').to_owned());
        let (Some(value), Some(mask)) = (part("value"), part("mask")) else {
            return Err("holds u32 filters whose matches this version of tc leaves out of its JSON; save \
            what `tc filter show` prints instead"
                .into());
        };
        let at = part("off").unwrap_or_else(|| "0".into());
        let next = part("offmask").is_some_and(|mask| !mask.is_empty() && mask != "0");
        words.push_str(&format!("\n  match {value}/{mask} at {}{at}", if next { "nexthdr+" } else { "" }));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_does_not_have_whole_is_refused() {
        let filter = r#"[{"protocol":"ip","pref":1,"kind":"u32","chain":0,"parent":"1:","options":{"flowid":"1:10",
            "match":{"value":"50","mask":"ffff","offmask":"nexthdr+","off":0},
            "match":{"value":"60000","mask":"ff0000","offmask":"","off":8}}}]"#;
        let cake = r#"[{"kind":"cake","handle":"1:","dev":"eth0","root":true,"options":{"flowmode":"triple-isolate"}}]"#;
        let fq = r#"[{"kind":"fq","handle":"1:","dev":"eth0","root":true,"options":{"maxrate":1250000}}]"#;
        for (text, why) in [(filter, "has `match` twice"), (cake, "options of cake"), (fq, "options of fq")] {
            let wrong = listing(text, Some("eth0")).expect_err("is refused");
            assert!(wrong.contains(why) && wrong.contains("without -j"), "{wrong}");
        }
        // The same key in two objects is none of these.
        let two = r#"[{"kind":"pfifo","handle":"1:","dev":"eth0","root":true,"options":{"limit":9}},
            {"kind":"pfifo","handle":"2:","dev":"eth1","root":true,"options":{"limit":8}}]"#;
        assert_eq!(
            listing(two, None).as_deref(),
            Ok("qdisc pfifo 1: dev eth0 root limit 9\nqdisc pfifo 2: dev eth1 root limit 8\n")
        );
        assert!(listing(&"[".repeat(100_000), None).is_err());
    }
}
