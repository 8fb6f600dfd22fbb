//! The rates of a tree's classes in the numbers of a short policy: guaranteed rates and ceilings; and what a
//! link adds to its frames.

use super::compile::LOCAL;
use super::found::{Framing, Misfit};
use super::machine::Back;
use super::policy::Fair;
use crate::units::rate_in_words;
use tidegate_packet::Handle;
use tidegate_packet::Rate;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{
    CakeFlows, CakeFraming, CakeParams, CakeTins, ClassParams, HfscClassParams, HtbClassParams, LinkLayer,
    QdiscParams, RateSpec, ServiceCurve,
};

/// What a class is given, in bits a second, and its place among those that borrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) rate: u64,
    pub(super) ceil: u64,
    pub(super) prio: u32,
}

/// The classes of a qdisc.
pub(super) struct Curves<'a> {
    all: &'a [&'a ClassDump],
}

impl<'a> Curves<'a> {
    pub(super) fn new(all: &'a [&'a ClassDump]) -> Curves<'a> {
        Curves { all }
    }

    /// Those below a class or, where its number is that of the qdisc, at the top.
    pub(super) fn below(&self, parent: Handle) -> Vec<&'a ClassDump> {
        let is_top = parent.minor() == 0;
        let here = |class: &&ClassDump| class.parent == parent || is_top && class.parent == Handle::ROOT;
        self.all.iter().copied().filter(here).collect()
    }

    pub(super) fn prio(&self, class: &ClassDump) -> u32 {
        htb(class).map_or(0, |params| params.prio)
    }

    /// What a class at the top may send in all; `None`: as much as the device does.
    pub(super) fn limit(&self, class: &ClassDump) -> Option<u64> {
        match hfsc(class) {
            Some(params) => params.ul.map(|ul| bits(&ul)),
            // There is no class that it could borrow from.
            None => htb(class).map(|params| params.rate.rate.0.min(params.ceil.rate.0) * 8),
        }
    }

    /// The guaranteed rate of a class, without its ancestors.
    pub(super) fn alone(&self, class: &ClassDump) -> u64 {
        match hfsc(class) {
            Some(params) => {
                let own = params.rt.iter().chain(&params.ls).map(bits).max().unwrap_or(0);
                params.ul.map_or(own, |ul| own.min(bits(&ul)))
            }
            None => htb(class).map_or(0, |params| params.rate.rate.0.min(params.ceil.rate.0) * 8),
        }
    }

    /// The classes below one that has these numbers, with theirs; the last first.
    pub(super) fn shared(&self, class: &ClassDump, above: Numbers) -> Vec<(&'a ClassDump, Numbers)> {
        let below = self.below(class.classid);
        let curve = |class: &ClassDump| hfsc(class).and_then(|params| params.ls).map_or(0, |ls| bits(&ls));
        let weights: u64 = below.iter().map(|class| curve(class)).sum();
        let numbers = |class: &ClassDump| match hfsc(class) {
            Some(params) => {
                let part = u128::from(curve(class)) * u128::from(above.rate) / u128::from(weights.max(1));
                let real_time = params.rt.map_or(0, |rt| bits(&rt));
                // Without a curve for link sharing a class has its real time, and nothing of what is left.
                let most = params
                    .ls
                    .map_or(real_time, |_| params.ul.map_or(above.ceil, |ul| bits(&ul)).max(real_time));
                let rate = (part as u64).max(real_time).min(most);
                Numbers { rate, ceil: most.min(above.ceil.max(real_time)), prio: 0 }
            }
            None => {
                let (rate, ceil) =
                    htb(class).map_or((0, 0), |params| (params.rate.rate.0 * 8, params.ceil.rate.0 * 8));
                Numbers { rate, ceil: ceil.min(above.ceil), prio: self.prio(class) }
            }
        };
        below.into_iter().rev().map(|class| (class, numbers(class))).collect()
    }
}

fn htb(class: &ClassDump) -> Option<&HtbClassParams> {
    if let ClassParams::Htb(params) = &class.params { Some(params) } else { None }
}

fn hfsc(class: &ClassDump) -> Option<&HfscClassParams> {
    if let ClassParams::Hfsc(params) = &class.params { Some(params) } else { None }
}

/// The rate of a curve's second part.
fn bits(curve: &ServiceCurve) -> u64 {
    u64::from(curve.m2) * 8
}

impl Framing {
    fn of_rate(rate: &RateSpec) -> Framing {
        let atm = rate.linklayer == LinkLayer::Atm;
        Framing { overhead: rate.overhead.into(), mpu: rate.mpu.into(), atm, ptm: false }
    }

    fn and(self, other: Framing) -> Framing {
        Framing {
            overhead: self.overhead + other.overhead,
            mpu: self.mpu.max(other.mpu),
            atm: self.atm || other.atm,
            ptm: self.ptm || other.ptm,
        }
    }
}

/// Bytes of a device's own link header, as a short policy knows it by the device's name.
pub(super) fn header_of(dev: &str) -> u32 {
    if dev.starts_with("ppp") || dev.starts_with("tun") || dev.starts_with("wg") { 0 } else { 14 }
}

/// What a root adds to each frame, without a size table.
pub(super) fn framing_of(root: &QdiscDump) -> Framing {
    let table = root.stab.as_ref().map_or_else(Framing::default, |stab| Framing {
        overhead: stab.overhead.into(),
        mpu: stab.mpu,
        atm: stab.linklayer == LinkLayer::Atm,
        ptm: false,
    });
    let own = match &root.params {
        QdiscParams::Tbf(tbf) => Framing::of_rate(&tbf.rate),
        QdiscParams::Cake(cake) if !cake.raw => Framing {
            overhead: i64::from(cake.overhead.unwrap_or(0)) - i64::from(header_of(&root.dev)),
            mpu: cake.mpu.unwrap_or(0),
            atm: cake.framing == Some(CakeFraming::Atm),
            ptm: cake.framing == Some(CakeFraming::Ptm),
        },
        QdiscParams::Cake(cake) => Framing {
            overhead: 0,
            mpu: cake.mpu.unwrap_or(0),
            atm: cake.framing == Some(CakeFraming::Atm),
            ptm: cake.framing == Some(CakeFraming::Ptm),
        },
        _ => Framing::default(),
    };
    table.and(own)
}

impl Back<'_> {
    /// What classes add to each frame: what most of them do.
    pub(super) fn framing(&mut self, root: &QdiscDump, all: &[&ClassDump]) -> Framing {
        // What does not come from the provider has no link.
        let on_top = |class: &ClassDump| class.parent == Handle::ROOT || class.parent.minor() == 0;
        let of_link = all.iter().filter(|class| class.classid.minor() != LOCAL || !on_top(class));
        let mut own: Vec<Framing> =
            of_link.filter_map(|class| Some(Framing::of_rate(&htb(class)?.rate))).collect();
        let most = own.first().copied().unwrap_or_default();
        own.retain(|one| *one != most);
        if !own.is_empty() {
            self.miss(
                format!(
                    "the classes of {}, of which some count overhead or mpu otherwise than others",
                    root.dev
                ),
                "those of the first are taken for all: a short policy has one link",
            );
        }
        framing_of(root).and(most)
    }

    /// The first slopes of a class's curves.
    pub(super) fn slopes(&mut self, class: &ClassDump, _: &Curves<'_>) {
        let Some(params) = hfsc(class) else { return };
        let bent = |curve: &&ServiceCurve| curve.d_us > 0 && curve.m1 != curve.m2;
        let Some(curve) = [&params.rt, &params.ls, &params.ul].into_iter().flatten().find(bent) else {
            return;
        };
        self.miss(
            format!(
                "the first slope of class {} of {}, {} for {} ms",
                class.classid,
                class.dev,
                rate_in_words(Rate(curve.m1.into())),
                curve.d_us as f64 / 1000.0
            ),
            "it is left out: a share of a short policy is one rate",
        );
    }

    /// Reports options of cake without a key in a short policy; returns by what it shares.
    pub(super) fn cake(&mut self, root: &QdiscDump, cake: &CakeParams) -> Fair {
        let mut left = |has: bool, what: &str, instead: &str| {
            if has {
                self.misfits
                    .push(Misfit::new(format!("{what} of cake {} on {}", root.handle, root.dev), instead));
            }
        };
        let tins = cake.tins.unwrap_or_default();
        left(
            tins != CakeTins::BestEffort,
            &format!("the tins ({})", tins.name()),
            "they are left out; write a class with dscp for what shall go before",
        );
        left(cake.autorate == Some(true), "autorate-ingress", "it is left out: the rate stays");
        left(cake.wash == Some(true), "wash", "it is left out: DSCPs stay as they are");
        left(cake.ingress == Some(true), "ingress", "it is left out: dropped packets are not charged");
        left(
            cake.ack_filter.is_some_and(|filter| filter != Default::default()),
            "the filter of acknowledgements",
            "it is left out",
        );
        left(cake.fwmark.is_some_and(|mask| mask != 0), "fwmark", "it is left out");
        let flows = cake.flows.unwrap_or_default();
        let (fair, exact) = match flows {
            CakeFlows::Blind => (Fair::None, true),
            CakeFlows::Flows => (Fair::Flow, true),
            CakeFlows::DualSource if !root.dev.starts_with("ifb") => (Fair::Host, true),
            _ => (Fair::Host, false),
        };
        let installed = match fair {
            Fair::Host => "fair = \"host\" replaces it: hosts by a hash, then their connections",
            _ => "",
        };
        left(!exact, &format!("the sharing ({})", flows.name()), installed);
        fair
    }
}
