//! Documents that commands print, held against the schemas that are published (docs/schemas).

use serde_json::Value;
use std::path::Path;

/// The document that a command printed, which fits the schema of its form.
pub(crate) fn document(text: &[u8]) -> Value {
    let document: Value = serde_json::from_slice(text)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)));
    must_fit(&document);
    document
}

/// Fails where a document is not as the schema of its form says.
pub(crate) fn must_fit(document: &Value) {
    let members = document.as_object().unwrap_or_else(|| panic!("no object: {document}"));
    let form = members.keys().find_map(|name| name.strip_prefix("tidegate_"));
    let form = form.unwrap_or_else(|| panic!("no member names the form: {document}"));
    must_fit_schema(form, document);
}

/// Fails where a document is not as the schema of this name says.
pub(crate) fn must_fit_schema(form: &str, document: &Value) {
    if let Some(misfit) = misfit_of(form, document) {
        panic!("{misfit}\n{document:#}");
    }
}

/// Where a document is not as the schema of this name says.
pub(crate) fn misfit_of(form: &str, document: &Value) -> Option<String> {
    let file = format!("../../docs/schemas/{form}.schema.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    misfit(&schema, &schema, document, form)
}

/// Where a value is not as a schema says, as far as the published schemas say something. Members that a
/// schema does not know are misfits, too: the schema is to be renewed.
fn misfit(whole: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return misfit(whole, whole.pointer(name.trim_start_matches('#'))?, value, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let all: Option<Vec<String>> = any.iter().map(|one| misfit(whole, one, value, at)).collect();
        return all.map(|all| all.join(", or "));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        return Some(format!("{at}: {value} is none of {}", schema["enum"]));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |name: &Value| name == kind || (name == "number" && kind == "integer");
    let allowed = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is),
        one => is(one),
    };
    if !allowed || (!schema["const"].is_null() && schema["const"] != *value) {
        return Some(format!("{at}: {kind} is not as {schema}").chars().take(300).collect());
    }
    match value {
        Value::Object(members) => object(whole, schema, members, at),
        Value::Array(items) => {
            if schema["maxItems"].as_u64().is_some_and(|most| items.len() as u64 != most) {
                return Some(format!("{at}: {} items", items.len()));
            }
            items.iter().enumerate().find_map(|(n, item)| {
                let of = schema["prefixItems"].get(n).or(schema.get("items"))?;
                misfit(whole, of, item, &format!("{at}[{n}]"))
            })
        }
        _ => None,
    }
}

fn object(
    whole: &Value,
    schema: &Value,
    members: &serde_json::Map<String, Value>,
    at: &str,
) -> Option<String> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !members.contains_key(*name)) {
        return Some(format!("{at}.{missing} is missing"));
    }
    members.iter().find_map(|(name, member)| {
        let at = format!("{at}.{name}");
        match schema["properties"].get(name).or(schema.get("additionalProperties")) {
            Some(of) => misfit(whole, of, member, &at),
            None => schema["properties"].is_object().then(|| format!("{at} is unknown")),
        }
    })
}
