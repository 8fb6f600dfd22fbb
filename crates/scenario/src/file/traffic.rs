//! The traffic of a scenario.

use super::network::{Network, dsfield, tcp_keys};
use crate::model::{DatagramPacing, NodeRole, TcpOptions, TrafficItem, TrafficKind};
use crate::tables::{
    Diagnostic, Keys, TableValue, flag, list, number, rate, size, some_span, span, text, title,
};
use crate::transactions::PageShape;
use std::collections::BTreeSet;
use std::ops::Range;
use tidegate_packet::Nanos;
use toml::de::DeValue;

/// Kinds of traffic.
const KINDS: [&str; 12] =
    ["tcp", "scp", "udp", "flood", "voip", "ping", "owd", "request", "dns", "ssh", "web", "test"];
/// The longest payload in a frame of 1514 bytes over UDP.
const MAX_PAYLOAD: u64 = 1472;
/// Most transfers of one entry.
const MAX_COUNT: u64 = 1000;

/// EF, as telephones mark speech.
const VOICE: u8 = 0xb8;
/// Payload of a frame of speech (G.711, 20 ms) and its RTP header: 200 bytes with the headers of UDP and IP.
const SPEECH: u32 = 172;

/// The items of a list; the ends become hosts.
pub(crate) fn items(value: TableValue<'_>, network: &mut Network) -> Result<Vec<TrafficItem>, Diagnostic> {
    let mut items = Vec::new();
    for entry in list(value)? {
        let keys = Keys::of(entry)?;
        items.extend(one(keys, network)?);
    }
    for item in &items {
        for node in [item.from, item.to] {
            if network.nodes[node].role == NodeRole::Relay {
                network.nodes[node].role = NodeRole::Host;
            }
        }
    }
    Ok(items)
}

/// The traffic under every load and that of this one; names must be unique.
pub(crate) fn joined(
    everywhere: &[TrafficItem],
    own: Vec<TrafficItem>,
) -> Result<Vec<TrafficItem>, Diagnostic> {
    let mut items: Vec<TrafficItem> = everywhere.to_vec();
    items.extend(own);
    let mut seen = BTreeSet::new();
    for (number, item) in (0..).zip(&mut items) {
        item.start = item.start + out_of_step(number, item);
        if seen.insert(item.id.clone()) {
            continue;
        }
        if !KINDS.contains(&item.id.trim_end_matches("-back"))
            && !matches!(item.id.as_str(), "upload" | "download")
        {
            let why = format!("the name `{}` is used twice", item.id);
            return Err(Diagnostic::new(item.at.clone(), why, "give each an `id` of its own"));
        }
        let free = (2..).map(|n| format!("{}-{n}", item.id)).find(|id| !seen.contains(id));
        item.id = free.unwrap_or_default();
        seen.insert(item.id.clone());
    }
    Ok(items)
}

/// Probes that are repeated at an interval do not begin together unless a start is given: pings of several
/// hosts in the same instant would be unrealistic. (Multiples of the golden section of the interval keep any
/// number of them apart.)
fn out_of_step(number: u64, item: &TrafficItem) -> Nanos {
    let every = match item.what {
        TrafficKind::Tcp { .. } => return Nanos(0),
        TrafficKind::Udp { every, .. }
        | TrafficKind::Ping { every, .. }
        | TrafficKind::Request { every, .. } => every,
        TrafficKind::Dns { every } | TrafficKind::Ssh { every } | TrafficKind::Web { every, .. } => every,
    };
    if item.anywhere { Nanos(every.0 / 1_000_000 * (number * 618_034 % 1_000_000)) } else { Nanos(0) }
}

/// The entry's kind: the one key that names it.
fn kind<'t>(keys: &mut Keys<'t>) -> Result<(&'static str, TableValue<'t>), Diagnostic> {
    let found: Vec<(&'static str, TableValue<'t>)> =
        KINDS.iter().filter_map(|kind| keys.get(kind).map(|value| (*kind, value))).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let how = format!("write one of {}: `tcp = \"a -> server\"`", KINDS.join(", "));
            Err(keys
                .slip(&KINDS)
                .unwrap_or_else(|| Diagnostic::new(keys.place(), "missing kind of traffic", how)))
        }
        [_, (other, value), ..] => Err(Diagnostic::new(
            value.span(),
            format!("it is `{other}` too"),
            "one entry is one kind of traffic",
        )),
    }
}

/// `a -> server`: the sender, the receiver; `a <- server`: the receiver requests the data.
fn parties(value: TableValue<'_>, network: &Network) -> Result<(usize, usize, bool), Diagnostic> {
    let written = text(value)?;
    // The words begin behind the quote.
    let begin = value.span().start + (value.span().len() - written.len().min(value.span().len())) / 2;
    let (left, right, back) = match (written.split_once("->"), written.split_once("<-")) {
        (Some((left, right)), None) => (left, right, false),
        (None, Some((left, right))) => (left, right, true),
        _ => {
            let how = "write `\"a -> server\"`, or `\"a <- server\"` for what comes back when a asks";
            return Err(Diagnostic::new(value.span(), "missing sender and receiver", how));
        }
    };
    let ((from, from_at), (to, to_at)) = (trimmed(left, written, begin), trimmed(right, written, begin));
    let ends = (network.known(from, from_at)?, network.known(to, to_at.clone())?);
    if ends.0 == ends.1 {
        return Err(Diagnostic::new(
            to_at,
            format!("`{from}` is both sender and receiver"),
            "name two different nodes",
        ));
    }
    Ok(if back { (ends.1, ends.0, true) } else { (ends.0, ends.1, false) })
}

/// A part of a text without the blanks around it, and its place in the file, where the text begins at
/// `begin`.
fn trimmed<'t>(part: &'t str, whole: &str, begin: usize) -> (&'t str, Range<usize>) {
    let blanks = part.len() - part.trim_start().len();
    let from = begin + (part.as_ptr() as usize - whole.as_ptr() as usize) + blanks;
    (part.trim(), from..from + part.trim().len())
}

/// What all kinds share.
struct Common {
    id: Option<String>,
    title: Option<String>,
    start: Option<Nanos>,
    stop: Option<Nanos>,
    dsfield: Option<u8>,
    port: Option<u16>,
}

fn common(keys: &mut Keys<'_>) -> Result<Common, Diagnostic> {
    let id = match keys.get("id") {
        Some(value) => {
            let id = text(value)?;
            if id.is_empty() || id.contains(|c: char| c.is_whitespace() || "./=".contains(c)) {
                return Err(Diagnostic::new(
                    value.span(),
                    "no name",
                    "names are one word, without `.`, `/` and `=`",
                ));
            }
            Some(id.to_owned())
        }
        None => None,
    };
    let given = keys.read("start", span)?;
    let (start, stop) = (given.unwrap_or_default(), keys.get("stop"));
    let until = stop.map(span).transpose()?;
    if let (Some(value), Some(until)) = (stop, until)
        && until <= start
    {
        return Err(Diagnostic::new(
            value.span(),
            "its stop is before its start",
            "both count from the beginning of the run",
        ));
    }
    Ok(Common {
        id,
        title: keys.read("title", title)?.map(str::to_owned),
        start: given,
        stop: until,
        dsfield: dsfield(keys)?,
        port: keys.read("port", |value| number(value, 1, 65_535))?.map(|port| port as u16),
    })
}

/// One entry; some come to several items.
fn one(mut keys: Keys<'_>, network: &Network) -> Result<Vec<TrafficItem>, Diagnostic> {
    let (kind, value) = kind(&mut keys)?;
    if kind == "test" {
        return test(keys, value, network);
    }
    let (from, to, back) = parties(value, network)?;
    let common = common(&mut keys)?;
    let make = |id: &str, title: String, port: u16, mark: u8, what: TrafficKind| TrafficItem {
        id: common.id.clone().unwrap_or_else(|| id.to_owned()),
        title: common.title.clone().unwrap_or(title),
        from,
        to,
        start: common.start.unwrap_or_default(),
        anywhere: common.start.is_none(),
        stop: common.stop,
        dsfield: common.dsfield.unwrap_or(mark),
        port: common.port.unwrap_or(port),
        what,
        at: value.span(),
    };
    let who = format!("{} to {}", network.nodes[from].name, network.nodes[to].name);
    let every =
        |keys: &mut Keys<'_>, usual| Ok::<_, Diagnostic>(keys.read("every", some_span)?.unwrap_or(usual));
    let items = match kind {
        "tcp" | "scp" => {
            let what = transfer(&mut keys, kind == "scp", back)?;
            let (id, port) = match (kind, back) {
                ("scp", _) => ("scp", 22),
                (_, false) if network.far == Some(from) => ("download", 5001),
                (_, false) => ("upload", 5001),
                (_, true) => ("download", 80),
            };
            vec![make(id, format!("{id} {who}"), port, 0, what)]
        }
        "udp" | "flood" => {
            let (first, what) = datagrams(&mut keys, kind, value)?;
            match keys.get("sizes") {
                Some(sizes) => {
                    sweep(make(kind, format!("{kind} {who}"), 5001, 0, what), first, sizes, &mut keys)?
                }
                None => {
                    vec![make(kind, format!("{kind} {who}"), if kind == "flood" { 9 } else { 5001 }, 0, what)]
                }
            }
        }
        "voip" => {
            let pace = pace(&mut keys)?;
            let what = TrafficKind::Udp { payload: SPEECH, every: Nanos::millis(20), pace };
            let there = make(kind, format!("call to {}", network.nodes[to].name), 16384, VOICE, what.clone());
            let back = TrafficItem {
                id: format!("{}-back", there.id),
                title: format!("call to {}", network.nodes[from].name),
                from: to,
                to: from,
                // The two ends do not speak in the same instant.
                start: there.start + Nanos::millis(7),
                ..there.clone()
            };
            vec![there, back]
        }
        "owd" => {
            let payload = keys.read("size", |value| number(value, 0, MAX_PAYLOAD))?.unwrap_or(56) as u32;
            let every = every(&mut keys, Nanos::millis(100))?;
            vec![make(
                kind,
                format!("one way, {who}"),
                5002,
                0,
                TrafficKind::Udp { payload, every, pace: pace(&mut keys)? },
            )]
        }
        "ping" => {
            let payload = keys.read("size", |value| number(value, 0, MAX_PAYLOAD))?.unwrap_or(56) as u32;
            let count = keys.read("count", |value| number(value, 1, u64::from(u32::MAX)))?;
            let every = every(&mut keys, Nanos::secs(1))?;
            vec![make(kind, format!("ping {who}"), 0, 0, TrafficKind::Ping { payload, every, count })]
        }
        "request" => {
            let bytes = |value: TableValue<'_>| Ok(size(value)?.clamp(1, u64::from(u32::MAX)) as u32);
            let request = keys.read("question", bytes)?.unwrap_or(300);
            let reply = keys.read("reply", bytes)?.unwrap_or(10_000);
            let every = every(&mut keys, Nanos::secs(1))?;
            vec![make(kind, format!("request {who}"), 80, 0, TrafficKind::Request { every, request, reply })]
        }
        "dns" => {
            let every = every(&mut keys, Nanos::secs(1))?;
            vec![make(kind, format!("DNS look-up {who}"), 53, 0, TrafficKind::Dns { every })]
        }
        "ssh" => {
            let every = every(&mut keys, Nanos::secs(5))?;
            // AF21, as OpenSSH marks interactive sessions.
            vec![make(kind, format!("SSH login {who}"), 22, 0x48, TrafficKind::Ssh { every })]
        }
        _ => {
            let every = every(&mut keys, Nanos::secs(12))?;
            let (shape, patience) = (shape(&mut keys)?, keys.read("patience", some_span)?);
            let port = if shape.is_some_and(|shape| !shape.tls) { 80 } else { 443 };
            vec![make("web", format!("web page {who}"), port, 0, TrafficKind::Web { every, shape, patience })]
        }
    };
    keys.finish()?;
    Ok(items)
}

fn transfer(keys: &mut Keys<'_>, login: bool, receiver_opens: bool) -> Result<TrafficKind, Diagnostic> {
    let tcp: TcpOptions = tcp_keys(keys)?;
    Ok(TrafficKind::Tcp {
        count: keys.read("count", |value| number(value, 1, MAX_COUNT))?.unwrap_or(1) as u32,
        bytes: keys.read("bytes", size)?,
        tcp,
        receiver_opens,
        login,
        record: keys.read("record", flag)?.unwrap_or(false),
    })
}

/// The parts of a page, if any are given.
fn shape(keys: &mut Keys<'_>) -> Result<Option<PageShape>, Diagnostic> {
    let bytes = |value: TableValue<'_>| Ok(size(value)?.clamp(1, u64::from(u32::MAX)) as u32);
    let document = keys.read("document", bytes)?;
    let objects = keys.read("objects", |value| number(value, 0, MAX_COUNT))?;
    let object = keys.read("object", bytes)?;
    let connections = keys.read("connections", |value| number(value, 1, 64))?;
    let think = keys.read("think", span)?;
    let tls = keys.read("tls", flag)?;
    let given = document.or(object).is_some()
        || objects.or(connections).is_some()
        || think.is_some()
        || tls.is_some();
    Ok(given.then(|| PageShape {
        document: document.unwrap_or(42_000),
        objects: objects.unwrap_or(23) as u32,
        object: object.unwrap_or(45_000),
        connections: connections.unwrap_or(6) as u32,
        think: think.unwrap_or(Nanos::millis(15)),
        tls: tls.unwrap_or(true),
    }))
}

/// Datagrams: their size, and the interval that makes the rate.
fn datagrams(
    keys: &mut Keys<'_>,
    kind: &str,
    value: TableValue<'_>,
) -> Result<(Option<u64>, TrafficKind), Diagnostic> {
    let payload = keys.read("size", |value| number(value, 0, MAX_PAYLOAD))?.unwrap_or(1400) as u32;
    let bits = keys.read("rate", rate)?;
    let every = match (keys.read("every", some_span)?, bits) {
        (Some(every), None) => every,
        (None, Some(bits)) => interval(payload, bits),
        (None, None) if kind == "udp" => Nanos::millis(20),
        _ => {
            let why = "missing amount: ";
            return Err(Diagnostic::new(
                value.span(),
                why.trim(),
                "write `rate = \"2mbit\"` (of payload), or `every = \"10ms\"`",
            ));
        }
    };
    Ok((bits, TrafficKind::Udp { payload, every, pace: pace(keys)? }))
}

/// `uneven = "4ms"`: a program that sleeps between packets; `poisson = true`.
fn pace(keys: &mut Keys<'_>) -> Result<DatagramPacing, Diagnostic> {
    let late = keys.read("uneven", some_span)?.map(DatagramPacing::Late);
    let poisson = keys.read("poisson", flag)?.unwrap_or(false);
    Ok(if poisson { DatagramPacing::Poisson } else { late.unwrap_or_default() })
}

/// Between datagrams of a payload that make a rate of payload together; of those without payload, of their
/// frames.
fn interval(payload: u32, bits: u64) -> Nanos {
    let bytes = if payload == 0 { 42 } else { u64::from(payload) };
    Nanos((bytes * 8_000_000_000 / bits.max(1)).max(1))
}

/// `sizes = [0, 10, …], each = "5s"`: one item after the other.
fn sweep(
    base: TrafficItem,
    bits: Option<u64>,
    sizes: TableValue<'_>,
    keys: &mut Keys<'_>,
) -> Result<Vec<TrafficItem>, Diagnostic> {
    let each = some_span(keys.need("each", "missing duration of each size: `each = \"5s\"`")?)?;
    let TrafficKind::Udp { every, pace, .. } = base.what else { return Ok(vec![base]) };
    let mut items = Vec::new();
    for (number_of, value) in (0..).zip(list(sizes)?) {
        let payload = number(value, 0, MAX_PAYLOAD)? as u32;
        let start = base.start + Nanos(each.0 * number_of);
        items.push(TrafficItem {
            id: format!("{}-{payload}", base.id),
            title: format!("{} ({payload} bytes)", base.title),
            start,
            anywhere: false,
            stop: Some(start + each),
            what: TrafficKind::Udp {
                payload,
                every: bits.map_or(every, |bits| interval(payload, bits)),
                pace,
            },
            ..base.clone()
        });
    }
    Ok(items)
}

/// DS fields of rrul's four classes: best effort, background (CS1), video (CS5), voice (EF).
const RRUL: [(&str, u8); 4] = [("BE", 0), ("BK", 0x20), ("CS5", 0xa0), ("EF", 0xb8)];

/// `test = "rrul", between = ["a", "server"]`: what flent's test of that name does.
fn test(
    mut keys: Keys<'_>,
    value: TableValue<'_>,
    network: &Network,
) -> Result<Vec<TrafficItem>, Diagnostic> {
    let between = keys.need("between", "missing ends: `between = [\"a\", \"server\"]`")?;
    let DeValue::Array(ends) = between.get_ref() else {
        return Err(Diagnostic::new(between.span(), "expected a list", "write `[\"a\", \"server\"]`"));
    };
    let [here, there] = &ends[..] else {
        return Err(Diagnostic::new(between.span(), "a test is between two", "write `[\"a\", \"server\"]`"));
    };
    let here = network.known(text(here)?, here.span())?;
    let there = network.known(text(there)?, there.span())?;
    let streams = keys.read("streams", |value| number(value, 1, MAX_COUNT))?.map(|n| n as u32);
    let start = keys.read("start", span)?.unwrap_or_default();
    let rate = keys.read("rate", rate)?;
    keys.finish()?;
    let item =
        |id: &str, title: String, (from, to): (usize, usize), dsfield: u8, port: u16, what: TrafficKind| {
            TrafficItem {
                id: id.to_owned(),
                title,
                from,
                to,
                start,
                anywhere: true,
                stop: None,
                dsfield,
                port,
                what,
                at: value.span(),
            }
        };
    let bulk = |count: u32| TrafficKind::Tcp {
        count,
        bytes: None,
        tcp: TcpOptions::default(),
        receiver_opens: false,
        login: false,
        record: true,
    };
    let (up, down) = ((here, there), (there, here));
    let ups =
        |n: u32, mark: u8, name: &str| item("upload", format!("upload{name}"), up, mark, 12865, bulk(n));
    let fetch = |n: u32| match bulk(n) {
        TrafficKind::Tcp { count, bytes, tcp, login, record, .. } => {
            TrafficKind::Tcp { count, bytes, tcp, login, record, receiver_opens: true }
        }
        other => other,
    };
    let downs = |n: u32, mark: u8, name: &str| {
        item("download", format!("download{name}"), down, mark, 12865, fetch(n))
    };
    let ping = || {
        item(
            "ping",
            "ping".into(),
            up,
            0,
            0,
            TrafficKind::Ping { payload: 56, every: Nanos::millis(200), count: None },
        )
    };
    let marked = |marks: &[(&str, u8)]| {
        let mut all = vec![ping()];
        for (n, (name, mark)) in (1..).zip(marks) {
            let named = |item: TrafficItem, word: &str| TrafficItem { id: format!("{word}-{n}"), ..item };
            all.push(named(ups(1, *mark, &format!(" {n} {name}")), "upload"));
            all.push(named(downs(1, *mark, &format!(" {n} {name}")), "download"));
        }
        all
    };
    Ok(match text(value)? {
        "rrul" => marked(&RRUL),
        "rrul_be" => match streams {
            None => marked(&[("BE", 0); 4]),
            Some(n) => vec![ping(), ups(n, 0, ""), downs(n, 0, "")],
        },
        "tcp_nup" => vec![ping(), ups(streams.unwrap_or(12), 0, "")],
        "tcp_ndown" => vec![ping(), downs(streams.unwrap_or(12), 0, "")],
        "tcp_1up" => vec![ping(), ups(1, 0, "")],
        "tcp_1down" => vec![ping(), downs(1, 0, "")],
        "ping" => vec![ping()],
        "voip" => {
            let speech =
                || TrafficKind::Udp { payload: SPEECH, every: Nanos::millis(20), pace: DatagramPacing::Even };
            vec![
                ping(),
                item("voip", "call, there".into(), up, VOICE, 16384, speech()),
                item("voip-back", "call, back".into(), down, VOICE, 16384, speech()),
            ]
        }
        "udp_flood" => {
            let bits = rate.ok_or_else(|| {
                Diagnostic::new(
                    value.span(),
                    "missing rate",
                    "write `rate = \"2mbit\"`, more than the line carries",
                )
            })?;
            vec![
                ping(),
                item(
                    "flood",
                    "UDP flood".into(),
                    up,
                    0,
                    9,
                    TrafficKind::Udp {
                        payload: 1400,
                        every: interval(1400, bits),
                        pace: DatagramPacing::Even,
                    },
                ),
            ]
        }
        "web" | "http" => vec![
            ping(),
            item(
                "web",
                "web page".into(),
                up,
                0,
                443,
                TrafficKind::Web { every: Nanos::secs(12), shape: None, patience: None },
            ),
        ],
        _ => {
            let known = "rrul, rrul_be, tcp_nup, tcp_ndown, tcp_1up, tcp_1down, voip, udp_flood, ping, web";
            return Err(Diagnostic::new(value.span(), "unknown test", format!("there are {known}")));
        }
    })
}
