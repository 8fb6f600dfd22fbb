//! `gact`: a decision and nothing else, or another one now and then.

use super::row::{Failed, Row, control, control_name, type_of};
use crate::json::Json;
use crate::number::u32_in;
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Gact, RandomGact};

/// `gact`.
pub(super) const ROW: Row = Row {
    name: "gact",
    form: "gact CONTROL [random netrand|determ CONTROL N] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let control = words.need()?;
    Ok(gact(control, words)?)
}

/// A decision, and another one now and then (`random`).
pub(super) fn gact(word: &str, words: &mut Words<'_>) -> Result<Action, Refusal> {
    let control = control(word, words)?.ok_or_else(|| unknown(word, words.last()))?;
    let mut gact = Gact { control, random: None };
    if words.begins("random") {
        words.skip();
        let kind = words.need()?;
        let drawn = begins(kind, "netrand");
        if !drawn && !begins(kind, "determ") {
            return Err(Refusal::new(1, "Illegal \"random type\"").at(words.last()).remedy(
                "random takes netrand (by draws) or determ (every so many), a decision and a number.",
            ));
        }
        let other = words.need()?;
        let control = super::row::control(other, words)?.ok_or_else(|| unknown(other, words.last()))?;
        let given = words.take().and_then(|text| u32_in(text, 10));
        let one_in = given.and_then(|val| u16::try_from(val).ok()).filter(|val| *val <= 10_000);
        let one_in = one_in.ok_or_else(|| {
            let sentence = given.map_or("0x1000".to_owned(), |val| format!(" {val:#x}"));
            Refusal::new(1, format!("Illegal probability val {sentence}"))
                .at(words.last())
                .remedy("One packet in so many: from 1 to 10000.")
        })?;
        // The kernel takes none for one.
        gact.random = Some(RandomGact { drawn, control, one_in: one_in.max(1) });
    }
    Ok(Act::Gact(gact).into())
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Gact(gact) = &dump.action.act else { return };
    let random = gact.random.unwrap_or_default();
    let kind = match gact.random {
        None => "none",
        Some(random) if random.drawn => "netrand",
        Some(_) => "determ",
    };
    entry.say(&format!("gact action {}", control_name(gact.control)));
    entry.say(&format!("\n\t random type {kind} {} val {}", control_name(random.control), random.one_in));
    entry.member("control_action", type_of(gact.control));
    let prob = vec![
        ("random_type", Json::text(kind)),
        ("control_action", type_of(random.control)),
        ("val", Json::number(random.one_in)),
    ];
    entry.member("prob", Json::Object(prob));
}

pub(super) fn unknown(word: &str, place: usize) -> Refusal {
    Refusal::new(255, format!("Bad action type {word}")).at(place).remedy(
        "The actions are pass, drop, continue, reclassify, pipe, goto chain N, police, mirred, skbedit, \
        nat, pedit, csum, vlan, skbmod, connmark, ctinfo, ct, mpls, gate, tunnel_key, simple and sample.",
    )
}
