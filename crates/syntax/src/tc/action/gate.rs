//! `gate base-time … sched-entry open|close INTERVAL …`.

use super::row::{Failed, Row, control_after, control_name, type_of};
use crate::json::Json;
use crate::number::{i32_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::units::{parse_nanos, parse_size, print_nanos};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Gate, GateClock, GateEntry};

/// `gate`.
pub(super) const ROW: Row = Row {
    name: "gate",
    form: "gate [priority N] [base-time TIME] [cycle-time TIME] [cycle-time-ext TIME] [clockid CLOCK] [flags N] \
    [sched-entry open|close INTERVAL [PRIORITY [BYTES]]]… [index N] [CONTROL]",
    parse,
    show,
    lead: Some("\n\t "),
};

const FORM: &str = "A gate has a schedule: gate sched-entry open 10ms sched-entry close 20ms.";
/// In tc's order: an abbreviation goes to the first that fits.
const KEYS: [&str; 8] =
    ["priority", "base-time", "cycle-time", "cycle-time-ext", "clockid", "flags", "sched-entry", "index"];

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let (mut gate, mut index) = (Gate::default(), 0);
    if words.peek().is_none() {
        words.need()?;
    }
    while let Some(word) = words.peek() {
        let whole = KEYS.into_iter().find(|name| *name == word);
        let Some(name) = whole.or_else(|| KEYS.into_iter().find(|name| begins(word, name))) else { break };
        words.skip();
        match name {
            // -1 is tc's own mark of one that was not given.
            "priority" => {
                gate.priority = Some(value(words, name, |text| i32_in(text, 0))?).filter(|&to| to != -1)
            }
            "base-time" => gate.base_ns = Some(value(words, name, parse_nanos)?),
            "cycle-time" => gate.cycle_ns = Some(value(words, name, length)?),
            "cycle-time-ext" => gate.extension_ns = Some(value(words, name, length)?),
            "clockid" => gate.clock = Some(value(words, name, clock)?),
            "flags" => gate.flags = Some(value(words, name, |text| u32_in(text, 0))?),
            "index" => index = value(words, name, |text| u32_in(text, 10))?,
            _ => gate.schedule.push(entry(words)?),
        }
    }
    if gate.schedule.is_empty() && index == 0 {
        return Err(Failed::say("gate: must add at least one entry", FORM));
    }
    gate.control = control_after(words)?.unwrap_or(Control::Pipe);
    Ok(Action { index, ..Act::Gate(gate).into() })
}

fn value<T>(words: &mut Words<'_>, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Failed> {
    let text = words.need()?;
    Ok(read(text).ok_or_else(|| Refusal::wrong(text, name).at(words.last()).remedy(FORM))?)
}

fn length(text: &str) -> Option<u64> {
    parse_nanos(text).map(|ns| ns as u64)
}

/// A clock by its name, with or without `CLOCK_`.
fn clock(text: &str) -> Option<GateClock> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("CLOCK_").unwrap_or(&upper);
    GateClock::ALL.into_iter().find(|(_, _, known)| *known == name).map(|(clock, ..)| clock)
}

/// `open|close INTERVAL [PRIORITY [BYTES]]`.
fn entry(words: &mut Words<'_>) -> Result<GateEntry, Failed> {
    let incomplete = || {
        let form = "Usage: sched-entry <open | close> <interval> [ <interval ipv> <octets max bytes> ]";
        Failed::say(format!("{form}\n\"sched-entry\" is incomplete"), FORM)
    };
    let too_large = |what: &str| Failed::say(format!("\"{what}\" is too large"), FORM);
    let state = words.take().unwrap_or("");
    let open = match () {
        () if state.eq_ignore_ascii_case("open") => true,
        () if state.eq_ignore_ascii_case("close") => false,
        () => return Err(incomplete()),
    };
    let interval = words.take().and_then(parse_nanos).ok_or_else(incomplete)?;
    let interval_ns = u32::try_from(interval).map_err(|_| too_large("interval"))?;
    let mut entry = GateEntry { open, interval_ns, priority: -1, max_bytes: -1 };
    let Some(priority) = words.peek().and_then(|text| i32_in(text, 0)) else { return Ok(entry) };
    words.skip();
    entry.priority = priority;
    let Some(text) = words.peek() else { return Ok(entry) };
    if text == "-1" {
        words.skip();
    } else if let Some(bytes) = parse_size(text) {
        words.skip();
        entry.max_bytes = i32::try_from(bytes).map_err(|_| too_large("maxoctets"))?;
    }
    Ok(entry)
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Gate(gate) = &dump.action.act else { return };
    let priority = gate.priority.unwrap_or(-1);
    let text = if priority == -1 { "wildcard".to_owned() } else { format!("{priority:<8}") };
    entry.number("priority", priority, &format!("\n\tpriority {text}"));
    let clock = gate.clock.unwrap_or_default().name();
    entry.say(&format!("\tclockid {clock}"));
    entry.member("clockid", Json::text(clock));
    // 0 is printed without the prefix, as C's `%#x` does.
    let flags = gate.flags.filter(|flags| *flags > 0).map_or("0".to_owned(), |flags| format!("{flags:#x}"));
    entry.say(&format!("\tflags {flags}"));
    entry.member("flags", Json::text(flags));
    // JSON has the number without its sign.
    let base = gate.base_ns.unwrap_or(0);
    entry.number("base_time", base as u64, &format!("\n\tbase-time {}", print_nanos(base)));
    for (key, word, ns) in
        [("cycle_time", "cycle-time", gate.cycle_ns), ("cycle_time_ext", "cycle-time-ext", gate.extension_ns)]
    {
        let ns = ns.unwrap_or(0);
        entry.number(key, ns, &format!("\t{word} {}", print_nanos(ns as i64)));
    }
    entry.say("\n\tschedule:");
    let states = gate.schedule.iter().enumerate().map(|(number, state)| show_state(number, state, entry));
    let states = states.collect();
    entry.member("schedule", Json::List(states));
    entry.say(&format!("\n\t{}", control_name(gate.control)));
    entry.member("control_action", type_of(gate.control));
}

fn show_state(number: usize, state: &GateEntry, entry: &mut Entry) -> Json {
    let GateEntry { open, interval_ns, priority, max_bytes } = *state;
    let name = if open { "open" } else { "close" };
    let given = |value: i32, text: String| if value < 0 { "wildcard".to_owned() } else { text };
    entry.say(&format!(
        "\n\t number {number:4}\tgate-state {name} \tinterval {}\t ipv {}\t max-octets {}",
        print_nanos(i64::from(interval_ns)),
        given(priority, format!("{priority:<10}")),
        given(max_bytes, format!("{max_bytes}b")),
    ));
    Json::Object(vec![
        ("number", Json::number(number)),
        ("gate_state", Json::text(name)),
        ("interval", Json::number(interval_ns)),
        ("ipv", Json::number(priority)),
        ("max_octets", Json::number(max_bytes)),
    ])
}
