//! R13 of queues that drop packets of a single connection's first window: by their limit, or because the
//! device has a short queue of its own.

use super::making::{at_word, finding};
use super::measured::{ACKNOWLEDGEMENT, FIRST_WINDOW, MOST_SHAPES, draws, led_to, longest_of};
use crate::drive::Bench;
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, Step, Word};
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::spec::ValueKind;
use tidegate_policy::{Kind, QdiscParams, Waits};
use tidegate_syntax::units::parse_size;

/// Words that give a queue its length in packets, bytes or time.
const LIMITS: [&str; 4] = ["limit", "flow_limit", "latency", "lat"];

/// Such queues.
pub(super) fn check(reading: &PolicyModel, bench: &mut Bench<'_>) -> Vec<Finding> {
    let mut survived = BTreeMap::new();
    let mut found: Vec<Finding> = Vec::new();
    for qdisc in &reading.qdiscs {
        found.extend(LIMITS.iter().filter_map(|word| tiny(reading, bench, &mut survived, (qdisc, word))));
    }
    let mut devices: Vec<&str> = Vec::new();
    for qdisc in reading.qdiscs.iter().filter(|qdisc| !qdisc.handle.is_none()) {
        if !devices.contains(&qdisc.dev.as_str()) {
            devices.push(&qdisc.dev);
        }
    }
    found.extend(devices.into_iter().filter_map(|dev| by_device(reading, bench, dev)));
    found
}

/// Queues that are alike let as many survive: by device, kind, limit and longest frame, at the root or not.
type Survived = BTreeMap<(String, &'static str, String, u32, bool), Option<u32>>;

/// Does a word give a bucket's queue its length as a time?
fn is_time(keyword: &str) -> bool {
    matches!(keyword, "latency" | "lat")
}

/// Frames that a limit has room for, in the unit of its kind.
fn room(qdisc: &QdiscDump, keyword: &str, limit: &str, frame: u32) -> Option<u64> {
    let kind = qdisc.kind;
    // tc makes bytes of a bucket's time.
    if let QdiscParams::Tbf(tbf) = &qdisc.params
        && is_time(keyword)
    {
        return Some(u64::from(tbf.limit / frame.max(1)));
    }
    let options = kind.spec().qdisc?;
    let option = options.iter().find(|option| option.key == keyword)?;
    // tc reads these as sizes, and Linux as packets.
    let in_packets = matches!(kind, Kind::Pfifo | Kind::PfifoHeadDrop | Kind::Skbprio | Kind::Netem);
    match option.value {
        ValueKind::Size if in_packets => parse_size(limit).map(u64::from),
        ValueKind::Size => parse_size(limit).map(|bytes| u64::from(bytes / frame.max(1))),
        _ => limit.parse().ok(),
    }
}

/// A limit that drops packets of a single connection's first window.
fn tiny(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    survived: &mut Survived,
    (qdisc, keyword): (&QdiscDump, &str),
) -> Option<Finding> {
    let step = reading.step_of(reading.maker_of_qdisc(qdisc)?)?;
    let limit = step.after(keyword)?;
    let class = led_to(reading, qdisc)?;
    let frame = reading
        .class(&qdisc.dev, class)
        .map_or(reading.frame(&qdisc.dev), |class| longest_of(reading, class));
    // Its limit has room for them: what it drops of them is dropped by design, to keep the queue short, or
    // for another limit's sake.
    let room = room(qdisc, keyword, &limit.text, frame)?;
    // A bucket's limit is that of its own queue: another queue in its place has its own.
    let replaced = |inner: &QdiscDump| inner.dev == qdisc.dev && inner.parent.qdisc() == qdisc.handle;
    if qdisc.kind == Kind::Tbf && !qdisc.handle.is_none() && reading.qdiscs.iter().any(replaced) {
        return None;
    }
    if room >= u64::from(FIRST_WINDOW) {
        return None;
    }
    // How packets come out of a netem that draws is another story each time.
    if reading.qdiscs.iter().any(|other| other.dev == qdisc.dev && draws(&other.params)) {
        return None;
    }
    let words = format!("{keyword} {}", limit.text);
    let shape = (qdisc.dev.clone(), qdisc.kind.name(), words.clone(), frame, class.is_none());
    if survived.len() >= MOST_SHAPES && !survived.contains_key(&shape) {
        return None;
    }
    let measure = || bench.survivors(&qdisc.dev, class, frame, FIRST_WINDOW);
    let left = (*survived.entry(shape).or_insert_with(measure))?;
    // Another limit may let still fewer in, as that of a bucket or a netem above; fq_codel makes room by
    // dropping half of the backlog.
    let is_within = reading.above(qdisc).any(|other| matches!(other.kind, Kind::Tbf | Kind::Netem));
    let doubtful = u64::from(left) < room || is_within;
    if doubtful && !is_cause(reading, qdisc, (step, keyword), (class, frame)) {
        return None;
    }
    if left == 0 && is_time(keyword) {
        // The bucket's burst is the least that its queue holds, and R12 is about that.
        return None;
    }
    if left == 0 {
        return takes_nothing(bench, qdisc, class, frame, (step, keyword, limit));
    }
    // Where only short packets come, none begins a connection's transfer.
    let whole = frame == reading.frame(&qdisc.dev);
    (whole && (1..FIRST_WINDOW).contains(&left)).then(|| {
        let what = format!("{} with {words} may drop packets of a single burst", qdisc.kind.name());
        let because = format!(
            "a TCP connection may begin with {FIRST_WINDOW} packets at once (RFC 6928): up to {} of them \
            are lost here, as they come faster than they leave",
            FIRST_WINDOW - left
        );
        let witness = format!(
            "of {FIRST_WINDOW} frames of {frame} bytes offered before any left {left} \
        were taken"
        );
        // A time is a limit on the delay that the policy asks for.
        let level = if is_time(keyword) { Level::Note } else { Level::Warning };
        finding(Rule::Limit, level, at_word(step, keyword), what, because, witness)
    })
}

/// Are all ten taken where the limit is long enough?
fn is_cause(
    reading: &PolicyModel,
    qdisc: &QdiscDump,
    (step, keyword): (&Step, &str),
    (class, frame): (Handle, u32),
) -> bool {
    let mut words: Vec<String> = step.words.iter().map(|word| word.text.clone()).collect();
    let value = words.iter().position(|word| word == keyword).and_then(|at| words.get_mut(at + 1));
    let Some(value) = value else { return false };
    *value = if is_time(keyword) { LONG_ENOUGH } else { ENOUGH }.to_owned();
    let tried = Bench::rebuilt(reading, &words)
        .and_then(|mut bench| bench.survivors(&qdisc.dev, class, frame, FIRST_WINDOW));
    tried == Some(FIRST_WINDOW)
}

/// A limit under which ten packets are never dropped, in packets or bytes.
const ENOUGH: &str = "1000000";
/// The same as a time.
const LONG_ENOUGH: &str = "1000s";

/// Leaf queues without a limit of their own, and that are as long as their device's transmit queue: 3 packets
/// on ppp and the like.
fn by_device(reading: &PolicyModel, bench: &mut Bench<'_>, dev: &str) -> Option<Finding> {
    let length = reading.gateway.spec(reading.gateway.device(dev)?).tx_queue_len;
    let root = reading.root(dev)?;
    if length >= FIRST_WINDOW || root.handle.is_none() {
        return None;
    }
    let frame = reading.frame(dev);
    // A FIFO at the root, or the FIFOs of leaf classes that have no length of their own.
    let is_unlimited = |queue: &QdiscDump| {
        let step = reading.maker_of_qdisc(queue).and_then(|op| reading.step_of(op));
        is_fifo(queue.kind) && step.is_some_and(|step| step.after("limit").is_none())
    };
    let is_bare = |class: &&ClassDump| {
        let own = class.dev == dev && class.classid.qdisc() == root.handle && class.classid.minor() != 0;
        own && reading.is_leaf(class)
            && reading.child(class).map_or_else(|| !reading.lost.below(class), is_unlimited)
    };
    let mut bare: Vec<&ClassDump> = reading.classes.iter().filter(is_bare).collect();
    bare.sort_by_key(|class| class.classid);
    let (op, class) = match root.kind {
        kind if is_fifo(kind) => (reading.maker_of_qdisc(root)?, Handle::NONE),
        // A bucket's own queue is as long as its limit.
        Kind::Tbf => return None,
        _ => {
            let first = bare.first()?;
            let of_queue = reading.child(first).and_then(|queue| reading.maker_of_qdisc(queue));
            let of_class = || reading.maker_of_class(dev, first.classid);
            let maker = of_queue.or_else(of_class).or_else(|| reading.maker_of_qdisc(root));
            (maker?, first.classid)
        }
    };
    let step = reading.step_of(op)?;
    if step.after("limit").is_some() {
        return None;
    }
    let left = bench.survivors(dev, class, frame, FIRST_WINDOW)?;
    if left >= FIRST_WINDOW || left == 0 && length > 0 {
        return None;
    }
    let (whose, at) = match class {
        Handle::NONE => ("the FIFO at the root".to_owned(), "root".to_owned()),
        class if bare.len() == 1 => (format!("the FIFO of class {class}"), format!("parent {class}")),
        class => {
            (format!("the FIFOs of class {class} and {} more", bare.len() - 1), format!("parent {class}"))
        }
    };
    let several = bare.len() > 1 && !class.is_none();
    let (level, holds, because) = match (left, several) {
        (0, false) => (Level::Error, "takes no packet".to_owned(), TAKES_NOTHING.to_owned()),
        (0, true) => (Level::Error, "take no packet".to_owned(), TAKES_NOTHING.to_owned()),
        _ => {
            let holds = format!("{} {left} packets", if several { "hold" } else { "holds" });
            let because = format!(
                "a TCP connection may begin with {FIRST_WINDOW} packets at once (RFC 6928): up to {} of \
                them are lost here, as they come faster than they leave",
                FIRST_WINDOW - left
            );
            (Level::Warning, holds, because)
        }
    };
    let what = format!("{whose} {holds}: {dev} has a transmit queue of {length} (txqueuelen)");
    let taken = if left == 0 { "none was taken".to_owned() } else { format!("{left} were taken") };
    let witness = format!("of {FIRST_WINDOW} frames of {frame} bytes offered before any left {taken}");
    let place = step.place.clone();
    let mut finding = finding(Rule::Limit, level, place, what, because, witness);
    let queue = format!("a queue of its own: tc qdisc replace dev {dev} {at} fq_codel");
    finding.fix = Some(Fix { what: queue, edits: Vec::new() });
    Some(finding)
}

fn is_fifo(kind: Kind) -> bool {
    matches!(kind, Kind::Pfifo | Kind::Bfifo | Kind::PfifoHeadDrop)
}

/// What comes of a queue without room.
const TAKES_NOTHING: &str = "whatever comes to it is dropped";

/// A limit under which no long packet is taken, or none at all. Where something else may stop them, there is
/// no finding.
fn takes_nothing(
    bench: &mut Bench<'_>,
    qdisc: &QdiscDump,
    class: Handle,
    frame: u32,
    (step, keyword, limit): (&Step, &str, &Word),
) -> Option<Finding> {
    let dev = &qdisc.dev;
    let short = bench.survivors(dev, class, ACKNOWLEDGEMENT, 1)?;
    let name = qdisc.kind.name();
    let (what, because) = match short {
        1.. if frame > ACKNOWLEDGEMENT => (
            format!("{name} with {keyword} {} takes no frame of {frame} bytes", limit.text),
            "packets of full length are dropped, every one: transfers whose data comes here stall",
        ),
        0 if qdisc.kind.waits() == Waits::UntilFull && limit.text == "0" => {
            (format!("{name} with {keyword} 0 takes no packet"), TAKES_NOTHING)
        }
        _ => return None,
    };
    let witness = format!("of {FIRST_WINDOW} frames of {frame} bytes none was taken");
    Some(finding(Rule::Limit, Level::Error, at_word(step, keyword), what, because.to_owned(), witness))
}
