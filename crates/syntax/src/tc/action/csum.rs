//! `csum ip4h and tcp …`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::Env;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Csum};

/// `csum`.
pub(super) const ROW: Row =
    Row { name: "csum", form: "csum SUM [and SUM] … [CONTROL] [index N]", parse, show, lead: Some("\n\t") };

/// In the order in which tc looks for what a word begins.
const WORDS: [(&str, u32); 9] = [
    ("iph", Csum::HEADER),
    ("ip4h", Csum::HEADER),
    ("ipv4h", Csum::HEADER),
    ("icmp", Csum::ICMP),
    ("igmp", Csum::IGMP),
    ("tcp", Csum::TCP),
    ("udp", Csum::UDP),
    ("udplite", Csum::UDPLITE),
    ("sctp", Csum::SCTP),
];
/// Words between the protocols that have no meaning.
const BETWEEN: [&str; 3] = ["and", "or", "+"];

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let mut sums = 0;
    if words.peek().is_none() {
        words.need()?;
    }
    while let Some(word) = words.peek() {
        let found = WORDS.iter().find(|(name, _)| begins(word, name));
        match found {
            Some((_, bit)) => sums |= bit,
            None if BETWEEN.iter().any(|between| begins(word, between)) => {}
            None => break,
        }
        words.skip();
    }
    if sums == 0 {
        return Err(Failed::say(
            "Illegal csum construct, empty <UPDATE> list",
            "Say which checksums: ip4h, icmp, igmp, tcp, udp, such as csum ip4h and tcp.",
        ));
    }
    let control = control_after(words)?.unwrap_or(Control::Pass);
    let index = own_index(words, |text| format!("Illegal \"index\" ({text}) <csum>"))?;
    Ok(Action { index, ..Act::Csum(Csum { sums, control }).into() })
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Csum(csum) = &dump.action.act else { return };
    let names: Vec<&str> =
        Csum::NAMES.iter().filter(|(bit, _)| csum.sums & bit != 0).map(|(_, name)| *name).collect();
    let names = names.join(", ");
    entry.say(&format!("csum ({names}) action {}", control_name(csum.control)));
    entry.member("csum", Json::text(names));
    entry.member("control_action", type_of(csum.control));
}
