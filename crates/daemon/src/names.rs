//! What a policy calls its classes, as documents hold it: `{"eth0": {"1:10": "calls"}}`.

use serde_json::{Map, Value, json};
use tidegate_loader::ClassNames;
use tidegate_syntax::units::parse_classid;

/// The names as JSON, by device and class.
pub fn names_to_json(names: &ClassNames) -> Value {
    let mut all = Map::new();
    for ((dev, class), name) in names {
        all.entry(dev.clone()).or_insert_with(|| json!({}))[class.to_string()] = json!(name);
    }
    Value::Object(all)
}

/// The names in such a document; what is none is left out.
pub fn names_from_json(document: &Value) -> ClassNames {
    let mut names = ClassNames::new();
    for (dev, classes) in document.as_object().into_iter().flatten() {
        for (class, name) in classes.as_object().into_iter().flatten() {
            if let (Some(class), Some(name)) = (parse_classid(class), name.as_str()) {
                names.insert((dev.clone(), class), name.to_owned());
            }
        }
    }
    names
}

/// The names of a device's classes, by class.
pub fn names_on(names: &ClassNames, dev: &str) -> Value {
    names_to_json(names).get(dev).cloned().unwrap_or_else(|| json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::Handle;

    #[test]
    fn names_survive_a_document() {
        let class = |dev: &str, minor, name: &str| ((dev.to_owned(), Handle::new(1, minor)), name.to_owned());
        let names: ClassNames =
            [class("eth0", 0x10, "calls"), class("eth0", 0xf0, "a \"b\"\u{1b}"), class("lan", 1, "x")].into();
        assert_eq!(names_from_json(&names_to_json(&names)), names);
        assert_eq!(names_on(&names, "lan"), json!({"1:1": "x"}));
        assert_eq!(names_on(&names, "wan"), json!({}));
        for odd in [json!(null), json!({"eth0": 1}), json!({"eth0": {"x:y": "z", "1:1": 7}})] {
            assert_eq!(names_from_json(&odd), ClassNames::new(), "{odd}");
        }
    }
}
