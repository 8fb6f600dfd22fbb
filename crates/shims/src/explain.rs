//! What the kernel leaves unsaid when it refuses: why, and what to do instead.

use crate::call::NOTHING_THERE;
use crate::machine::Machine;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{
    ClassLayout, ClassOp, Errno, FilterOp, FilterParams, Kind, Op, QdiscOp, QdiscParams, TcError, Verb,
};

/// An explanation for the writer of the script; `None` where the kernel's message is enough.
pub(super) fn explain(machine: &mut Machine, op: &Op, error: &TcError) -> Option<String> {
    match op {
        Op::Qdisc(op) if has_words(error, "Specified class not found") => {
            Some(no_class(machine, &op.dev, op.parent))
        }
        Op::Qdisc(op) => {
            let inner = error.errno == Errno::Inval
                && error.message.is_none()
                && has_below(machine, &op.dev, op.parent);
            let on_inner = || {
                format!("Class {} has classes below it; a qdisc hangs on one of those, a leaf.", op.parent)
            };
            let is_other = op.verb == Verb::Delete
                && (has_words(error, "Invalid qdisc name") || has_words(error, "Invalid handle"));
            match () {
                () if inner => Some(on_inner()),
                () if is_other => Some(is_there(machine, op).unwrap_or_else(nothing_to_delete)),
                () => qdisc(op, error),
            }
        }
        Op::Class(op) => {
            let lacks_parent = error.errno == Errno::NoEnt
                && op.verb != Verb::Delete
                && op.parent.minor() != 0
                && op.parent != Handle::ROOT
                && qdisc_exists(machine, &op.dev, op.parent.qdisc())
                && !has_class(machine, &op.dev, op.parent);
            let kind = kind_of(machine, &op.dev, op.classid.qdisc());
            let is_other = op.verb != Verb::Delete && op.kind.as_deref() != kind.map(Kind::name);
            match (error.errno, kind) {
                _ if lacks_parent => Some(no_class(machine, &op.dev, op.parent)),
                (Errno::Exist | Errno::Inval, Some(kind)) if is_other => {
                    let (qdisc, asked) = (op.classid.qdisc(), op.kind.as_deref().unwrap_or("this kind"));
                    Some(format!(
                        "{qdisc} on {} is {}, which has no classes of {asked}.",
                        op.dev,
                        kind.name()
                    ))
                }
                _ => class(op, error),
            }
        }
        Op::Filter(op) => filter(machine, op, error),
        _ => None,
    }
}

fn has_words(error: &TcError, words: &str) -> bool {
    error.message.as_deref().is_some_and(|message| message.contains(words))
}

fn no_qdisc(dev: &str, handle: Handle) -> String {
    let handle = handle.qdisc();
    format!(
        "There is no qdisc {handle} on {dev}; add it first: tc qdisc add dev {dev} root handle {handle} KIND."
    )
}

/// Whether a device has a qdisc with this handle.
fn qdisc_exists(machine: &mut Machine, dev: &str, handle: Handle) -> bool {
    let (now, gateway) = (machine.now, &mut machine.gateway);
    let qdiscs = gateway.device(dev).map(|id| gateway.qdiscs(now, id)).unwrap_or_default();
    qdiscs.iter().any(|qdisc| qdisc.handle == handle)
}

/// The kind of the qdisc with a handle, if it is there.
fn kind_of(machine: &mut Machine, dev: &str, handle: Handle) -> Option<Kind> {
    let (now, gateway) = (machine.now, &mut machine.gateway);
    let qdiscs = gateway.device(dev).map(|id| gateway.qdiscs(now, id)).unwrap_or_default();
    qdiscs.iter().find(|qdisc| qdisc.handle == handle && !handle.is_none()).map(|qdisc| qdisc.kind)
}

/// What is in the place of a qdisc that a deletion names by another kind or handle; `None`: nothing that a
/// command made.
fn is_there(machine: &mut Machine, op: &QdiscOp) -> Option<String> {
    let (now, gateway) = (machine.now, &mut machine.gateway);
    let qdiscs = gateway.device(&op.dev).map(|id| gateway.qdiscs(now, id)).unwrap_or_default();
    let is_it = |qdisc: &QdiscDump| match op.parent {
        Handle::NONE => qdisc.handle == op.handle,
        parent => qdisc.parent == parent,
    };
    let qdisc = qdiscs.iter().find(|qdisc| is_it(qdisc) && !qdisc.handle.is_none())?;
    let (kind, handle) = (qdisc.kind.name(), qdisc.handle);
    Some(format!("What is there is {kind} {handle} on {}: name that, or leave kind and handle out.", op.dev))
}

/// The classes of a device; none where there is no such device.
fn classes(machine: &mut Machine, dev: &str) -> Vec<ClassDump> {
    let (now, gateway) = (machine.now, &mut machine.gateway);
    gateway.device(dev).map(|id| gateway.classes(now, id)).unwrap_or_default()
}

/// Whether a device has this class.
fn has_class(machine: &mut Machine, dev: &str, class: Handle) -> bool {
    classes(machine, dev).iter().any(|one| one.classid == class)
}

/// Has a class others below it?
fn has_below(machine: &mut Machine, dev: &str, class: Handle) -> bool {
    class.minor() != 0 && class != Handle::ROOT && classes(machine, dev).iter().any(|one| one.parent == class)
}

/// The class that a qdisc was to be attached to does not exist: some kinds' classes are made by hand, others'
/// come with them.
fn no_class(machine: &mut Machine, dev: &str, class: Handle) -> String {
    let classes = classes(machine, dev);
    let (now, gateway) = (machine.now, &mut machine.gateway);
    let device = gateway.device(dev);
    let mut qdiscs = device.map(|id| gateway.qdiscs(now, id)).unwrap_or_default().into_iter();
    let kind = qdiscs.find(|qdisc| qdisc.handle == class.qdisc()).map(|qdisc| qdisc.kind);
    if class.minor() == 0 {
        return format!(
            "{class} names a qdisc; what hangs below one hangs on a class of it, such as {class}1."
        );
    }
    let Some(kind) = kind.filter(|kind| kind.spec().classes != ClassLayout::Made) else {
        return format!(
            "There is no class {class} on {dev}; make it first, or correct the number (class numbers are \
            hexadecimal)."
        );
    };
    let takes_bands =
        kind.spec().qdisc.is_some_and(|options| options.iter().any(|option| option.key == "bands"));
    let more = if takes_bands { ", or give it more bands" } else { "" };
    let own: Vec<Handle> =
        classes.iter().map(|one| one.classid).filter(|id| id.qdisc() == class.qdisc()).collect();
    let has = match own[..] {
        [] => "has no class".to_owned(),
        [only] => format!("has the class {only} only"),
        [first, .., last] => format!("has the classes {first} to {last}"),
    };
    format!(
        "There is no class {class} on {dev}: the {} {} {has}. Correct the number (class numbers are \
        hexadecimal){more}.",
        kind.name(),
        class.qdisc()
    )
}

fn qdisc(op: &QdiscOp, error: &TcError) -> Option<String> {
    let dev = &op.dev;
    if has_words(error, "kind is unknown") {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        let condition = op.kind.as_deref().unwrap_or_default();
        let begins =
            || known.iter().copied().find(|name| !condition.is_empty() && name.starts_with(condition));
        let near = tidegate_syntax::nearest(condition, known.iter().copied()).or_else(begins);
        let near = near.map_or(String::new(), |name| format!(" did you mean {name}?"));
        return Some(format!("There is no kind \"{condition}\" here;{near} known are {}.", known.join(", ")));
    }
    let absent = ["Failed to find", "Cannot find specified qdisc", "handle of zero"];
    if op.verb == Verb::Delete && absent.iter().any(|text| has_words(error, text)) {
        return Some(nothing_to_delete());
    }
    if has_words(error, "Failed to find") {
        return Some(no_qdisc(dev, op.parent));
    }
    if has_words(error, "Exclusivity flag") && op.parent == Handle::INGRESS {
        return Some(format!(
            "There is an ingress or clsact already; delete it first: tc qdisc del dev {dev} ingress (or clsact)."
        ));
    }
    if has_words(error, "Exclusivity flag") && !op.handle.is_none() {
        return Some(format!(
            "There is a qdisc with this handle already; delete it first (tc qdisc del dev {dev} …), which deletes all \
             below it, or change what it has with change or replace, if its kind can be changed."
        ));
    }
    if has_words(error, "Exclusivity flag") || has_words(error, "NLM_F_REPLACE needed") {
        return Some(format!(
            "There is a qdisc already; delete it first (tc qdisc del dev {dev} …), write replace instead of \
            add, which deletes it with all below it, or give this one a parent of its own."
        ));
    }
    if has_words(error, "Cannot move an existing qdisc") {
        return Some(format!(
            "The handle {} is another qdisc's on {dev}; give this one a handle of its own.",
            op.handle
        ));
    }
    if has_words(error, "Invalid qdisc name") {
        return Some(match op.verb {
            Verb::Replace if op.parent == Handle::INGRESS || op.handle.is_none() => {
                format!("What is there cannot be replaced by another kind; delete it first (tc qdisc del dev {dev} …).")
            }
            Verb::Replace => format!(
                "A qdisc of another kind has the handle {} there; leave the handle out, or name another.",
                op.handle
            ),
            _ if op.parent.is_none() => {
                "The qdisc with this handle is of another kind; delete it by its place (root, or parent CLASSID), \
                 and add this one there."
                    .into()
            }
            _ => "There is a qdisc of another kind; replace instead of change puts this one in its place."
                .into(),
        });
    }
    if has_words(error, "reserved for ingress") {
        return Some(format!(
            "{} is the place of ingress and clsact, which queue nothing; attach this qdisc to root or to a \
            class. To queue what arrives at {dev}, redirect it to an ifb.",
            op.parent
        ));
    }
    if has_words(error, "Change operation") {
        return Some("This kind cannot be changed while it runs; delete it and add it again.".into());
    }
    if error.errno == Errno::OpNotSupp
        && let Some(kind) = op.kind.as_deref().and_then(Kind::from_name)
        && matches!(kind, Kind::Multiq | Kind::Mq)
    {
        return Some(by_queue(kind, op));
    }
    if error.errno == Errno::Inval && op.verb != Verb::Delete && error.message.is_none() {
        return of_values(op);
    }
    None
}

/// Which values of a qdisc the kernel refuses without a word, where that is known.
fn of_values(op: &QdiscOp) -> Option<String> {
    let kind = op.kind.as_deref()?;
    Some(match &op.params {
        Some(QdiscParams::Tbf(tbf)) if tbf.peak.is_some_and(|peak| peak.rate <= tbf.rate.rate) => {
            "A peakrate is above the rate, or it has nothing to limit; leave peakrate and mtu out, or write a \
             higher one."
                .to_owned()
        }
        Some(QdiscParams::Sfq(sfq)) if sfq.divisor > 65_536 || sfq.divisor.count_ones() > 1 => {
            "divisor is a power of two, 65536 at most: 1024, for example.".to_owned()
        }
        _ => format!(
            "{kind} does not take these values: one is out of its range, or they do not fit each other \
             (`tc qdisc add dev {} root {kind} help` lists the options).",
            op.dev
        ),
    })
}

/// multiq and mq want a device with several transmit queues, and mq to be its root.
fn by_queue(kind: Kind, op: &QdiscOp) -> String {
    let dev = &op.dev;
    match kind {
        Kind::Mq if op.parent != Handle::ROOT => {
            format!("mq is for the transmit queues of a device: it can be the root of {dev} only.")
        }
        Kind::Mq => format!(
            "mq has a qdisc for each transmit queue, and {dev} has one queue: attach the qdisc to {dev} \
            itself. A device with several queues, as cards have them, is made by ip link add {dev} \
            numtxqueues 4 type dummy."
        ),
        _ => format!(
            "multiq has a band for each transmit queue, and {dev} has one queue. Make the device with \
            several, as cards have them: ip link add {dev} numtxqueues 4 type dummy."
        ),
    }
}

fn nothing_to_delete() -> String {
    format!(
        "{NOTHING_THERE}, so there is nothing to delete; where that is no mistake, add 2>/dev/null or || true."
    )
}

fn class(op: &ClassOp, error: &TcError) -> Option<String> {
    let (dev, id) = (&op.dev, op.classid);
    match error.errno {
        Errno::NoEnt if op.verb == Verb::Add || op.verb == Verb::Replace => {
            Some(no_qdisc(dev, if id.major() == 0 { op.parent } else { id }))
        }
        Errno::NoEnt if id.is_none() => Some("Name the class by its number: classid 1:10.".into()),
        Errno::NoEnt => Some(format!("There is no class {id} on {dev}.")),
        Errno::Exist | Errno::OpNotSupp if id.qdisc() == Handle::INGRESS.qdisc() => Some(format!(
            "An ingress or clsact has no classes that are made: they queue nothing. To queue what arrives at {dev}, \
             redirect it to an ifb."
        )),
        Errno::Exist => Some(format!(
            "There is a class {id} on {dev} already: choose another number, or write change or replace if its qdisc is \
            of this kind."
        )),
        Errno::Busy => Some(format!("Class {id} has children, or a filter leads to it; delete those first.")),
        Errno::Inval if id.is_none() && op.parent != Handle::ROOT => {
            Some("The class has no number: say which it gets (classid 1:10).".into())
        }
        Errno::Inval
            if op.parent != Handle::ROOT && !op.parent.is_none() && id.qdisc() != op.parent.qdisc() =>
        {
            Some(format!("A class and its parent belong to one qdisc: {id} cannot hang on {}.", op.parent))
        }
        Errno::Inval if op.kind.as_deref() == Some(Kind::Htb.name()) => {
            Some("HTB takes no class with these values; it has at most eight levels of classes.".into())
        }
        Errno::Inval => Some("The qdisc takes no class with these values.".into()),
        Errno::OpNotSupp => Some(
            "The classes of this qdisc come and go with it; they are not made or deleted by hand.".into(),
        ),
        _ => None,
    }
}

fn filter(machine: &mut Machine, op: &FilterOp, error: &TcError) -> Option<String> {
    let dev = &op.dev;
    let absent = ["Parent Qdisc", "Specified class doesn't exist", "Qdisc not classful"];
    if op.verb == Verb::Delete && absent.iter().any(|text| has_words(error, text)) {
        return Some(nothing_to_delete());
    }
    if has_words(error, "Parent Qdisc") {
        if op.parent == Handle::CLSACT_EGRESS {
            return Some(format!(
                "Only a clsact qdisc has filters of what leaves, and {dev} has none; add it first: tc qdisc add dev \
                 {dev} clsact."
            ));
        }
        let parent = if op.parent.is_none() {
            "root qdisc".to_owned()
        } else {
            format!("qdisc {}", op.parent.qdisc())
        };
        if !op.parent.sees_arriving() && qdisc_exists(machine, dev, Handle::INGRESS.qdisc()) {
            return Some(format!(
                "{dev} has no {parent} for the filter to hang on; its ingress qdisc is ffff:, whatever handle it \
                 was given."
            ));
        }
        return Some(format!("{dev} has no {parent} for the filter to hang on; add that first."));
    }
    if has_words(error, "Specified class doesn't exist") {
        return Some(format!("There is no class {} on {dev} for the filter to hang on.", op.parent));
    }
    if has_words(error, "kind does not match") && op.verb == Verb::Delete {
        return Some(format!(
            "Preference {} has filters of another kind: leave the kind out, or name that of what is there.",
            op.pref
        ));
    }
    if has_words(error, "kind does not match") {
        return Some(format!(
            "Preference {} is taken by filters of another kind; choose another prio.",
            op.pref
        ));
    }
    if has_words(error, "priority/protocol not found") && op.verb != Verb::Delete {
        return Some(format!(
            "Preference {} is taken by filters for another protocol; choose another prio.",
            op.pref
        ));
    }
    if has_words(error, "already exists") {
        return Some("There is such a filter already; write replace, or another handle.".into());
    }
    if error.message.is_none() { unsaid_of_filter(op, error.errno) } else { None }
}

/// Where the kernel gives a number only: what it wants of a filter of this kind.
fn unsaid_of_filter(op: &FilterOp, errno: Errno) -> Option<String> {
    let dev = &op.dev;
    if op.verb == Verb::Delete {
        return (errno == Errno::NoEnt)
            .then(|| format!("There is no such filter; tc filter show dev {dev} lists what there is."));
    }
    let text = match (op.params.as_ref()?, errno) {
        (FilterParams::Flow(_), Errno::Inval) if op.handle == 0 => {
            "A flow filter needs a handle, before its kind: handle 1 flow hash keys src divisor 16."
        }
        (FilterParams::Flow(flow), Errno::Inval) if flow.keys.0 == 0 => {
            "A flow filter needs keys: flow hash keys src,dst divisor 16."
        }
        (FilterParams::Flow(_), Errno::OpNotSupp) => {
            "flow map takes one key and no perturb; flow hash takes several."
        }
        (FilterParams::Flow(_), Errno::Range) => "rshift is from 0 to 31.",
        (FilterParams::Fw(_), Errno::Inval) if op.handle == 0 => {
            "A fw filter that names a class or does something needs the mark it matches as its handle: \
            handle 6 fw classid 1:10."
        }
        (FilterParams::Fw(_), Errno::Inval) => {
            "All fw filters of one preference have one mask; choose another prio for another mask."
        }
        (FilterParams::Matchall(_), Errno::Exist) => {
            "A preference has one matchall filter; choose another prio, or delete that one first."
        }
        (FilterParams::Flower(_), Errno::Exist) => {
            "A flower filter with these keys is there already; choose another prio, or delete that one first."
        }
        (_, Errno::NoEnt) => return Some(format!("There is no such filter on {dev} to change; write add.")),
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::Machine;
    use tidegate_packet::{Pool, Seeded};

    /// What tc prints behind the kernel's words, after a drr with two classes and one filter of each kind.
    fn explanation(line: &str) -> String {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut tc = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            machine.shim(&mut pool, &mut draws).tc(&words, None)
        };
        for line in [
            "qdisc add dev eth0 root handle 1: drr",
            "filter add dev eth0 parent 1: protocol ip prio 2 handle 1/0xf fw flowid 1:1",
            "filter add dev eth0 parent 1: protocol ip prio 3 matchall flowid 1:1",
        ] {
            assert_eq!(tc(line).code, 0, "{line}");
        }
        let reply = tc(line);
        let text = String::from_utf8_lossy(&reply.stderr).into_owned();
        assert!(
            ["RTNETLINK answers: ", "Error: "].iter().any(|words| text.starts_with(words)),
            "{line}: {text}"
        );
        text.lines().last().unwrap_or_default().to_owned()
    }

    /// Linux refuses both words for a handle that a qdisc of another kind has.
    #[test]
    fn a_handle_that_another_kind_has() {
        for (verb, remedy) in [("change", "replace instead of change"), ("replace", "leave the handle out")] {
            let text = explanation(&format!("qdisc {verb} dev eth0 root handle 1: prio"));
            assert!(text.contains(remedy), "{verb}: {text}");
        }
    }

    /// Classes that come with a qdisc are not made by hand.
    #[test]
    fn a_missing_parent_lists_the_classes() {
        let table = [
            (
                "prio",
                "1:4",
                "There is no class 1:4 on eth0: the prio 1: has the classes 1:1 to 1:3. Correct the number \
                (class numbers are hexadecimal), or give it more bands.",
            ),
            (
                "ets bands 1",
                "1:2",
                "There is no class 1:2 on eth0: the ets 1: has the class 1:1 only. Correct the number \
                (class numbers are hexadecimal), or give it more bands.",
            ),
            (
                "htb",
                "1:4",
                "There is no class 1:4 on eth0; make it first, or correct the number (class numbers are \
                hexadecimal).",
            ),
        ];
        for (kind, class, wanted) in table {
            let mut machine = Machine::for_script(["eth0"]);
            let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
            let mut tc = |line: String| {
                let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
                machine.shim(&mut pool, &mut draws).tc(&words, None)
            };
            assert_eq!(tc(format!("qdisc add dev eth0 root handle 1: {kind}")).code, 0, "{kind}");
            let reply = tc(format!("qdisc add dev eth0 parent {class} sfq"));
            let text = String::from_utf8_lossy(&reply.stderr).into_owned();
            assert_eq!(text, format!("Error: Specified class not found.\ntc: {wanted}\n"), "{kind}");
        }
    }

    #[test]
    fn a_class_below_one_that_is_not_there() {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut tc = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            String::from_utf8_lossy(&machine.shim(&mut pool, &mut draws).tc(&words, None).stderr).into_owned()
        };
        assert_eq!(tc("qdisc add dev eth0 root handle 1: hfsc"), "");
        let parent = tc("class add dev eth0 parent 1:9 classid 1:10 hfsc ls m2 1mbit");
        assert!(parent.contains("\ntc: There is no class 1:9 on eth0; make it first"), "{parent}");
        let qdisc = tc("class add dev eth0 parent 2:9 classid 2:10 hfsc ls m2 1mbit");
        assert!(qdisc.contains("\ntc: There is no qdisc 2: on eth0; add it first"), "{qdisc}");
    }

    #[test]
    fn a_qdisc_on_an_inner_class() {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut tc = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            machine.shim(&mut pool, &mut draws).tc(&words, None)
        };
        for line in [
            "qdisc add dev eth0 root handle 1: htb",
            "class add dev eth0 parent 1: classid 1:10 htb rate 10mbit",
            "class add dev eth0 parent 1:10 classid 1:11 htb rate 5mbit",
        ] {
            assert_eq!(tc(line).code, 0, "{line}");
        }
        let reply = tc("qdisc add dev eth0 parent 1:10 fq_codel");
        let text = String::from_utf8_lossy(&reply.stderr).into_owned();
        let wanted = "RTNETLINK answers: Invalid argument\n\
                      tc: Class 1:10 has classes below it; a qdisc hangs on one of those, a leaf.\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn multiq_names_the_device_it_needs() {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let words = ["qdisc", "add", "dev", "eth0", "root", "multiq"].map(String::from);
        let reply = machine.shim(&mut pool, &mut draws).tc(&words, None);
        let text = String::from_utf8_lossy(&reply.stderr).into_owned();
        assert!(
            text.contains("multiq has a band for each transmit queue, and eth0 has one queue."),
            "{text}"
        );
        assert!(text.contains("numtxqueues 4"), "{text}");
    }

    #[test]
    fn what_a_place_or_a_device_cannot_take_is_explained() {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut tc = |line: &str| {
            let words: Vec<String> = line.split(' ').map(String::from).collect();
            let reply = machine.shim(&mut pool, &mut draws).tc(&words, None);
            (reply.code, String::from_utf8_lossy(&reply.stderr).into_owned())
        };
        let (code, text) = tc("qdisc add dev eth0 root mq");
        assert!(
            code == 2 && text.contains("mq has a qdisc for each transmit queue, and eth0 has one"),
            "{text}"
        );
        let (code, text) = tc("qdisc add dev eth0 parent ffff:fff1 fq_codel");
        assert!(code == 2 && text.contains("ffff:fff1 is the place of ingress and clsact"), "{text}");
        let (code, text) = tc("qdisc replace dev eth0 root noqueue");
        assert!(code == 1 && text.starts_with("tidegate: noqueue on eth0 is not supported\n"), "{text}");
        assert_eq!(tc("qdisc add dev eth0 root handle 1: prio").0, 0);
        let (code, text) = tc("qdisc add dev eth0 parent 1:1 mq");
        assert!(code == 2 && text.contains("it can be the root of eth0 only"), "{text}");
    }

    #[test]
    fn what_a_number_alone_means_is_explained() {
        let at = "filter add dev eth0 parent 1: protocol ip prio";
        let table = [
            (
                "1 flow hash keys src divisor 2",
                "tc: A flow filter needs a handle, before its kind: handle 1 flow hash keys src divisor 16.",
            ),
            (
                "1 handle 1 flow hash divisor 2",
                "tc: A flow filter needs keys: flow hash keys src,dst divisor 16.",
            ),
            (
                "2 handle 2/0xff fw flowid 1:1",
                "tc: All fw filters of one preference have one mask; choose another prio for another mask.",
            ),
            (
                "4 fw flowid 1:1",
                "tc: A fw filter that names a class or does something needs the mark it matches as its \
                handle: handle 6 fw classid 1:10.",
            ),
            (
                "3 matchall flowid 1:1",
                "tc: A preference has one matchall filter; choose another prio, or delete that one first.",
            ),
        ];
        for (line, wanted) in table {
            assert_eq!(explanation(&format!("{at} {line}")), wanted);
        }
    }

    /// An ingress qdisc is ffff: whatever handle it is given, and has no filters of what leaves (asked).
    #[test]
    fn filters_of_a_missing_qdisc_are_told_of_ingress() {
        let mut machine = Machine::for_script(["eth0", "eth1"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut tc = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let reply = machine.shim(&mut pool, &mut draws).tc(&words, None);
            String::from_utf8_lossy(&reply.stderr).into_owned()
        };
        assert_eq!(tc("qdisc add dev eth0 handle 1: ingress"), "");
        for (line, expected) in [
            ("filter add dev eth0 parent 1: matchall action ok", "its ingress qdisc is ffff:"),
            ("filter add dev eth1 parent 1: matchall action ok", "has no qdisc 1:"),
            ("filter add dev eth1 parent ffff: matchall action ok", "has no qdisc ffff:"),
            ("filter add dev eth1 egress matchall action ok", "tc qdisc add dev eth1 clsact"),
        ] {
            assert!(tc(line).contains(expected), "{line}: {}", tc(line));
        }
    }
}
