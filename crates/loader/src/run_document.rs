//! The machine as one JSON document.
//!
//! qdiscs and filters are tc's own objects with `dev` added; classes, which tc 6.1 does not print as JSON,
//! have the shape that later versions gave them. Where tc's JSON is none (fw, flow) or repeats a key (u32's
//! `match`), it is fixed: the words become `options.text`, the repeated key a list.

use crate::runs::ScriptRuns;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};
use tidegate_capture::{Exit, Recorded, ScriptRun};
use tidegate_gateway::DeviceId;
use tidegate_packet::{Handle, Pool, Seeded};
use tidegate_policy::ClassParams;
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump, Xstats};
use tidegate_shims::Machine;
use tidegate_shims::{Answer, Call};
use tidegate_syntax::ip::{IpFlags, link_json};
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat};

/// The form of the document: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;

impl ScriptRuns {
    /// The machine with every call as a JSON document (`tidegate run --json`), with the end of line.
    pub fn to_json(&mut self) -> String {
        let script = self.script.display().to_string();
        let runs: Vec<Value> =
            self.turns.iter().zip(&self.outcomes).map(|(args, outcome)| one_run(args, outcome)).collect();
        let machine = &mut self.machine;
        let commands: Vec<&Vec<String>> = machine.carried.iter().map(|one| &one.words).collect();
        let mut document = json!({
            "tidegate_run": FORM,
            "version": env!("CARGO_PKG_VERSION"),
            "script": script,
            "runs": runs,
            "commands": commands,
            "kernel_log": machine.kernel_log,
        });
        document["devices"] = devices(machine);
        document["qdiscs"] = each(machine, qdiscs);
        document["classes"] = each(machine, classes);
        document["filters"] = each(machine, filters);
        document["netfilter"] = Value::from([false, true].map(|ipv6| tables(machine, ipv6)).concat());
        format!("{document:#}\n")
    }
}

fn one_run(args: &[String], outcome: &ScriptRun) -> Value {
    let exit = match &outcome.exit {
        Exit::Code(code) => json!({ "code": code }),
        Exit::Signal(signal) => json!({ "signal": signal }),
        Exit::TimedOut { after, running, .. } => {
            json!({ "timed_out_s": after.as_secs_f64(), "running": running })
        }
        Exit::Crowded { limit } => json!({ "more_processes_than": limit }),
        Exit::Exhausted { limit } => json!({ "more_bytes_of_memory_than": limit }),
        Exit::Lost(reason) => json!({ "lost": reason }),
    };
    json!({
        "args": args,
        "exit": exit,
        "calls": outcome.calls.iter().map(call).collect::<Vec<_>>(),
        "troubles": outcome.troubles.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "notes": outcome.notes,
    })
}

fn call(recorded: &Recorded) -> Value {
    let mut call = json!({ "tool": recorded.call.tool, "args": recorded.call.args, "code": recorded.code });
    if let Some(source) = &recorded.source {
        call["file"] = source.file.display().to_string().into();
        call["line"] = source.line.into();
    }
    if !recorded.stderr.is_empty() {
        call["stderr"] = recorded.stderr.as_str().into();
        call["silenced"] = recorded.silenced.into();
    }
    call
}

fn each(machine: &mut Machine, list: fn(&mut Machine, DeviceId) -> Vec<Value>) -> Value {
    machine.gateway.devices().flat_map(|id| list(machine, id)).collect()
}

/// As `ip -s -j addr show` prints them.
fn devices(machine: &mut Machine) -> Value {
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let links = machine.shim(&mut pool, &mut draws).links();
    parsed(&link_json(&links, &IpFlags::default(), true))
}

fn flags() -> ShowFlags {
    ShowFlags { json: true, ..ShowFlags::FULL }
}

fn qdiscs(machine: &mut Machine, id: DeviceId) -> Vec<Value> {
    let dumps = machine.gateway.qdiscs(machine.now, id);
    list_of(parsed(&tc::show_qdiscs(&dumps, &ShowWhat::of(Object::Qdisc), &flags())))
}

fn classes(machine: &mut Machine, id: DeviceId) -> Vec<Value> {
    machine.gateway.classes(machine.now, id).iter().map(class).collect()
}

fn class(dump: &ClassDump) -> Value {
    let mut class = json!({
        "dev": dump.dev,
        "kind": dump.kind.name(),
        "class": dump.kind.name(),
        "handle": dump.classid.to_string(),
    });
    match dump.parent {
        Handle::ROOT => class["root"] = true.into(),
        parent => class["parent"] = parent.to_string().into(),
    }
    if !dump.leaf.is_none() {
        class["leaf"] = format!("{:x}:", dump.leaf.major()).into();
    }
    match &dump.params {
        ClassParams::Htb(htb) => {
            for (key, value) in [
                ("prio", u64::from(htb.prio)),
                ("quantum", u64::from(htb.quantum)),
                ("rate", htb.rate.rate.0),
                ("ceil", htb.ceil.rate.0),
                ("burst", u64::from(tidegate_syntax::units::bytes_of(htb.rate.rate, htb.buffer))),
                ("cburst", u64::from(tidegate_syntax::units::bytes_of(htb.ceil.rate, htb.cbuffer))),
                ("overhead", u64::from(htb.rate.overhead)),
                ("mpu", u64::from(htb.rate.mpu)),
            ] {
                class[key] = value.into();
            }
            class["linklayer"] = htb.rate.linklayer.name().into();
        }
        ClassParams::Hfsc(hfsc) => {
            for (key, curve) in [("rt", hfsc.rt), ("ls", hfsc.ls), ("ul", hfsc.ul)] {
                let Some(curve) = curve.filter(|curve| curve.m1 > 0 || curve.m2 > 0) else { continue };
                class[key] = json!({ "m1": curve.m1, "d_us": curve.d_us, "m2": curve.m2 });
            }
        }
        ClassParams::Qfq(qfq) => {
            (class["weight"], class["maxpkt"]) = (qfq.weight.into(), qfq.maxpkt.into());
        }
        ClassParams::Drr(drr) => class["quantum"] = drr.quantum.into(),
        _ => {}
    }
    let mut stats = json!({});
    if let Some(counted) = &dump.stats {
        stats = json!({
            "bytes": counted.bytes, "packets": counted.packets, "drops": counted.drops, "overlimits": counted.overlimits,
            "requeues": counted.requeues, "backlog": counted.backlog, "qlen": counted.qlen,
        });
    }
    if let Xstats::HtbClass { lends, borrows, giants, tokens, ctokens, level } = &dump.xstats {
        class["level"] = (*level).into();
        for (key, value) in [
            ("lended", i64::from(*lends)),
            ("borrowed", i64::from(*borrows)),
            ("giants", i64::from(*giants)),
            ("tokens", i64::from(*tokens)),
            ("ctokens", i64::from(*ctokens)),
        ] {
            stats[key] = value.into();
        }
    }
    class["stats"] = stats;
    class
}

fn filters(machine: &mut Machine, id: DeviceId) -> Vec<Value> {
    let dumps = all_filters(machine, id);
    dumps.iter().map(filter).collect()
}

/// The filters of every qdisc and class of a device.
fn all_filters(machine: &mut Machine, id: DeviceId) -> Vec<FilterDump> {
    let now = machine.now;
    let mut parents: Vec<Handle> =
        machine.gateway.qdiscs(now, id).iter().flat_map(QdiscDump::filter_lists).collect();
    parents.extend(machine.gateway.classes(now, id).iter().map(|class| class.classid));
    parents.sort();
    parents.dedup();
    parents
        .into_iter()
        .flat_map(|parent| machine.gateway.filters(machine.now, id, parent).unwrap_or_default())
        .collect()
}

fn filter(dump: &FilterDump) -> Value {
    let what = ShowWhat::on(Object::Filter, &dump.dev);
    let shown = tc::show_filters(std::slice::from_ref(dump), &what, &flags());
    let mut filter = match serde_json::from_str::<Lenient>(&shown) {
        Ok(Lenient(Value::Array(mut items))) if items.len() == 1 => items.remove(0),
        // What tc prints in braces is no JSON: the words are kept.
        _ => {
            let text = tc::show_filters(std::slice::from_ref(dump), &what, &ShowFlags::default());
            let after = text.split_once(&format!(" chain {} ", dump.chain)).map_or("", |(_, after)| after);
            json!({
                "parent": dump.parent.to_string(),
                "protocol": text.split_once("protocol ").and_then(|(_, rest)| rest.split(' ').next()),
                "pref": dump.pref,
                "kind": dump.kind,
                "chain": dump.chain,
                "options": { "text": after.split_whitespace().collect::<Vec<_>>().join(" ") },
            })
        }
    };
    filter["dev"] = dump.dev.as_str().into();
    filter
}

/// The tables of one family, as -save prints them.
fn tables(machine: &mut Machine, ipv6: bool) -> Vec<Value> {
    let tool = if ipv6 { "ip6tables-save" } else { "iptables-save" };
    let call = Call { tool: tool.into(), args: vec!["-c".into()], stdin: None, cwd: "/".into(), netns: None };
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let reply = machine.shim(&mut pool, &mut draws).answer(&call);
    let mut tables: Vec<Value> = Vec::new();
    for line in String::from_utf8_lossy(&reply.stdout).lines() {
        let Some(table) = tables.last_mut().filter(|_| !line.starts_with('*')) else {
            if let Some(name) = line.strip_prefix('*') {
                let family = if ipv6 { "ipv6" } else { "ipv4" };
                tables.push(json!({ "family": family, "table": name, "chains": [], "rules": [] }));
            }
            continue;
        };
        if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split(' ');
            let (name, policy) = (words.next(), words.next().filter(|policy| *policy != "-"));
            push(table, "chains", json!({ "name": name, "policy": policy }));
        } else if line.contains("-A ") {
            push(table, "rules", line.into());
        }
    }
    tables
}

fn push(to: &mut Value, key: &str, value: Value) {
    if let Some(list) = to.get_mut(key).and_then(Value::as_array_mut) {
        list.push(value);
    }
}

fn list_of(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str::<Lenient>(text).map_or(Value::Null, |Lenient(value)| value)
}

/// A value in which a repeated key becomes a list of its values.
struct Lenient(Value);

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Value;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(Lenient(item)) = items.next_element()? {
                    list.push(item);
                }
                Ok(list.into())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
                let mut map: Map<String, Value> = Map::new();
                let mut repeated: Vec<String> = Vec::new();
                while let Some((key, Lenient(value))) = members.next_entry::<String, Lenient>()? {
                    match map.remove(&key) {
                        None => drop(map.insert(key, value)),
                        Some(Value::Array(mut list)) if repeated.contains(&key) => {
                            list.push(value);
                            map.insert(key, list.into());
                        }
                        Some(first) => {
                            repeated.push(key.clone());
                            map.insert(key, vec![first, value].into());
                        }
                    }
                }
                Ok(map.into())
            }
        }
        deserializer.deserialize_any(Reader).map(Lenient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_becomes_a_list() {
        let read = parsed(r#"[{"a":1,"match":{"x":1},"match":{"x":2},"match":3}]"#);
        assert_eq!(read, json!([{ "a": 1, "match": [{ "x": 1 }, { "x": 2 }, 3] }]));
        assert_eq!(parsed(r#"{"a":[1],"a":[2]}"#), json!({ "a": [[1], [2]] }));
    }
}
