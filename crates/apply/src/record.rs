//! How things are written down: files that are whole after a crash, what the kernel reported, and messages of
//! netlink, as JSON.

use serde_json::{Value, json};
use std::io;
use std::path::Path;
use tidegate_daemon::{Result, bail};
use tidegate_netlink::RawDump;
use tidegate_sys::output_file;

/// A message of netlink: its type, its flags, and what follows its head.
pub(crate) type Raw = (u16, u16, Vec<u8>);

/// Writes a file so that after a crash at any moment either the old or the new content is there, whole. Only
/// one process at a time may do so.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    output_file::remove_unfinished(path);
    output_file::write(path, text.as_bytes())
}

/// The texts of a list.
pub fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A document that tidegate keeps, read; members that had other names before 0.2.0 have their present ones.
///
/// # Errors
/// It is no JSON.
pub(crate) fn document(text: &str) -> serde_json::Result<Value> {
    let mut document = serde_json::from_str(text)?;
    rename(&mut document);
    Ok(document)
}

fn rename(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(rename),
        Value::Object(members) => {
            for (old, new) in [("door", "packet_io"), ("told", "dump")] {
                if let Some(value) = members.remove(old) {
                    members.insert(new.to_owned(), value);
                }
            }
            members.values_mut().for_each(rename);
        }
        _ => {}
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// What a kernel reported of a device, kept.
pub(crate) fn kept(dump: &RawDump) -> Value {
    let list = |all: &[Vec<u8>]| all.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>();
    json!({
        "number": dump.number,
        "qdiscs": list(&dump.qdiscs),
        "classes": list(&dump.classes),
        "filters": list(&dump.filters),
    })
}

/// The messages about a device, from a state's JSON.
///
/// # Errors
/// It was not kept by us.
pub(crate) fn dump_from_json(kept: &Value) -> Result<RawDump> {
    let list = |name: &str| -> Option<Vec<Vec<u8>>> {
        kept[name].as_array()?.iter().map(|text| bytes_of_hex(text.as_str()?)).collect()
    };
    let number = kept["number"].as_u64().and_then(|number| u32::try_from(number).ok());
    match (number, list("qdiscs"), list("classes"), list("filters")) {
        (Some(number), Some(qdiscs), Some(classes), Some(filters)) => {
            Ok(RawDump { number, qdiscs, classes, filters })
        }
        _ => bail!(State, "the previous configuration was not saved as it should be"),
    }
}

/// Messages, kept.
pub(crate) fn kept_raw(all: &[Raw]) -> Value {
    Value::from(all.iter().map(|(kind, flags, body)| json!([kind, flags, hex(body)])).collect::<Vec<_>>())
}

/// Stored messages, from a state's JSON; entries that are not ours are left out.
pub(crate) fn raw(kept: &Value) -> Vec<Raw> {
    let one = |one: &Value| {
        let number = |at: usize| one[at].as_u64().and_then(|number| u16::try_from(number).ok());
        Some((number(0)?, number(1)?, bytes_of_hex(one[2].as_str()?)?))
    };
    kept.as_array().into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_a_round_trip() {
        let before = RawDump {
            number: 7,
            qdiscs: vec![vec![0, 255, 16]],
            classes: vec![],
            filters: vec![vec![1], vec![]],
        };
        assert_eq!(dump_from_json(&kept(&before)).expect("it was kept"), before);
        assert!(dump_from_json(&json!({"number": 7, "qdiscs": ["0"]})).is_err());
        let messages = vec![(1, 2, vec![3, 4]), (5, 6, vec![])];
        assert_eq!(raw(&kept_raw(&messages)), messages);
    }
}
