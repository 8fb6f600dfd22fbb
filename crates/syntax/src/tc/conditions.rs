//! What basic and flower filters ask for, one condition after the other, in tc's words.

use super::ematch;
use super::filter::key_words;
use tidegate_policy::{BasicParams, CgroupParams, Ematch, FilterParams, Term};

/// A condition, and how the next is joined to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// `dst_port 22`, `not meta(priority eq 6)`.
    pub text: String,
    /// The next is joined with `or`; else with `and`.
    pub or: bool,
}

/// The conditions of a basic filter's expression, or the keys of a flower filter in the order of its
/// parameters; none for other kinds. A flower filter's `indev` is not among them.
pub fn conditions(params: &FilterParams) -> Vec<Joined> {
    match params {
        FilterParams::Basic(BasicParams { terms, .. }) | FilterParams::Cgroup(CgroupParams { terms }) => {
            terms.iter().map(|term| Joined { text: one(term), or: term.or }).collect()
        }
        FilterParams::Flower(flower) => {
            let text = |key| key_words(flower, key);
            flower.keys.iter().map(|key| Joined { text: text(key), or: false }).collect()
        }
        _ => Vec::new(),
    }
}

fn one(term: &Term) -> String {
    let not = if term.not { "not " } else { "" };
    match &term.what {
        Ematch::All(inner) => {
            let inner: Vec<Joined> =
                inner.iter().map(|term| Joined { text: one(term), or: term.or }).collect();
            format!("{not}({})", expression(&inner))
        }
        simple => {
            let mut text = ematch::one(simple);
            for (number, name) in ["link", "network", "transport"].iter().enumerate() {
                text = text.replace(&format!(" layer {number}"), &format!(" layer {name}"));
            }
            format!("{not}{text}")
        }
    }
}

/// Conditions as one expression.
pub(super) fn expression(conditions: &[Joined]) -> String {
    let mut out = String::new();
    for (at, condition) in conditions.iter().enumerate() {
        out.push_str(&condition.text);
        if at + 1 < conditions.len() {
            out.push_str(if condition.or { " or " } else { " and " });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Env;
    use crate::tc::{TcCommand, parse};
    use tidegate_policy::Op;

    fn words(filter: &str) -> String {
        let line = format!("filter add dev eth0 parent 1: {filter} classid 1:1");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let TcCommand::Apply(Op::Filter(op)) = parse(&words, &Env::default()).expect(&line).command else {
            panic!("{line}")
        };
        expression(&conditions(&op.params.expect("a filter")))
    }

    #[test]
    fn conditions_are_separate() {
        let table = [
            ("protocol ip flower ip_proto tcp dst_port 22", "eth_type ipv4 and ip_proto tcp and dst_port 22"),
            ("protocol ip basic match meta(priority eq 6)", "meta(priority eq 6)"),
            (
                "protocol ip basic match cmp(u16 at 2 layer transport eq 22) and not ( meta(priority eq 6) \
                or u32(u8 0x11 0xff at 9) )",
                "cmp(u16 at 2 layer transport eq 22) and not (meta(priority eq 6) or u32(00110000/00ff0000 \
                at 8))",
            ),
            ("protocol ip fw", ""),
        ];
        for (filter, expected) in table {
            assert_eq!(words(filter), expected, "{filter}");
        }
    }
}
