//! A qdisc and its classes, as tc lists them.

use super::QdiscNode;
use alloc::vec::Vec;
use tidegate_packet::{Handle, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump, QueueStats, Xstats};
use tidegate_policy::{Kind, QdiscParams, SharedBlocks};

impl QdiscNode {
    /// The qdisc as `tc qdisc show` lists it.
    pub fn dump(&mut self, dev: &str, now: Time) -> QdiscDump {
        self.measure(now);
        let own = self.own();
        self.body.catch_up(now, own);
        // Some kinds publish a counter only when they are dumped, so this comes before the counters are read.
        let xstats = self.body.get_mut().xstats(now);
        if self.kind == Kind::Noqueue {
            // No packet comes to it.
            let stats = QueueStats { rate: self.rate_of(self.handle), ..QueueStats::default() };
            return self.dump_of(dev, QdiscParams::Noqueue, stats, xstats);
        }
        self.dump_of(dev, self.body.get().params(), self.stats(), xstats)
    }

    fn dump_of(&self, dev: &str, params: QdiscParams, stats: QueueStats, xstats: Xstats) -> QdiscDump {
        QdiscDump {
            dev: dev.into(),
            kind: self.kind,
            handle: self.handle,
            parent: self.parent,
            refcnt: if self.parent == Handle::ROOT { 2 } else { 1 },
            params,
            stab: self.stab().cloned(),
            blocks: SharedBlocks::default(),
            invisible: false,
            stats,
            xstats,
        }
    }

    /// The tins of a CAKE.
    pub(crate) fn cake_tins(&mut self, now: Time) -> Option<u32> {
        if self.kind != Kind::Cake {
            return None;
        }
        match self.body.get_mut().xstats(now) {
            Xstats::Cake(stats) => Some(stats.tins.len() as u32),
            _ => None,
        }
    }

    /// The qdisc's classes as `tc class show` lists them.
    pub fn dump_classes(&mut self, dev: &str, now: Time, out: &mut Vec<ClassDump>) {
        let from = out.len();
        let handle = self.handle;
        self.measure(now);
        if let Some(classful) = self.classful_mut() {
            classful.classes(now, handle, out);
        }
        for class in &mut out[from..] {
            // HFSC's root class goes by the qdisc's own name, and is not measured with it.
            if let Some(stats) = class.stats.as_mut().filter(|_| class.classid != handle) {
                stats.rate = self.rate_of(class.classid);
            }
            class.dev = dev.into();
            class.kind = self.kind;
        }
    }
}
