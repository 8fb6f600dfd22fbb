//! The shaper whose rate is controlled: found on a device, changed in its rate only, and put back.
//!
//! What a change leaves alone was asked of Linux 6.1 (the oracle of docs/contributing): CAKE keeps everything
//! that a change does not name, so its message has the bandwidth alone. HTB and TBF take what is not named
//! from tc's defaults, so their messages name it all: overhead, mpu, quantum, priority and, in bytes, the
//! buckets.

use crate::error::{Context, Result, invalid};
use std::collections::BTreeSet;
use tidegate_netlink::encode::{self, NetlinkMessage};
use tidegate_netlink::{Kernel, KernelError};
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{
    CakeParams, ClassOp, ClassParams, HtbClassParams, Kind, Op, QdiscOp, QdiscParams, RateSpec, TbfParams,
    Ticks, Verb,
};

/// The most classes of an HTB whose rates are changed together.
const MAX_CLASSES: usize = 256;
/// No rate below this is set, bit/s.
pub const LEAST_RATE: u64 = 8_000;
const NS: u128 = 1_000_000_000;

/// A class of an htb: its id, the one above, its parameters.
type HtbClass = (Handle, Handle, HtbClassParams);

/// What holds the rate.
#[derive(Clone, Debug, PartialEq)]
enum Holder {
    Cake,
    Tbf(TbfParams),
    /// The class at the top, and all below it.
    Htb(Handle, Vec<HtbClass>),
}

/// A shaper, with the rate that it was found with.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundShaper {
    dev: String,
    /// The device's number.
    number: u32,
    handle: Handle,
    kind: Kind,
    holder: Holder,
    found: u64,
}

impl FoundShaper {
    /// Finds the one at the root of a device.
    ///
    /// # Errors
    /// There is no such device; what is at its root holds no rate, or not one: with what to do.
    pub fn find(kernel: &mut Kernel, dev: &str) -> Result<FoundShaper> {
        let (number, installed) =
            match kernel.number(dev).and_then(|number| Ok((number, kernel.qdiscs(dev)?))) {
                Ok(found) => found,
                Err(error) => {
                    return invalid(format!("{dev}: {error}; `ip link` lists the devices that there are"));
                }
            };
        let Some(root) = installed.qdiscs.iter().find(|qdisc| qdisc.parent == Handle::ROOT) else {
            let kinds: Vec<&str> = installed.unread.iter().map(String::as_str).collect();
            let what = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
            return invalid(format!(
                "{dev} has no qdisc at its root that holds a rate ({what}): {}",
                remedy(dev)
            ));
        };
        let of = |found: Rate, holder| FoundShaper {
            dev: dev.to_owned(),
            number,
            handle: root.handle,
            kind: root.kind,
            holder,
            found: found.as_bits(),
        };
        match &root.params {
            QdiscParams::Cake(params) => {
                if params.autorate == Some(true) {
                    return invalid(format!(
                        "the cake of {dev} changes its rate itself (autorate-ingress): make it without that, \
                         `tc qdisc replace dev {dev} root cake bandwidth RATE`"
                    ));
                }
                match params.bandwidth.filter(|rate| rate.0 > 0) {
                    Some(rate) => Ok(of(rate, Holder::Cake)),
                    None => invalid(format!(
                        "the cake of {dev} is unlimited: give it the rate to begin with, \
                         `tc qdisc change dev {dev} root cake bandwidth 20mbit`"
                    )),
                }
            }
            QdiscParams::Tbf(params) => Ok(of(params.rate.rate, Holder::Tbf(params.clone()))),
            QdiscParams::Htb(_) => {
                let (top, classes) = classes(dev, &installed.classes)?;
                let rate = classes[0].2.rate.rate;
                Ok(of(rate, Holder::Htb(top, classes)))
            }
            _ => invalid(format!(
                "the {} at the root of {dev} holds no rate: {}",
                root.kind.name(),
                remedy(dev)
            )),
        }
    }

    /// Its device.
    pub fn dev(&self) -> &str {
        &self.dev
    }

    /// Its device's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The rate that it was found with, bit/s.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// What it is: `cake 8001:`, `class 1:1 of htb 1: and the 3 classes below it`.
    pub fn words(&self) -> String {
        let name = self.kind.name();
        match &self.holder {
            Holder::Cake | Holder::Tbf(_) => format!("{name} {}", self.handle),
            Holder::Htb(top, classes) => {
                let below = match classes.len() - 1 {
                    0 => String::new(),
                    1 => " and the class below it".to_owned(),
                    more => format!(" and the {more} classes below it"),
                };
                format!("class {top} of {name} {}{below}", self.handle)
            }
        }
    }

    /// Whether the root of the device is still this shaper, at this rate as far as it shows.
    pub fn is_at(&self, root: Option<&QdiscDump>, rate: u64) -> bool {
        let Some(root) = root.filter(|root| root.handle == self.handle && root.kind == self.kind) else {
            return false;
        };
        let shown = match &root.params {
            QdiscParams::Cake(params) => params.bandwidth,
            QdiscParams::Tbf(params) => Some(params.rate.rate),
            // Its classes are another listing.
            _ => None,
        };
        shown.is_none_or(|shown| shown == bytes(rate))
    }

    /// The operations that set its rate, bit/s, and change nothing else.
    pub fn set(&self, rate: u64) -> Vec<Op> {
        match &self.holder {
            Holder::Cake => {
                // As tc sends it: a rate that is given ends autorate-ingress.
                let params = CakeParams {
                    bandwidth: Some(bytes(rate)),
                    autorate: Some(false),
                    ..CakeParams::default()
                };
                vec![self.qdisc(QdiscParams::Cake(Box::new(params)))]
            }
            Holder::Tbf(found) => {
                let mut params = found.clone();
                params.rate.rate = bytes(rate);
                // As many bytes as before, whatever the rate: the longest packet must fit.
                // (The kernel counts the overhead of a packet on top of them.)
                let packets = |buffer, at: RateSpec| {
                    in_bytes(buffer, at).saturating_sub(at.overhead.into()).saturating_add(1)
                };
                params.burst = packets(found.buffer, found.rate);
                params.buffer = in_ticks(params.burst, params.rate);
                if let Some(peak) = found.peak {
                    params.peak_burst = packets(found.peak_buffer, peak);
                    let share = |of: Rate| scaled(of, bytes(rate), found.rate.rate);
                    let peak = RateSpec { rate: share(peak.rate), ..peak };
                    params.peak = Some(peak);
                    params.peak_buffer = in_ticks(params.peak_burst, peak);
                }
                vec![self.qdisc(QdiscParams::Tbf(params))]
            }
            Holder::Htb(_, classes) => {
                let share = |of: Rate| scaled(of, bytes(rate), bytes(self.found));
                let class = |(classid, parent, found): &HtbClass| {
                    let mut params = found.clone();
                    params.rate.rate = share(found.rate.rate);
                    params.ceil.rate = share(found.ceil.rate);
                    params.buffer = in_ticks(in_bytes(found.buffer, found.rate), params.rate);
                    params.cbuffer = in_ticks(in_bytes(found.cbuffer, found.ceil), params.ceil);
                    self.class(*classid, *parent, params)
                };
                classes.iter().map(class).collect()
            }
        }
    }

    /// The operations that put back what was found.
    pub fn restore(&self) -> Vec<Op> {
        match &self.holder {
            Holder::Cake => self.set(self.found),
            Holder::Tbf(found) => vec![self.qdisc(QdiscParams::Tbf(found.clone()))],
            Holder::Htb(_, classes) => classes
                .iter()
                .map(|(classid, parent, found)| self.class(*classid, *parent, found.clone()))
                .collect(),
        }
    }

    /// The operations that put back what was found, of what is still as [`FoundShaper::set`] left it at a
    /// rate; and how many classes, or shapers, another program changed, added or took away.
    pub fn restore_own(&self, now: &FoundShaper, rate: u64) -> (Vec<Op>, usize) {
        if now.handle != self.handle || now.kind != self.kind {
            return (Vec::new(), 1);
        }
        let (Holder::Htb(_, found), Holder::Htb(_, there)) = (&self.holder, &now.holder) else {
            return match now.found / 8 == rate / 8 {
                true => (self.restore(), 0),
                false => (Vec::new(), 1),
            };
        };
        // What was found needs no arithmetic.
        let share =
            |of: Rate| if rate == self.found { of } else { scaled(of, bytes(rate), bytes(self.found)) };
        let as_set = |(classid, parent, params): &&HtbClass| {
            let rates = (share(params.rate.rate), share(params.ceil.rate));
            there.iter().any(|(id, above, now)| {
                (id, above) == (classid, parent) && (now.rate.rate, now.ceil.rate) == rates
            })
        };
        let own: Vec<&HtbClass> = found.iter().filter(as_set).collect();
        let others = there.len().max(found.len()) - own.len();
        let back = |(classid, parent, params): &&HtbClass| self.class(*classid, *parent, params.clone());
        (own.iter().map(back).collect(), others)
    }

    /// The same as messages, for a device of this number.
    ///
    /// # Errors
    /// Never for what was found: each kind has messages.
    pub fn messages(&self, number: u32) -> Result<Vec<NetlinkMessage>> {
        let message = |op: &Op| encode::message(op, &|_| Some(number));
        match self.restore().iter().map(message).collect() {
            Ok(messages) => Ok(messages),
            Err(unsent) => invalid(unsent.to_string()),
        }
    }

    /// Carries out operations of [`FoundShaper::set`] or [`FoundShaper::restore`].
    ///
    /// # Errors
    /// The kernel refuses: the shaper is not there any more.
    pub fn carry_out(&self, kernel: &mut Kernel, ops: &[Op]) -> Result<(), KernelError> {
        kernel.carry_out_together(ops)
    }

    /// Whether everything is as it was found.
    ///
    /// # Errors
    /// What is there cannot be read.
    pub fn is_restored(&self, kernel: &mut Kernel) -> Result<bool> {
        let now = FoundShaper::find(kernel, &self.dev).context("what was put back cannot be read")?;
        Ok(now == *self)
    }

    fn qdisc(&self, params: QdiscParams) -> Op {
        Op::Qdisc(QdiscOp {
            verb: Verb::Change,
            dev: self.dev.clone(),
            parent: Handle::ROOT,
            handle: self.handle,
            kind: Some(self.kind.name().to_owned()),
            params: Some(params),
            stab: None,
            estimator: None,
            blocks: Default::default(),
        })
    }

    fn class(&self, classid: Handle, parent: Handle, params: HtbClassParams) -> Op {
        Op::Class(ClassOp {
            verb: Verb::Change,
            dev: self.dev.clone(),
            parent,
            classid,
            kind: Some(self.kind.name().to_owned()),
            params: Some(ClassParams::Htb(params)),
            estimator: None,
        })
    }
}

fn remedy(dev: &str) -> String {
    format!(
        "give it one that does, `tc qdisc replace dev {dev} root cake bandwidth 20mbit`, or apply a policy \
         with htb or tbf at its root (`tidegate policy new`, `tidegate apply`)"
    )
}

/// The class at the top of an htb, and all classes from the top down.
fn classes(dev: &str, all: &[ClassDump]) -> Result<(Handle, Vec<HtbClass>)> {
    let of_htb = |class: &ClassDump| match &class.params {
        ClassParams::Htb(params) => Some((class.classid, class.parent, params.clone())),
        _ => None,
    };
    let mut left: Vec<_> = all.iter().filter_map(of_htb).collect();
    let ids: BTreeSet<Handle> = left.iter().map(|(classid, ..)| *classid).collect();
    let tops: Vec<Handle> =
        left.iter().filter(|(_, parent, _)| !ids.contains(parent)).map(|(classid, ..)| *classid).collect();
    let &[top] = tops.as_slice() else {
        return invalid(match tops.len() {
            0 => format!("the htb of {dev} has no class, and so no rate: add one, and all classes below it"),
            many => format!(
                "the htb of {dev} has {many} classes at its top, so no one class holds the rate: put them \
                 below one class"
            ),
        });
    };
    if left.len() > MAX_CLASSES {
        return invalid(format!(
            "the htb of {dev} has {} classes; at most {MAX_CLASSES} are changed together",
            left.len()
        ));
    }
    // From the top down: each round takes those whose parent was taken.
    let mut ordered = Vec::with_capacity(left.len());
    let mut level = BTreeSet::new();
    let at = left.iter().position(|(classid, ..)| *classid == top).unwrap_or(0);
    ordered.push(left.remove(at));
    level.insert(top);
    while !left.is_empty() {
        let (next, rest): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, parent, _)| level.contains(parent));
        if next.is_empty() {
            break;
        }
        level = next.iter().map(|(classid, ..)| *classid).collect();
        ordered.extend(next);
        left = rest;
    }
    Ok((top, ordered))
}

/// A rate in bit/s as the kernel has it.
fn bytes(rate: u64) -> Rate {
    Rate::bits(rate.max(LEAST_RATE))
}

/// A part of a rate that becomes another; never none.
fn scaled(part: Rate, to: Rate, from: Rate) -> Rate {
    let scaled = u128::from(part.0) * u128::from(to.0) / u128::from(from.0.max(1));
    Rate(u64::try_from(scaled).unwrap_or(u64::MAX).max(1))
}

/// What a bucket holds.
fn in_bytes(ticks: Ticks, at: RateSpec) -> u32 {
    let bytes = (u128::from(ticks.duration().0) * u128::from(at.rate.0)).div_ceil(NS);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// How long a bucket takes.
fn in_ticks(bytes: u32, at: RateSpec) -> Ticks {
    let ticks = (u128::from(bytes) * u128::from(Ticks::PER_SECOND)).div_ceil(u128::from(at.rate.0.max(1)));
    Ticks(u32::try_from(ticks).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_netlink::InstalledQdiscs;
    use tidegate_sys::namespace_thread::NamespaceThread;
    use tidegate_sys::netlink::Links;

    fn op(line: &str) -> Op {
        let words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
        match tidegate_syntax::tc::parse(&words, &tidegate_syntax::Env::default()).map(|read| read.command) {
            Ok(tidegate_syntax::tc::TcCommand::Apply(op)) => op,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// A device with these commands carried out in a namespace of its own; `None`: it cannot be made here.
    fn with<T: Send + 'static>(
        lines: &'static [&'static str],
        look: impl FnOnce(&mut Kernel) -> T + Send + 'static,
    ) -> Option<T> {
        let place = match NamespaceThread::new("shaper") {
            Ok(place) => place,
            Err(error) => {
                println!("SKIPPED: no network namespace can be made here ({error})");
                return None;
            }
        };
        place
            .go(move || {
                Links::open().and_then(|mut links| links.create("d0", "ifb", 32)).expect("a device");
                let mut kernel = Kernel::open().expect("netlink");
                for line in lines {
                    if let Err(error) = kernel.apply(&op(line)) {
                        println!("SKIPPED: {line}: {error}");
                        return None;
                    }
                }
                Some(look(&mut kernel))
            })
            .expect("the thread is there")
    }

    /// The qdiscs of the device without what they count: a machine's own packets (router solicitations) pass
    /// through them at any moment.
    fn settings(kernel: &mut Kernel) -> InstalledQdiscs {
        let mut listed = kernel.qdiscs("d0").expect("a listing");
        for qdisc in &mut listed.qdiscs {
            qdisc.stats = Default::default();
            qdisc.xstats = Default::default();
        }
        listed
    }

    const HTB: &[&str] = &[
        "tc qdisc add dev d0 root handle 1: htb default 10 r2q 7",
        "tc class add dev d0 parent 1: classid 1:1 htb rate 20mbit burst 9000b overhead 18 quantum 3000 prio 2",
        "tc class add dev d0 parent 1:1 classid 1:10 htb rate 5mbit ceil 20mbit prio 1",
        "tc class add dev d0 parent 1:1 classid 1:20 htb rate 15mbit prio 4 quantum 5000",
        "tc qdisc add dev d0 parent 1:10 handle 10: pfifo limit 55",
    ];

    /// A class that another program changes, adds or takes away is left alone; the others are put back.
    #[test]
    fn what_other_programs_changed_is_left_alone() {
        let counted = with(HTB, |kernel| {
            let found = FoundShaper::find(kernel, "d0").expect("a shaper");
            let look = |kernel: &mut Kernel, change: Option<&str>| {
                found.carry_out(kernel, &found.restore()).expect("it is there");
                found.carry_out(kernel, &found.set(4_000_000)).expect("it is there");
                change.into_iter().for_each(|line| kernel.apply(&op(line)).expect(line));
                let now = FoundShaper::find(kernel, "d0").expect("a shaper");
                let (ops, others) = found.restore_own(&now, 4_000_000);
                (ops.len(), others)
            };
            [
                look(kernel, None),
                look(
                    kernel,
                    Some("tc class change dev d0 parent 1:1 classid 1:20 htb rate 300kbit ceil 400kbit"),
                ),
                look(kernel, Some("tc class add dev d0 parent 1:1 classid 1:30 htb rate 1mbit")),
                look(kernel, Some("tc class del dev d0 classid 1:30")),
            ]
        });
        if let Some(counted) = counted {
            assert_eq!(counted, [(3, 0), (2, 1), (3, 1), (3, 0)]);
        }
    }

    #[test]
    fn an_htb_changes_in_all_its_rates_and_in_nothing_else() {
        let Some(all) = with(HTB, |kernel| {
            let found = FoundShaper::find(kernel, "d0").expect("a shaper");
            let before = settings(kernel);
            found.carry_out(kernel, &found.set(4_000_000)).expect("it is there");
            let slower = FoundShaper::find(kernel, "d0").expect("a shaper");
            let root = kernel.root("d0").expect("a listing");
            assert!(found.is_at(root.as_ref(), 1), "the rate of its classes is not at the root");
            found.carry_out(kernel, &found.restore()).expect("it is there");
            assert!(found.is_restored(kernel).expect("it can be read"));
            (found, slower, before == settings(kernel))
        }) else {
            return;
        };
        let (found, slower, is_same) = all;
        assert!(is_same, "what was found is back to the last byte");
        assert_eq!(found.words(), "class 1:1 of htb 1: and the 2 classes below it");
        assert_eq!((found.found(), slower.found()), (20_000_000, 4_000_000));
        let Holder::Htb(_, before) = &found.holder else { panic!("{found:?}") };
        let Holder::Htb(_, after) = &slower.holder else { panic!("{slower:?}") };
        let rates: Vec<(u64, u64)> = after
            .iter()
            .map(|(_, _, params)| (params.rate.rate.as_bits(), params.ceil.rate.as_bits()))
            .collect();
        assert_eq!(rates, [(4_000_000, 4_000_000), (1_000_000, 4_000_000), (3_000_000, 3_000_000)]);
        for ((id, parent, one), (other_id, other_parent, other)) in before.iter().zip(after) {
            assert_eq!((id, parent), (other_id, other_parent));
            assert_eq!((one.prio, one.quantum), (other.prio, other.quantum));
            assert_eq!((one.rate.overhead, one.rate.mpu), (other.rate.overhead, other.rate.mpu));
            let burst = [one, other].map(|params| in_bytes(params.buffer, params.rate));
            assert!(burst[0].abs_diff(burst[1]) <= 8, "{burst:?}");
        }
    }

    #[test]
    fn a_tbf_keeps_its_bytes_at_any_rate() {
        const TBF: &[&str] =
            &["tc qdisc add dev d0 root handle 1: tbf rate 20mbit burst 3000b limit 70000b overhead 18"];
        let Some((found, slower, is_same)) = with(TBF, |kernel| {
            let found = FoundShaper::find(kernel, "d0").expect("a shaper");
            let before = settings(kernel);
            found.carry_out(kernel, &found.set(1_000_000)).expect("it is there");
            let root = kernel.root("d0").expect("a listing");
            assert!(found.is_at(root.as_ref(), 1_000_000) && !found.is_at(root.as_ref(), 2_000_000));
            let slower = FoundShaper::find(kernel, "d0").expect("a shaper");
            found.carry_out(kernel, &found.restore()).expect("it is there");
            (found, slower, before == settings(kernel))
        }) else {
            return;
        };
        assert!(is_same, "what was found is back to the last byte");
        let (Holder::Tbf(one), Holder::Tbf(other)) = (&found.holder, &slower.holder) else {
            panic!("no tbf")
        };
        assert_eq!((one.limit, one.rate.overhead), (other.limit, other.rate.overhead));
        let burst = [one, other].map(|params| in_bytes(params.buffer, params.rate));
        assert!(burst[0] <= burst[1] && burst[1] - burst[0] <= 8, "{burst:?}");
    }

    #[test]
    fn a_change_of_cake_names_its_bandwidth_alone() {
        let shaper = FoundShaper {
            dev: "eth0".to_owned(),
            number: 3,
            handle: Handle::new(8, 0),
            kind: Kind::Cake,
            holder: Holder::Cake,
            found: 20_000_000,
        };
        let as_tc = op("tc qdisc change dev eth0 root handle 8: cake bandwidth 5mbit");
        let numbers = |_: &str| Some(3);
        let sent = |op: &Op| {
            encode::message(op, &numbers).map(|message| (message.kind, message.flags, message.body))
        };
        let [change] = &shaper.set(5_000_000)[..] else { panic!("one change") };
        assert_eq!(sent(change).ok(), sent(&as_tc).ok());
        assert_eq!(shaper.messages(3).expect("messages").len(), 1);
    }

    #[test]
    fn what_holds_no_rate_is_refused_with_a_remedy() {
        let cases: [(&'static [&'static str], &str); 3] = [
            (&["tc qdisc add dev d0 root pfifo"], "the pfifo at the root of d0 holds no rate: give it one"),
            (&["tc qdisc add dev d0 root handle 1: htb"], "has no class"),
            (
                &[
                    "tc qdisc add dev d0 root handle 1: htb",
                    "tc class add dev d0 parent 1: classid 1:1 htb rate 1mbit",
                    "tc class add dev d0 parent 1: classid 1:2 htb rate 1mbit",
                ],
                "has 2 classes at its top",
            ),
        ];
        for (lines, expected) in cases {
            let Some(error) = with(lines, |kernel| FoundShaper::find(kernel, "d0").expect_err("no rate"))
            else {
                return;
            };
            assert!(error.to_string().contains(expected), "{error}");
        }
        let missing = with(&[], |kernel| FoundShaper::find(kernel, "none0").expect_err("no device"));
        assert!(missing.is_none_or(|error| error.to_string().starts_with("none0: ")));
    }
}
