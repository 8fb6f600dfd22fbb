//! R12 of policers: a burst or an mtu that no frame of full length fits in, or not a connection's first ten;
//! and R6: a number that no policer has.

use super::making::{at_word, edit, finding};
use super::measured::FIRST_WINDOW;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::{PacketEntry, Prober};
use crate::reading::{CARRIED_OUT_AT, PolicyModel, Step};
use tidegate_classify::{ActionInput, Policers};
use tidegate_gateway::EgressPath;
use tidegate_packet::LinuxVersion;
use tidegate_packet::header::proto;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Act, Action, Control, Police, Ticks};

/// The longest packet there is.
const LONGEST: u32 = u16::MAX as u32;
/// Frames for which a burst of a policer should have room, and the time at its rate, 1/s of which it should
/// hold.
const FRAMES: u64 = 10;
const TIMES_A_SECOND: u64 = 20;
/// A download's full packet, and an upload's, by the protocols that fill a link.
const FULL: [&str; 4] = [
    "tcp 198.51.100.7:443 > 192.168.1.10:40000 len 1500",
    "tcp 192.168.1.10:40000 > 198.51.100.7:443 len 1500",
    "udp 198.51.100.7:443 > 192.168.1.10:40000 len 1500",
    "udp 192.168.1.10:40000 > 198.51.100.7:443 len 1500",
];

/// Policers by which no frame of full length ever conforms.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let of_filter = |dump: &FilterDump| {
        let FilterEntry::Filter { actions, .. } = &dump.entry else { return Vec::new() };
        // Behind an action that ends all packets none comes to them.
        let met = super::actions::last_met(actions).map_or(actions.len(), |end| end + 1);
        let policers = actions.iter().take(met).filter_map(|action| match &action.action.act {
            // What another command made says nothing of this one's words.
            Act::Police(police) if !is_borrowed(reading, dump, action.action.index) => Some(police),
            _ => None,
        });
        let of = |police| too_small(reading, dump, police).or_else(|| tight(reading, dump, police));
        let mut found: Vec<Finding> = policers.filter_map(of).collect();
        found.extend(actions.iter().filter_map(|action| unmade(reading, dump, &action.action)));
        found
    };
    reading.filters.iter().flat_map(of_filter).collect()
}

/// A policer that is named by its index and that no command gave a rate: Linux makes one of that index that
/// lets all pass.
fn unmade(reading: &PolicyModel, dump: &FilterDump, action: &Action) -> Option<Finding> {
    let Act::Police(police) = &action.act else { return None };
    let limited =
        police.rate.is_some() || police.peak.is_some() || police.average.is_some() || police.packets > 0;
    let step = reading.step_of(reading.maker_of_filter(dump)?)?;
    // Of several policers of one command it is not known which the number is of.
    let mut named = step.words.iter().filter(|word| word.text == "index");
    let policers = step.words.iter().filter(|word| word.text == "police").count();
    named.next().filter(|_| named.next().is_none() && policers == 1)?;
    let number = step.after("index")?;
    let is_said = |word: &&str| step.after(word).is_some();
    let limits = ["rate", "avrate", "pkts_rate", "mtu", "minburst", "peakrate"];
    if number.text.parse() != Ok(action.index) {
        return None;
    }
    if limited && is_borrowed(reading, dump, action.index) {
        let word = limits.iter().find(|word| is_said(word))?;
        return Some(finding(
            Rule::Nowhere,
            Level::Error,
            at_word(step, word),
            format!("policer {} is there already: what is said of it here is not taken", number.text),
            "a filter that names a policer which is there gets that policer as it is".into(),
            format!("policer {} was there before this command", number.text),
        ));
    }
    if limited {
        return None;
    }
    if let Some(word) =
        limits.iter().find(|word| is_said(word)).filter(|word| **word != "mtu" && **word != "minburst")
    {
        return Some(finding(
            Rule::Nowhere,
            Level::Error,
            at_word(step, word),
            format!(
                "policer {} is there already, without a rate: what is said of it here is not taken",
                number.text
            ),
            "a filter that names a policer which is there gets that policer as it is, and every packet \
            conforms to it"
                .into(),
            format!("policer {} has no rate", number.text),
        ));
    }
    if limits.iter().any(is_said) {
        return None;
    }
    // It lets the longest packet pass, and as many as come.
    let refused = |step: &Step| step.refused.is_some() && step.words.iter().any(|word| word.text == "police");
    if longest(police, 0) < LONGEST || reading.steps.iter().any(refused) {
        return None;
    }
    Some(finding(
        Rule::Nowhere,
        Level::Error,
        at_word(step, "index"),
        format!("there is no policer {} before this one, which polices nothing", number.text),
        "a number that no policer has is given to a new one without a rate, and every packet conforms to it"
            .into(),
        format!("policer {} has no rate", number.text),
    ))
}

/// Does an earlier command make the policer of this number, which a filter only names? One without a number
/// gets one that is free, so later commands may meet it by chance.
fn is_borrowed(reading: &PolicyModel, dump: &FilterDump, index: u32) -> bool {
    let has_it = |other: &&FilterDump| match &other.entry {
        FilterEntry::Filter { actions, .. } => actions
            .iter()
            .any(|action| matches!(action.action.act, Act::Police(_)) && action.action.index == index),
        _ => false,
    };
    let Some(own) = reading.maker_of_filter(dump) else { return false };
    let mut makers = reading.filters.iter().filter(has_it).filter_map(|other| reading.maker_of_filter(other));
    makers.any(|maker| maker < own)
}

/// The longest frame that conforms while the bucket is full; 0: none does. At an ingress the frame's head is
/// off, and the bucket pays for what is behind it.
fn longest(police: &Police, header: u32) -> u32 {
    let conforms = |whole: u32| {
        let mut policers = Policers::default();
        let policer = policers.add(police, CARRIED_OUT_AT);
        let meter = ActionInput {
            len: whole - header,
            whole,
            now: CARRIED_OUT_AT,
            passed_over: false,
            linux: LinuxVersion::default(),
        };
        policers.conforms(policer, meter)
    };
    // What a longer frame costs is never less.
    let (mut fits, mut beyond) = (header, LONGEST + 1);
    while beyond - fits > 1 {
        let middle = fits + (beyond - fits) / 2;
        if conforms(middle) { fits = middle } else { beyond = middle }
    }
    if fits == header { 0 } else { fits }
}

fn too_small(reading: &PolicyModel, dump: &FilterDump, police: &Police) -> Option<Finding> {
    let frame = reading.frame(&dump.dev);
    let arrives = reading.arrives(dump);
    let device = reading.gateway.device(&dump.dev)?;
    let header = if arrives { reading.gateway.spec(device).link_header } else { 0 };
    let most = longest(police, header);
    // `police mtu 1 drop` without a rate blocks what comes to it, which is what it is written for.
    if most >= frame || most == 0 && police.rate.is_none() && police.packets == 0 {
        return None;
    }
    let step = reading.step_of(reading.maker_of_filter(dump)?)?;
    let by_mtu = longest(&Police { mtu: u32::MAX, ..*police }, header) >= frame;
    let keywords = if by_mtu { &["mtu", "minburst"][..] } else { &["burst", "buffer", "maxburst"] };
    let keyword = keywords.iter().find(|keyword| step.after(keyword).is_some())?;
    let value = step.after(keyword)?;
    let drops = police.exceed == Control::Drop;
    let fate = if drops { "is dropped, every one" } else { "counts as too fast, every one" };
    let shown = drops.then(|| dropped(reading, dump, arrives, step)).flatten();
    let what = match most {
        0 => format!("a policer with {keyword} {} lets no packet conform", value.text),
        _ => {
            format!("a policer with {keyword} {} lets no frame of more than {most} bytes conform", value.text)
        }
    };
    let level = if shown.is_some() { Level::Error } else { Level::Warning };
    let unknown = match level {
        Level::Error => "",
        _ => "; whether one comes to it was not decided",
    };
    let because = format!(
        "a frame of {frame} bytes that comes to it {fate}, even when none came before it for long{unknown}"
    );
    let witness = format!("with a full bucket {most} bytes conform, {} do not", most + 1);
    let mut found = finding(Rule::Burst, level, at_word(step, keyword), what, because, witness);
    found.witness = shown.or(found.witness);
    found.fix = match police.rate {
        Some(rate) if !by_mtu => {
            let enough = (u64::from(frame) * FRAMES).max(rate.rate.0 / TIMES_A_SECOND);
            let why = format!("room for {FRAMES} frames, and {} ms at its rate", 1000 / TIMES_A_SECOND);
            let fix = edit(step, keyword, &enough.to_string(), &why);
            // Its mtu may stop the same frames.
            let roomy = Police { burst: Ticks(u32::MAX), ..*police };
            let second = ["mtu", "minburst"].into_iter().filter(|_| longest(&roomy, header) < frame);
            let second =
                second.filter_map(|word| edit(step, word, &frame.next_power_of_two().to_string(), "and"));
            fix.map(|first| second.fold(first, joined))
        }
        _ => edit(step, keyword, &frame.next_power_of_two().to_string(), "room for a frame"),
    };
    Some(found)
}

/// A bucket that drops packets of a single connection's first window: so many frames conform when they come
/// at once after a pause.
fn tight(reading: &PolicyModel, dump: &FilterDump, police: &Police) -> Option<Finding> {
    // What a peak rate lets pass at once, its own bucket says.
    let rate = police.rate.filter(|_| police.exceed == Control::Drop && police.peak.is_none())?;
    let frame = reading.frame(&dump.dev);
    let device = reading.gateway.device(&dump.dev)?;
    let header = if reading.arrives(dump) { reading.gateway.spec(device).link_header } else { 0 };
    let mut policers = Policers::default();
    let policer = policers.add(police, CARRIED_OUT_AT);
    let meter = ActionInput {
        len: frame - header,
        whole: frame,
        now: CARRIED_OUT_AT,
        passed_over: false,
        linux: LinuxVersion::default(),
    };
    let passed = (0..FIRST_WINDOW).take_while(|_| policers.conforms(policer, meter)).count() as u32;
    if !(1..FIRST_WINDOW).contains(&passed) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_filter(dump)?)?;
    let keyword =
        ["burst", "buffer", "maxburst"].into_iter().find(|keyword| step.after(keyword).is_some())?;
    let word = step.after(keyword).filter(|_| takes_tcp(reading, dump, step))?;
    let mut found = finding(
        Rule::Burst,
        Level::Note,
        at_word(step, keyword),
        format!("a policer with {keyword} {} may drop packets of a single burst", word.text),
        format!(
            "a TCP connection may begin with {FIRST_WINDOW} packets at once (RFC 6928): up to {} of them \
            are lost here, as a policer has no queue",
            FIRST_WINDOW - passed
        ),
        format!("of {FIRST_WINDOW} frames of {frame} bytes at once, with a full bucket, {passed} conform"),
    );
    let enough = (u64::from(frame) * FRAMES).max(rate.rate.0 / TIMES_A_SECOND);
    let why = format!("room for {FRAMES} frames, and {} ms at its rate", 1000 / TIMES_A_SECOND);
    found.fix = edit(step, keyword, &enough.to_string(), &why);
    Some(found)
}

/// Both remedies as one.
pub(super) fn joined(first: Fix, second: Fix) -> Fix {
    let edits = first.edits.into_iter().chain(second.edits).collect();
    Fix { what: format!("{}; {}", first.what, second.what), edits }
}

/// Full packets, some of them with the ports and addresses that a filter's command matches.
fn full_packets(step: &Step) -> impl Iterator<Item = Packet> {
    let port = |keywords: [&str; 2]| {
        keywords.iter().find_map(|keyword| step.after(keyword)?.text.parse::<u16>().ok())
    };
    let (from, to) = (port(["sport", "src_port"]), port(["dport", "dst_port"]));
    let address = |keywords: [&str; 2]| {
        let text = &keywords.iter().find_map(|keyword| step.after(keyword))?.text;
        text.split('/').next()?.parse::<std::net::IpAddr>().ok()
    };
    let (source, destination) = (address(["src", "src_ip"]), address(["dst", "dst_ip"]));
    let plain = FULL.into_iter().filter_map(|text| Packet::parse(text).ok());
    let packet_of = move |packet: Packet| Packet {
        ports: (from.unwrap_or(packet.ports.0), to.unwrap_or(packet.ports.1)),
        source: source.filter(|address| address.is_ipv4()).unwrap_or(packet.source),
        destination: destination.filter(|address| address.is_ipv4()).unwrap_or(packet.destination),
        ..packet
    };
    plain.clone().chain(plain.map(packet_of))
}

/// A full packet that the engine drops at this filter.
fn dropped(reading: &PolicyModel, dump: &FilterDump, arrives: bool, step: &Step) -> Option<Witness> {
    let mut prober = Prober::new(reading);
    let device = prober.device(&dump.dev)?;
    let course = if arrives {
        PacketEntry::Arrives(device)
    } else {
        PacketEntry::Leaves(device, EgressPath::Forwarded(None))
    };
    full_packets(step).find_map(|mut packet| {
        if arrives {
            packet.from = Some(dump.dev.clone())
        } else {
            packet.to = Some(dump.dev.clone())
        }
        let before = drops_of(&mut prober, dump);
        let way = prober.travel(&packet, course);
        let after = drops_of(&mut prober, dump);
        let here = way.dropped.is_some_and(|loss| loss.device == device) && after > before;
        here.then(|| Witness::Packet {
            packet: packet.to_string(),
            went: "no queue: it is dropped".to_owned(),
        })
    })
}

/// Does a full packet of TCP come to a filter's actions?
fn takes_tcp(reading: &PolicyModel, dump: &FilterDump, step: &Step) -> bool {
    let mut prober = Prober::new(reading);
    let Some(device) = prober.device(&dump.dev) else { return false };
    let arrives = reading.arrives(dump);
    let course = if arrives {
        PacketEntry::Arrives(device)
    } else {
        PacketEntry::Leaves(device, EgressPath::Forwarded(None))
    };
    let mut tcp = full_packets(step).filter(|packet| packet.protocol == proto::TCP);
    tcp.any(|mut packet| {
        *if arrives { &mut packet.from } else { &mut packet.to } = Some(dump.dev.clone());
        let seen =
            |prober: &mut Prober| prober.actions_of(dump).iter().map(|action| action.packets).sum::<u64>();
        let before = seen(&mut prober);
        let _ = prober.travel(&packet, course);
        seen(&mut prober) > before
    })
}

/// How many packets a filter's actions dropped.
fn drops_of(prober: &mut Prober, filter: &FilterDump) -> u64 {
    prober.actions_of(filter).iter().map(|action| u64::from(action.drops)).sum()
}
