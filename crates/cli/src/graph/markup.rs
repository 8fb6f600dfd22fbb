//! The boxes for programs that draw: Graphviz and Mermaid.

use super::lead::Lead;
use super::model::{Box, Device, Model};
use std::fmt::Write as _;

/// An additional remark on a box.
type BoxNote<'t> = &'t dyn Fn(&Device, &Box) -> Option<String>;

/// The most filters listed at one box.
const MOST_LEADS: usize = 6;

/// The lines of a box.
fn lines(device: &Device, one: &Box, note: BoxNote<'_>) -> Vec<String> {
    let mut lines = vec![one.name()];
    match one.rates() {
        Some(rates) => {
            lines.push(rates);
            lines.extend(one.prio.filter(|prio| *prio > 0).map(|prio| format!("prio {prio}")));
        }
        None if one.is_class && !one.words.is_empty() => lines.push(one.words.trim().to_owned()),
        None => {}
    }
    lines.extend(one.leaf.iter().map(|leaf| format!("→ {leaf}")));
    lines.extend(note(device, one));
    let leads: Vec<&String> = one.leads.iter().flat_map(Lead::lines).collect();
    lines.extend(leads.iter().take(MOST_LEADS).map(|lead| format!("◂ {lead}")));
    if leads.len() > MOST_LEADS {
        lines.push(format!("◂ {} more", leads.len() - MOST_LEADS));
    }
    lines
}

/// A name for a box that both programs take.
fn id(device: usize, at: usize) -> String {
    format!("d{device}b{at}")
}

/// Where a redirect ends: the first box of its device, if that has any.
fn device_of(model: &Model, name: &str) -> Option<usize> {
    model.devices.iter().position(|device| device.name == name)
}

/// For Graphviz.
pub(super) fn dot(name: &str, model: &Model, note: BoxNote<'_>) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = format!("digraph \"{}\" {{\n", quoted(name));
    out.push_str(
        "  compound=true; rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\", \
        fontsize=11];\n",
    );
    for (n, device) in model.devices.iter().enumerate() {
        let _ = writeln!(
            out,
            "  subgraph cluster_{n} {{\n    label=\"{}  {}\";",
            quoted(&device.name),
            device.note
        );
        for (at, one) in device.boxes.iter().enumerate() {
            // `\l` ends a left-aligned line.
            let label: String = lines(device, one, note).iter().map(|line| quoted(line) + "\\l").collect();
            let _ = writeln!(out, "    {} [label=\"{label}\"];", id(n, at));
        }
        for (at, one) in device.boxes.iter().enumerate() {
            if let Some(parent) = one.parent {
                let _ = writeln!(out, "    {} -> {} [dir=none];", id(n, parent), id(n, at));
            }
        }
        out.push_str("  }\n");
    }
    for redirect in &model.redirects {
        if let (Some(from), Some(to)) = (device_of(model, &redirect.from), device_of(model, &redirect.to)) {
            let label = quoted(&redirect.what);
            let _ = writeln!(
                out,
                "  {} -> {} [ltail=cluster_{from}, lhead=cluster_{to}, style=dashed, label=\"{label}\", \
                fontsize=10];",
                id(from, 0),
                id(to, 0)
            );
        }
    }
    out.push_str("}\n");
    out
}

/// For Mermaid.
pub(super) fn mermaid(model: &Model, note: BoxNote<'_>) -> String {
    // Entities are the only way to have these in its strings.
    let quoted = |text: &str| {
        text.replace('#', "#35;")
            .replace('"', "#quot;")
            .replace('<', "#lt;")
            .replace('>', "#gt;")
            .replace('|', "#124;")
    };
    let mut out = String::from("flowchart TB\n");
    for (n, device) in model.devices.iter().enumerate() {
        let _ = writeln!(out, "  subgraph d{n}[\"{}\"]", quoted(&device.name));
        for (at, one) in device.boxes.iter().enumerate() {
            let label: Vec<String> = lines(device, one, note).iter().map(|line| quoted(line)).collect();
            let _ = writeln!(out, "    {}[\"{}\"]", id(n, at), label.join("<br/>"));
        }
        for (at, one) in device.boxes.iter().enumerate() {
            if let Some(parent) = one.parent {
                let _ = writeln!(out, "    {} --- {}", id(n, parent), id(n, at));
            }
        }
        out.push_str("  end\n");
    }
    for redirect in &model.redirects {
        if let (Some(from), Some(to)) = (device_of(model, &redirect.from), device_of(model, &redirect.to)) {
            let _ = writeln!(out, "  d{from} -. \"{}\" .-> d{to}", quoted(&redirect.what));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::Redirect;
    use tidegate_packet::{Handle, Rate};

    #[test]
    fn names_that_look_like_markup_stay_names() {
        let class = Box {
            parent: None,
            id: Handle::new(1, 0x10),
            title: None,
            is_class: true,
            words: String::new(),
            leaf: Some("sfq 10: \"x\"".into()),
            rate: Some(Rate::bits(300_000)),
            ceil: Some(Rate::bits(2_000_000)),
            most: Some(Rate::bits(1_000_000)),
            prio: Some(2),
            leads: vec![Lead::from("mark <7> | a\\b".to_owned())],
        };
        let device = |name: &str, boxes| Device { name: name.into(), note: "mtu 1500".into(), boxes };
        let led = Redirect { from: "e\"0".into(), to: "ifb0".into(), what: "all".into() };
        let plain = Box {
            leads: Vec::new(),
            leaf: None,
            rate: None,
            words: "htb 1:".into(),
            is_class: false,
            ..class_of(&class)
        };
        let model = Model {
            devices: vec![device("e\"0", vec![class]), device("ifb0", vec![plain])],
            redirects: vec![led],
        };
        assert_eq!(
            mermaid(&model, &|_, _| None),
            "flowchart TB\n  subgraph d0[\"e#quot;0\"]\n    d0b0[\"1:10<br/>guaranteed 300Kbit, borrows up to \
            1Mbit<br/>prio 2\
             <br/>→ sfq 10: #quot;x#quot;<br/>◂ mark #lt;7#gt; #124; a\\b\"]\n  end\n  subgraph \
             d1[\"ifb0\"]\n    \
             d1b0[\"htb 1:\"]\n  end\n  d0 -. \"all\" .-> d1\n"
        );
        let dot = dot("a \"b\"", &model, &|_, _| None);
        assert!(dot.starts_with("digraph \"a \\\"b\\\"\" {\n"), "{dot}");
        assert!(dot.contains("→ sfq 10: \\\"x\\\"\\l◂ mark <7> | a\\\\b\\l\"];"), "{dot}");
    }

    fn class_of(other: &Box) -> Box {
        Box { leaf: None, leads: Vec::new(), words: String::new(), title: None, ..*other }
    }
}
