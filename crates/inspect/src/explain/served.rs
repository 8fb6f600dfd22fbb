//! How fast the place of a packet in a tree is served: what its classes are guaranteed, and what may stand in
//! the way of that.

use super::Moment;
use crate::reading::PolicyModel;
use std::iter;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{
    ClassParams, EtsClassParams, HfscClassParams, Kind, QdiscParams, RateSpec, ServiceCurve,
};

/// The weight of a class of QFQ that names none.
pub(super) const PLAIN_WEIGHT: u32 = 1;

/// How fast a place in the tree is served, bits per second; `None`: unknown; infinite: nothing in the tree
/// limits it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// While everyone else sends.
    pub(super) assured: Option<f64>,
    /// While no other class sends.
    pub(super) most: Option<f64>,
    /// Bands that go first as long as they have anything to send.
    pub(super) after: Option<Bands>,
    /// A class of HFSC on the way has a share by weight and no real time.
    pub(super) by_weight: bool,
    /// The qdisc of a class on the way whose classes have more guaranteed together than what is above it
    /// sends.
    pub(super) crowded: Option<Handle>,
    /// An HTB on the way below another shaper, with other classes beside the packet's.
    pub(super) nested: Option<Handle>,
    /// A qdisc on the way whose classes take turns.
    pub(super) in_turns: Option<Handle>,
    /// Packets that buckets on the way have taken out of the qdiscs below them.
    pub(super) held: u64,
    /// The qdisc of a class on the way that sends nothing of any while another of its classes holds packets
    /// back.
    pub(super) blocked: Option<Handle>,
    /// Shapers on the way count a packet differently, or at first otherwise than later.
    pub(super) uneven: bool,
}

impl Served {
    /// A device's root, before any qdisc.
    const AT_ROOT: Served = Served {
        assured: Some(f64::INFINITY),
        most: Some(f64::INFINITY),
        after: None,
        by_weight: false,
        crowded: None,
        nested: None,
        in_turns: None,
        held: 0,
        blocked: None,
        uneven: false,
    };

    /// The same service, limited to a rate.
    pub(super) fn limited_to(self, bits: f64) -> Served {
        let least = |had: Option<f64>| had.map(|had| had.min(bits));
        Served { assured: least(self.assured), most: least(self.most), ..self }
    }

    /// What it is guaranteed, where that is a rate.
    pub(super) fn assured(self) -> Option<f64> {
        self.assured.filter(|rate| *rate > 0.0 && rate.is_finite() && !self.uneven && self.blocked.is_none())
    }

    /// Is it left open how fast it is served?
    pub(super) fn is_open(self) -> bool {
        self.uneven
            || self.blocked.is_some()
            || self.crowded.is_some()
            || self.nested.is_some()
            || self.in_turns.is_some()
    }

    /// What it may have, where that is a rate.
    pub(super) fn most(self) -> Option<f64> {
        self.most.filter(|rate| *rate > 0.0 && rate.is_finite() && !self.uneven)
    }
}

/// Bands that are served before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bands {
    /// Those with lower numbers.
    Before,
    /// The strict ones of ETS, before all that take turns.
    Strict,
}

impl Bands {
    pub(super) fn sentence(self) -> String {
        let which = match self {
            Bands::Before => "bands before this one",
            Bands::Strict => "strict bands",
        };
        format!(
            "{which} are served first: it waits while they have packets that may leave, indefinitely if they \
            always do"
        )
    }
}

/// How fast the place of a packet is served.
pub(super) fn served(reading: &PolicyModel, moment: &Moment) -> Served {
    let mut served = Served { uneven: counts_differ(reading, moment), ..Served::AT_ROOT };
    for (at, spot) in moment.stop.qdiscs.iter().enumerate() {
        let params = dump(reading, moment, spot.qdisc).map(|dump| &dump.params);
        if let Some(QdiscParams::Tbf(tbf)) = params {
            served = served.limited_to(tbf.rate.rate.as_bits() as f64);
            // It asks what comes next by taking it out.
            served.held += u64::from(moment.stop.qdiscs.get(at + 1).is_some_and(|below| {
                let kind = dump(reading, moment, below.qdisc).map(|dump| dump.kind);
                matches!(kind, Some(Kind::Drr | Kind::Ets | Kind::Hfsc | Kind::Htb | Kind::Qfq))
            }));
        }
        for class in moment.stop.classes.iter().filter(|class| class.qdisc() == spot.qdisc) {
            let dump = reading.classes.iter().find(|dump| dump.dev == moment.name && dump.classid == *class);
            if let Some(dump) = dump {
                served = within(reading, dump, served);
                if beside_one_that_holds(reading, dump) {
                    served.blocked = Some(spot.qdisc);
                }
                if let ClassParams::Hfsc(HfscClassParams { rt, ul, .. }) = &dump.params {
                    let begins_low = |curve: &ServiceCurve| curve.d_us > 0 && curve.m1 < curve.m2;
                    served.uneven |= [rt, ul].into_iter().flatten().any(begins_low);
                }
            }
        }
    }
    served.held += u64::from(is_one_taken_out(reading, moment));
    served
}

/// Does what is above a queue with a bound for each flow take a packet of it out to see what comes next? It
/// counts to its flow no more then, and one more of that flow may come.
fn is_one_taken_out(reading: &PolicyModel, moment: &Moment) -> bool {
    let Some((leaf, above)) = moment.stop.qdiscs.split_last() else { return false };
    let by_flow = match dump(reading, moment, leaf.qdisc).map(|dump| &dump.params) {
        Some(QdiscParams::Sfq(sfq)) => sfq.depth < sfq.limit,
        Some(QdiscParams::Fq(fq)) => fq.flow_limit.unwrap_or(100) < fq.limit.unwrap_or(10_000),
        _ => false,
    };
    // prio asks its bands in the same way.
    let mut kinds = above.iter().rev().filter_map(|spot| Some(dump(reading, moment, spot.qdisc)?.kind));
    by_flow
        && kinds
            .find(|kind| *kind != Kind::Prio)
            .is_some_and(|kind| matches!(kind, Kind::Tbf | Kind::Hfsc | Kind::Qfq))
}

/// A qdisc of the device that a packet is at.
pub(super) fn dump<'r>(reading: &'r PolicyModel, moment: &Moment, handle: Handle) -> Option<&'r QdiscDump> {
    reading.qdiscs.iter().find(|qdisc| qdisc.dev == moment.name && qdisc.handle == handle)
}

/// Do the shapers on a packet's way count it differently, each with a framing of its own?
fn counts_differ(reading: &PolicyModel, moment: &Moment) -> bool {
    let framing = |spec: &RateSpec| (spec.overhead, spec.mpu, spec.linklayer);
    let mut framings = Vec::new();
    for spot in &moment.stop.qdiscs {
        if let Some(QdiscParams::Tbf(tbf)) = dump(reading, moment, spot.qdisc).map(|dump| &dump.params) {
            framings.push(framing(&tbf.rate));
        }
    }
    for class in &moment.stop.classes {
        let dump = reading.classes.iter().find(|dump| dump.dev == moment.name && dump.classid == *class);
        if let Some(ClassParams::Htb(htb)) = dump.map(|dump| &dump.params) {
            framings.push(framing(&htb.rate));
        }
    }
    framings.windows(2).any(|pair| pair[0] != pair[1])
}

/// Linux's drr, qfq, ets and hfsc send nothing while the class whose turn it is has packets that may not
/// leave.
fn beside_one_that_holds(reading: &PolicyModel, class: &ClassDump) -> bool {
    if !matches!(class.kind, Kind::Drr | Kind::Qfq | Kind::Ets | Kind::Hfsc) {
        return false;
    }
    // The class of this qdisc that another hangs in, at whatever depth.
    let hangs_in = |qdisc: &QdiscDump| {
        let mut line = iter::once(qdisc).chain(reading.above(qdisc)).map(|one| one.parent);
        line.find(|parent| *parent != Handle::ROOT && parent.qdisc() == class.classid.qdisc())
    };
    let on_way = |other: Handle| reading.and_above(class).any(|one| one.classid == other);
    let holding =
        reading.qdiscs.iter().filter(|qdisc| qdisc.dev == class.dev && reading.may_hold_back(qdisc));
    holding.filter_map(hangs_in).any(|other| !on_way(other))
}

/// What a class makes of how its parent is served.
fn within(reading: &PolicyModel, class: &ClassDump, above: Served) -> Served {
    let less = |had: Option<f64>, rate: f64| had.map(|had| had.min(rate));
    // Turns of others come between: a share is what it gets in the mean, not what it waits for.
    let in_turns = || {
        let is_beside = |other: &ClassDump| {
            other.dev == class.dev
                && other.classid.qdisc() == class.classid.qdisc()
                && other.classid != class.classid
        };
        match reading.classes.iter().any(is_beside) {
            true => Served { assured: None, in_turns: Some(class.classid.qdisc()), ..above },
            false => above,
        }
    };
    match &class.params {
        // A class's own rate is its own, whatever those above it may send; they lend no more than they have.
        ClassParams::Htb(htb) if reading.is_leaf(class) => {
            let most = reading.reachable(class).unwrap_or(htb.ceil.rate);
            let own = less(above.assured, htb.rate.rate.min(htb.ceil.rate).as_bits() as f64);
            crowded(
                reading,
                class,
                Served { assured: own, most: less(above.most, most.as_bits() as f64), ..above },
                above,
            )
        }
        ClassParams::Htb(_) => above,
        ClassParams::Hfsc(hfsc) if reading.is_leaf(class) => of_curves(reading, class, hfsc, above),
        // Curves count where packets wait, and upper limits on the way there.
        ClassParams::Hfsc(_) => above,
        ClassParams::Drr(_) | ClassParams::Qfq(_) => in_turns(),
        ClassParams::Ets(EtsClassParams { quantum: None }) if class.classid.minor() > 1 => {
            Served { assured: None, after: Some(Bands::Before), ..above }
        }
        ClassParams::Ets(EtsClassParams { quantum: None }) => above,
        ClassParams::Ets(_) => {
            let strict = reading.classes.iter().any(|other| {
                other.dev == class.dev
                    && other.classid == class.classid.qdisc().class(1)
                    && other.params == ClassParams::Ets(EtsClassParams { quantum: None })
            });
            match strict {
                true => Served { assured: None, after: Some(Bands::Strict), ..above },
                false => in_turns(),
            }
        }
        // A band behind the first.
        ClassParams::None if class.kind == Kind::Prio && class.classid.minor() > 1 => {
            Served { assured: None, after: Some(Bands::Before), ..above }
        }
        ClassParams::None => above,
    }
}

/// The service of a leaf where the leaves of its qdisc have more guaranteed than what is above sends: then
/// the others decide how much it gets.
fn crowded(reading: &PolicyModel, class: &ClassDump, served: Served, above: Served) -> Served {
    let guaranteed = |other: &ClassDump| match &other.params {
        ClassParams::Htb(htb) => htb.rate.rate.min(htb.ceil.rate).as_bits(),
        ClassParams::Hfsc(hfsc) => hfsc.rt.map_or(0, |curve| u64::from(curve.m2) * 8),
        _ => 0,
    };
    let qdisc = class.classid.qdisc();
    let mine = |other: &&ClassDump| {
        other.dev == class.dev && other.classid.qdisc() == qdisc && reading.is_leaf(other)
    };
    let others = reading.classes.iter().filter(mine).filter(|other| other.classid != class.classid);
    let others: u64 = others.map(guaranteed).sum();
    let all = others.saturating_add(guaranteed(class));
    match above.assured {
        Some(sent) if sent.is_finite() && others > 0 && all as f64 > sent * 1.001 => {
            Served { assured: None, crowded: Some(qdisc), ..served }
        }
        // What others have saved up while they were silent goes first, as fast as what is above sends.
        Some(sent) if sent.is_finite() && others > 0 && class.kind == Kind::Htb => {
            Served { assured: None, nested: Some(qdisc), ..served }
        }
        _ => served,
    }
}

/// HFSC's service of a leaf: its real-time rate, which no upper limit restricts, and its share by weight
/// beside that.
fn of_curves(reading: &PolicyModel, class: &ClassDump, curves: &HfscClassParams, above: Served) -> Served {
    let bits = |bytes: u64| bytes as f64 * 8.0;
    let less = |had: Option<f64>, rate: f64| had.map(|had| had.min(rate));
    let steady = |curve: Option<ServiceCurve>| curve.map_or(0.0, |curve| bits(u64::from(curve.m2)));
    let real = steady(curves.rt);
    let assured = if real > 0.0 { less(above.assured, real) } else { None };
    let above = crowded(reading, class, above, above);
    let assured = assured.filter(|_| above.crowded.is_none());
    if !curves.ls.is_some_and(|curve| curve.m1 > 0 || curve.m2 > 0) {
        return Served { assured, most: less(above.most, real), ..above };
    }
    let limit = reading.upper_limit(class).map(|limit| bits(limit).max(real));
    let most = limit.map_or(above.most, |limit| less(above.most, limit));
    Served { assured, most, by_weight: real <= 0.0, ..above }
}
