//! `--closed`: the capture's connections made again with the simulator's TCP, so that they react to the policies; modelled, not captured.
//!
//! Each connection becomes a transfer of as many bytes as it carried in its main direction, begun when it began, with the round trip that
//! its handshake shows. Datagrams come at their mean interval, whatever becomes of them. The result is a scenario, carried out by `sim`.

use super::arrivals::{Key, Surveyed};
use super::file::CaptureFile;
use super::frames::{self, Ip};
use super::gateway::{self, Candidate};
use super::options::Options;
use super::side::as_address;
use crate::sim::of_text;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use tidegate_measure::experiment::{Experiment, Run};
use tidegate_packet::header::{proto, tcp_flags};
use tidegate_packet::{Rate, Span};
use tidegate_pcap::Direction;
use tidegate_report::{Align, Table, percent, size, span};

/// Conversations that are made again, the largest first.
const MOST: usize = 60;
/// Conversations that are told apart while the capture is read.
const MOST_KNOWN: usize = 65_536;
/// The round trip of a connection whose handshake is not there, if nobody says.
const USUAL_RTT: Span = Span::millis(30);
/// Link time after the last packet of the capture: what is slower than it was needs longer.
const AFTER: u64 = 10;
/// The longest capture whose connections are made again, ns.
const LONGEST: u64 = 2 * 3600 * 1_000_000_000;
/// Datagrams that make a flow.
const FEW: u64 = 5;

/// A conversation: its client's side first, as far as that is known.
#[derive(Clone, Debug, Default)]
struct Talk {
    began: u64,
    ended: u64,
    /// Packets and payload bytes of the client, and of the other.
    sent: [(u64, u64); 2],
    /// DS field of the first packet.
    dsfield: u8,
    /// The client is here.
    here: bool,
    /// When the first packet of the handshake came by, and how long all of it took.
    syn: Option<u64>,
    rtt: Option<u64>,
}

impl Talk {
    fn bytes(&self) -> u64 {
        self.sent[0].1 + self.sent[1].1
    }

    /// Does more go from the client than to it?
    fn forth(&self) -> bool {
        self.sent[0].1 >= self.sent[1].1
    }

    /// Does its main direction go out?
    fn is_out(&self) -> bool {
        self.here == self.forth()
    }
}

/// A conversation that becomes part of the scenario.
struct Part {
    key: Key,
    talk: Talk,
    id: String,
}

/// Makes the capture's conversations again; what comes back is for standard output.
pub(super) fn replay(options: &Options, surveyed: &Surveyed, seed: u64, again: String) -> anyhow::Result<String> {
    if surveyed.duration > LONGEST {
        bail!(
            "the capture lasts {}, and --closed simulates two hours at most; cut a part out of it with `editcap -A BEGIN -B END`",
            span(surveyed.duration)
        );
    }
    let candidates = gateway::candidates(options, seed)?;
    let (parts, mut notes) = parts(options, surveyed)?;
    if parts.is_empty() {
        bail!("no conversation of the capture can be made again: {}", notes.join("; "));
    }
    let mut experiment: Option<Experiment> = None;
    for candidate in &candidates {
        let text = scenario(options, surveyed, candidate, &parts, seed)?;
        let done = of_text(options.file(), &text).with_context(|| format!("policy {}", candidate.name))?;
        match &mut experiment {
            None => experiment = Some(done),
            Some(all) => {
                all.policies.extend(done.policies);
                all.runs.extend(done.runs);
            }
        }
    }
    let mut experiment = experiment.unwrap_or_default();
    notes.insert(
        0,
        "modelled: the capture's connections are made again with the simulator's TCP; they are not what was captured"
            .into(),
    );
    (experiment.again, experiment.notes) = (again, notes);
    if let Some(path) = &options.html {
        let page = tidegate_report::experiment::page(&experiment);
        crate::output::file(path, page)?;
    }
    Ok(if options.json { tidegate_report::experiment::to_json(&experiment) } else { text(&experiment, &parts) })
}

/// The conversations that are made again, and what is to be known of the others.
fn parts(options: &Options, surveyed: &Surveyed) -> anyhow::Result<(Vec<Part>, Vec<String>)> {
    let mut talks = Talks::default();
    CaptureFile::open(options.file())?.each(|packet, _| {
        if let (Ok(ip), Some(time)) = (frames::open(&packet), packet.time)
            && let Ok(way) = surveyed.rule.way(&ip)
        {
            talks.see(&ip, time.saturating_sub(surveyed.began).min(surveyed.duration), way);
        }
        Ok(())
    })?;
    let mut notes = Vec::new();
    let mut all: Vec<(Key, Talk)> = talks.order.iter().map(|key| (*key, talks.known[key].clone())).collect();
    let before = all.len();
    all.retain(|(key, talk)| {
        talk.bytes() > 0 && (key.protocol == proto::TCP || talk.sent[usize::from(!talk.forth())].0 >= FEW)
    });
    if before > all.len() {
        notes
            .push(format!("{} conversations without payload, or of a few datagrams, are left out", before - all.len()));
    }
    let inward = all.iter().filter(|(_, talk)| !talk.is_out()).count();
    if options.down.is_none() && inward > 0 {
        all.retain(|(_, talk)| talk.is_out());
        notes.push(format!(
            "{inward} conversations that mainly come in are left out: --down says how fast the line is towards here"
        ));
    }
    all.sort_by_key(|(_, talk)| std::cmp::Reverse(talk.bytes()));
    if all.len() > MOST {
        notes.push(format!("the {MOST} largest of {} conversations are made again", all.len()));
        all.truncate(MOST);
    }
    all.sort_by_key(|(_, talk)| talk.began);
    let unseen = all.iter().filter(|(key, talk)| key.protocol == proto::TCP && talk.rtt.is_none()).count();
    if unseen > 0 {
        let rtt = options.rtt.unwrap_or(USUAL_RTT);
        notes.push(format!(
            "the handshakes of {unseen} connections are not in the capture: their round trip is taken as {}",
            span(rtt.0)
        ));
    }
    let part = |(n, (key, talk)): (usize, (Key, Talk))| Part { key, talk, id: format!("talk-{}", n + 1) };
    Ok((all.into_iter().enumerate().map(part).collect(), notes))
}

/// The conversations of a capture.
#[derive(Default)]
struct Talks {
    known: HashMap<Key, Talk>,
    /// In the order in which they began.
    order: Vec<Key>,
}

impl Talks {
    fn see(&mut self, ip: &Ip<'_>, at: u64, way: Direction) {
        let key = Key::of(ip);
        let transport = ip.header() as u32;
        let (headers, flags) = match ip.protocol() {
            proto::TCP => {
                let octet = |at: usize| ip.octets.get(ip.header() + at).copied().unwrap_or(0);
                (transport + u32::from(octet(12) >> 4) * 4, octet(13))
            }
            proto::UDP => (transport + 8, 0),
            _ => return,
        };
        // Who answers a call is not the client, even if the call itself is not in the capture.
        let answers = flags & (tcp_flags::SYN | tcp_flags::ACK) == tcp_flags::SYN | tcp_flags::ACK;
        let (key, by_client) = match self.known.contains_key(&key.back()) || answers {
            true => (key.back(), false),
            false => (key, true),
        };
        if !self.known.contains_key(&key) {
            if self.order.len() >= MOST_KNOWN {
                return;
            }
            self.order.push(key);
            let here = (way == Direction::Out) == by_client;
            self.known.insert(key, Talk { began: at, dsfield: ip.dsfield(), here, ..Talk::default() });
        }
        let Some(talk) = self.known.get_mut(&key) else { return };
        talk.ended = at.max(talk.began);
        let (packets, bytes) = &mut talk.sent[usize::from(!by_client)];
        *packets += 1;
        *bytes += u64::from(ip.len.saturating_sub(headers));
        if flags & (tcp_flags::SYN | tcp_flags::ACK) == tcp_flags::SYN {
            talk.syn = Some(at);
        } else if by_client
            && talk.rtt.is_none()
            && talk.sent[1].0 > 0
            && let Some(syn) = talk.syn
        {
            // The client's first packet after the answer to its call.
            talk.rtt = Some(at.saturating_sub(syn));
        }
    }
}

/// The scenario, for one policy: its devices are its own.
fn scenario(
    options: &Options,
    surveyed: &Surveyed,
    candidate: &Candidate,
    parts: &[Part],
    seed: u64,
) -> anyhow::Result<String> {
    let policy = &candidate.policy;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (rate, buffer) = options.modem().context("--closed needs --rate")?;
    let down = options.down.unwrap_or(rate);
    let seconds = surveyed.duration.div_ceil(1_000_000_000) + AFTER;
    let mut text = format!(
        "title = {}\nduration = \"{seconds}s\"\nwarm-up = \"0s\"\nseed = {seed}\n",
        quoted(&format!("The connections of {}, made again", options.file().display()))
    );
    let mut hosts: BTreeMap<String, String> = BTreeMap::new();
    let (mut here, mut links, mut traffic) = (Vec::new(), String::new(), String::new());
    for part in parts {
        let (source, destination) =
            (as_address(&part.key.source).to_string(), as_address(&part.key.destination).to_string());
        let (near, far) = if part.talk.here { (source, destination) } else { (destination, source) };
        let near = hosts.entry(near).or_insert_with(|| {
            here.push(format!("here-{}", here.len() + 1));
            here[here.len() - 1].clone()
        });
        let near = near.clone();
        // Each has a way of its own to the line, with its own round trip.
        let name = format!("far-{}", part.id);
        let rtt = part.talk.rtt.map_or(options.rtt.unwrap_or(USUAL_RTT).0, |rtt| rtt);
        let _ = writeln!(links, "[links.{name}]\nbetween = [\"isp\", \"{name}\"]\ndelay = \"{}us\"", rtt / 2000);
        let _ = writeln!(links, "[hosts.{name}]\naddress = {}", quoted(&far));
        traffic.push_str(&item(part, &near, &name));
    }
    let names: Vec<String> = here.iter().map(|name| quoted(name)).collect();
    let (lan, wan) = (&policy.lan, policy.beneath.as_ref().unwrap_or(&policy.wan));
    let _ = writeln!(text, "[links.lan]\nbetween = [{}, {}]", names.join(", "), quoted(&format!("gateway:{lan}")));
    let _ = writeln!(text, "[links.cable]\nbetween = [{}, \"modem\"]", quoted(&format!("gateway:{wan}")));
    let bits = |rate: Rate| rate.as_bits();
    let _ = writeln!(
        text,
        "[links.line]\nbetween = [\"modem\", \"isp\"]\nup = {{ rate = \"{}bit\", buffer = \"{buffer}b\" }}\ndown = {{ rate = \"{}bit\", buffer = \"250ms\" }}",
        bits(rate),
        bits(down)
    );
    for (address, name) in &hosts {
        let _ = writeln!(text, "[hosts.{name}]\naddress = {}", quoted(address));
    }
    let ifbs = policy.returning.iter().map(|name| format!("{} = {{}}", quoted(name)));
    let stacked = policy.beneath.iter().map(|lower| format!("{} = {{ on = {} }}", quoted(&policy.wan), quoted(lower)));
    let devices: Vec<String> = ifbs.chain(stacked).collect();
    if !devices.is_empty() {
        let _ = writeln!(text, "[machines.gateway]\ndevices = {{ {} }}", devices.join(", "));
    }
    text.push_str(&links);
    let _ = writeln!(text, "[policies.{}]", quoted(&candidate.name));
    if !candidate.file.is_empty() {
        let path = std::path::absolute(&candidate.file)?;
        let _ = writeln!(text, "gateway = {}", quoted(path.to_str().context("the policy's path is no text")?));
        let args: Vec<String> = candidate.args.iter().map(|arg| quoted(arg)).collect();
        let _ = writeln!(text, "args = [{}]", args.join(", "));
    }
    Ok(text + &traffic)
}

/// A conversation as a scenario says it.
fn item(part: &Part, near: &str, far: &str) -> String {
    let Part { key, talk, id } = part;
    let (from, to) = if talk.is_out() { (near, far) } else { (far, near) };
    let time = |ns: u64| format!("{}us", ns / 1000);
    let mut text = format!(
        "[[traffic]]\nid = \"{id}\"\nstart = \"{}\"\nport = {}\ntos = {}\n",
        time(talk.began),
        key.ports.1.max(1),
        talk.dsfield & 0xfc
    );
    let (packets, bytes) = talk.sent[usize::from(!talk.forth())];
    if key.protocol == proto::TCP {
        // The one who is here calls, whichever way the bytes go.
        let way = if talk.is_out() { format!("{near} -> {far}") } else { format!("{near} <- {far}") };
        let _ = writeln!(text, "tcp = \"{way}\"\nbytes = {}", bytes.max(1));
    } else {
        let every = (talk.ended - talk.began) / packets.saturating_sub(1).max(1);
        let stop = talk.ended + every;
        let _ = writeln!(
            text,
            "udp = \"{from} -> {to}\"\nsize = {}\nevery = \"{}\"\nstop = \"{}\"",
            (bytes / packets.max(1)).clamp(1, 1472),
            time(every.max(1000)),
            time(stop)
        );
    }
    text
}

/// Each conversation under each policy.
fn text(experiment: &Experiment, parts: &[Part]) -> String {
    let mut out = String::from("The capture's conversations, made again: modelled, not captured.\n\n");
    let of = |run: &Run, part: &Part| -> (String, String) {
        if let Some(transfer) = run.transfers.iter().find(|one| one.id == part.id) {
            let took = transfer.finished.map(|at| span(at.saturating_sub(transfer.began)));
            return (took.unwrap_or_else(|| "not done".into()), transfer.lost.to_string());
        }
        let probe = run.probes.iter().find(|one| one.id == part.id);
        probe.map_or_else(Default::default, |probe| {
            let figures = probe.figures(run.window);
            (figures.rtt.percentile(95.0).map_or_else(|| "–".into(), span), percent(figures.loss()))
        })
    };
    let runs = &experiment.runs;
    for (tcp, caption) in [
        (true, "Connections: how long each took, and packets lost"),
        (false, "Datagrams, one way: 95th percentile, and losses"),
    ] {
        let chosen = parts.iter().filter(|part| (part.key.protocol == proto::TCP) == tcp);
        let mut columns = vec![
            ("conversation".to_owned(), Align::Left),
            ("bytes".to_owned(), Align::Right),
            ("rtt".to_owned(), Align::Right),
        ];
        columns.push(("as captured".to_owned(), Align::Right));
        for run in runs {
            columns.push((run.policy.clone(), Align::Right));
            columns.push(("lost".to_owned(), Align::Right));
        }
        let mut table = Table::new(columns);
        for part in chosen {
            let talk = &part.talk;
            let bytes = talk.sent[usize::from(!talk.forth())].1;
            let arrow = if talk.forth() { part.key.to_string() } else { part.key.back().to_string() };
            let captured = if tcp { span(talk.ended - talk.began) } else { "–".to_owned() };
            let mut row = vec![arrow, size(bytes), talk.rtt.map_or_else(|| "–".to_owned(), span), captured];
            for run in runs {
                let (took, lost) = of(run, part);
                row.extend([took, lost]);
            }
            table.row(row);
        }
        if !table.is_empty() {
            let _ = writeln!(out, "{caption}\n\n{table}");
        }
    }
    for note in &experiment.notes {
        let _ = writeln!(out, "Note: {note}");
    }
    let _ = writeln!(out, "Again: {}", experiment.again);
    out
}
