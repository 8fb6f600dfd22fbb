//! Packets offered and polled in batches are treated as one by one: two machines, one of each kind, must
//! never differ.

use std::fmt::Write as _;
use tidegate_packet::{FwMark, Handle, Head, Meta, Nanos, Pkt, Pool, Rate, Seeded, Time};
use tidegate_policy::*;
use tidegate_qdisc::{DeviceInfo, EventRing, Shaper, XmitStatus};

const TREES: u64 = 100;
const STEPS: usize = 30;

struct Machine {
    shaper: Shaper,
    pool: Pool,
    random: Seeded,
    batched: bool,
    log: String,
}

impl Machine {
    fn new(batched: bool) -> Machine {
        let device = DeviceInfo { tx_queue_len: 12, ..DeviceInfo::default() };
        let shaper = Shaper::new(device, EventRing::new(10_000));
        Machine { shaper, pool: Pool::new(100_000), random: Seeded::new(5), batched, log: String::new() }
    }

    fn qdisc(
        &mut self,
        parent: Handle,
        handle: Handle,
        kind: &str,
        params: Option<QdiscParams>,
        estimator: Option<Estimator>,
    ) {
        let (kind, stab) = (Some(kind.into()), None);
        let op = QdiscOp {
            verb: Verb::Add,
            dev: "eth0".into(),
            parent,
            handle,
            kind,
            params,
            stab,
            estimator,
            blocks: SharedBlocks::default(),
        };
        let result = self.shaper.qdisc_op(Time(1_000), &mut self.pool, &mut self.random, &op);
        assert!(result.is_ok(), "{op:?}: {result:?}");
    }

    fn class(&mut self, now: Time, verb: Verb, parent: Handle, classid: Handle, params: Option<ClassParams>) {
        let op = ClassOp { verb, dev: "eth0".into(), parent, classid, kind: None, params, estimator: None };
        let result = self.shaper.class_op(now, &mut self.pool, &mut self.random, &op);
        let _ = writeln!(self.log, "{classid} {result:?}");
    }

    fn filter(&mut self, parent: Handle) {
        let op = FilterOp {
            verb: Verb::Add,
            dev: "eth0".into(),
            block: 0,
            parent,
            pref: 1,
            protocol: 0x0800,
            chain: 0,
            handle: 0,
            kind: Some("fw".into()),
            params: None,
            actions: Vec::new(),
        };
        let result = self.shaper.filter_op(Time(1_000), &mut self.pool, &mut self.random, &op);
        assert!(result.is_ok(), "{result:?}");
    }

    fn offer(&mut self, now: Time, metas: &[Meta]) {
        let insert = |meta: &Meta, pool: &mut Pool| {
            let pkt = pool.insert(meta.clone(), Head::default()).expect("the pool has room");
            pool.set_hash(&pkt, meta.ident.wrapping_mul(0x9e37_79b9) | 1);
            pkt
        };
        let mut packets: Vec<Pkt> = metas.iter().map(|meta| insert(meta, &mut self.pool)).collect();
        let mut xmit_statuses: Vec<XmitStatus> = Vec::new();
        if self.batched {
            self.shaper.offer_batch(now, &mut self.pool, &mut self.random, &mut packets, |offer, _| {
                xmit_statuses.push(offer)
            });
        } else {
            for pkt in packets {
                xmit_statuses.push(self.shaper.offer(now, &mut self.pool, &mut self.random, pkt));
            }
        }
        let _ = writeln!(self.log, "{now:?} {xmit_statuses:?}");
    }

    fn poll(&mut self, now: Time, room: usize) {
        let mut out = Vec::new();
        if self.batched {
            self.shaper.poll_batch(now, &mut self.pool, &mut self.random, room, &mut out);
        } else {
            while out.len() < room
                && let Some(pkt) = self.shaper.poll(now, &mut self.pool, &mut self.random)
            {
                out.push(pkt);
            }
        }
        let idents: Vec<u32> = out.iter().map(|pkt| self.pool.meta(pkt).ident).collect();
        out.into_iter().for_each(|pkt| self.pool.release(pkt));
        let _ = writeln!(self.log, "{now:?} {idents:?} {:?} {}", self.shaper.timeout(), self.shaper.qlen());
        let events: Vec<_> = self.shaper.events().map(|event| (event.what, event.at, event.ident)).collect();
        let _ = writeln!(self.log, "{events:?}");
    }

    fn tell(&mut self, now: Time) {
        let (qdiscs, classes) = (self.shaper.dump_qdiscs("eth0", now), self.shaper.dump_classes("eth0", now));
        let _ = writeln!(self.log, "{qdiscs:?}\n{classes:?}");
    }
}

/// Two machines with one random tree, and what can be named in it.
struct Pair {
    random: Seeded,
    machines: [Machine; 2],
    named: Vec<Handle>,
    leaves: Vec<Handle>,
    next: u16,
}

impl Pair {
    fn below(&mut self, n: u64) -> u64 {
        self.random.next() % n
    }

    fn qdisc(&mut self, parent: Handle, kind: &str, params: Option<QdiscParams>) -> Handle {
        let handle = Handle::new(self.next, 0);
        self.next += 1;
        let estimator = (self.below(8) == 0).then_some(Estimator { interval_log: 0, ewma_log: 2 });
        self.machines
            .iter_mut()
            .for_each(|machine| machine.qdisc(parent, handle, kind, params.clone(), estimator));
        handle
    }

    fn class(&mut self, parent: Handle, class: Handle, params: &ClassParams) {
        for machine in &mut self.machines {
            machine.class(Time(1_000), Verb::Add, parent, class, Some(params.clone()));
        }
        self.named.push(class);
    }

    /// A random qdisc, and what is attached below.
    fn grow(&mut self, parent: Handle, depth: u64) {
        match if depth == 0 { self.below(7) } else { 4 + self.below(6) } {
            4..7 => self.grow_htb(parent, depth),
            7 | 8 => self.grow_bands(parent, depth),
            9 => self.grow_ring(parent, depth),
            0 => drop(self.qdisc(parent, "codel", None)),
            1 => drop(self.qdisc(parent, "fq_codel", None)),
            2 => {
                let spec = |rate| RateSpec { rate: Rate(rate), ..RateSpec::default() };
                let rate = spec(50_000 + self.below(500_000));
                let params = TbfParams { rate, limit: 20_000, burst: 3_000_000, ..TbfParams::default() };
                self.qdisc(parent, "tbf", Some(QdiscParams::Tbf(params)));
            }
            _ => {
                let limit = Some(1 + self.below(40) as u32);
                let kind = ["pfifo", "pfifo_head_drop"][self.below(2) as usize];
                self.qdisc(parent, kind, Some(QdiscParams::Fifo(FifoParams { limit })));
            }
        }
    }

    /// Something below a class, or the fifo that was not requested.
    fn grow_below(&mut self, class: Handle, depth: u64) {
        let goes_on = self.below(3) > 0;
        if depth > 0 && goes_on {
            let deeper = self.below(depth);
            self.grow(class, deeper);
        }
    }

    fn grow_htb(&mut self, parent: Handle, depth: u64) {
        let default = 1 + self.below(20) as u32;
        let handle =
            self.qdisc(parent, "htb", Some(QdiscParams::Htb(HtbParams { default, ..HtbParams::default() })));
        if self.below(2) == 0 {
            self.machines.iter_mut().for_each(|machine| machine.filter(handle));
        }
        let mut inner = vec![Handle::ROOT];
        for minor in 1..2 + self.below(12) as u16 {
            let class = handle.class(minor);
            let above = inner[self.below(inner.len() as u64) as usize];
            let framing = self.below(8) == 0;
            let mut spec = |top: u64| RateSpec {
                rate: Rate(10_000 << self.below(top)),
                overhead: if framing { 24 } else { 0 },
                mpu: if framing { 64 } else { 0 },
                linklayer: LinkLayer::Ethernet,
            };
            let params = HtbClassParams {
                rate: spec(14),
                ceil: spec(16),
                buffer: Ticks(1 << (4 + self.below(20))),
                cbuffer: Ticks(1 << (4 + self.below(20))),
                quantum: [300, 1514, 4000, 60_000][self.below(4) as usize],
                prio: self.below(3) as u32,
            };
            self.class(above, class, &ClassParams::Htb(params));
            if self.below(3) == 0 && inner.len() < 4 {
                inner.push(class);
            } else {
                self.leaves.push(class);
                self.grow_below(class, depth);
            }
        }
    }

    fn grow_bands(&mut self, parent: Handle, depth: u64) {
        let bands = 2 + self.below(8) as u32;
        let priomap = core::array::from_fn(|_| self.below(u64::from(bands)) as u8);
        let handle = self.qdisc(parent, "prio", Some(QdiscParams::Prio(PrioParams { bands, priomap })));
        for minor in 1..=bands as u16 {
            self.named.push(handle.class(minor));
            self.grow_below(handle.class(minor), depth);
        }
    }

    fn grow_ring(&mut self, parent: Handle, depth: u64) {
        let handle = self.qdisc(parent, "drr", None);
        if self.below(2) == 0 {
            self.machines.iter_mut().for_each(|machine| machine.filter(handle));
        }
        for minor in 1..2 + self.below(6) as u16 {
            let quantum = Some(300 + self.below(3000) as u32);
            self.class(Handle::ROOT, handle.class(minor), &ClassParams::Drr(DrrClassParams { quantum }));
            self.grow_below(handle.class(minor), depth);
        }
    }

    fn packets(&mut self, idents: &mut u32) -> Vec<Meta> {
        let name = |pair: &mut Pair| match pair.below(3) {
            0 => pair.below(16) as u32,
            _ if pair.named.is_empty() => 0,
            _ => {
                let at = pair.below(pair.named.len() as u64) as usize;
                pair.named[at].0
            }
        };
        let mut meta = |pair: &mut Pair| {
            *idents += 1;
            let len = [60, 64, 400, 1514, 9000][pair.below(5) as usize];
            let (priority, mark) = (name(pair), FwMark(name(pair)));
            let mut meta = Meta::default();
            (meta.len, meta.frame_len, meta.truesize) = (len, len, 2 * len);
            (meta.priority, meta.mark, meta.ethertype, meta.ident) = (priority, mark, 0x0800, *idents);
            meta
        };
        (0..self.below(70)).map(|_| meta(self)).collect()
    }

    /// Deletes a leaf that may have a qdisc below and packets in it.
    fn delete_a_leaf(&mut self, now: Time) {
        if self.leaves.is_empty() {
            return;
        }
        let at = self.below(self.leaves.len() as u64) as usize;
        let leaf = self.leaves.swap_remove(at);
        self.machines
            .iter_mut()
            .for_each(|machine| machine.class(now, Verb::Delete, Handle::NONE, leaf, None));
    }
}

#[test]
fn batches_are_as_packets_one_by_one() {
    let (mut sent, mut lost) = (0, 0);
    for tree in 0..TREES {
        let mut pair = Pair {
            random: Seeded::new(tree),
            machines: [Machine::new(false), Machine::new(true)],
            named: Vec::new(),
            leaves: Vec::new(),
            next: 1,
        };
        pair.grow(Handle::ROOT, 3);
        let (mut now, mut idents) = (Time(1_000_000), 0);
        for step in 0..STEPS {
            let metas = pair.packets(&mut idents);
            let scale = 8 + pair.below(20);
            now += Nanos(pair.below(1 << scale));
            let room = pair.below(60) as usize;
            for machine in &mut pair.machines {
                machine.offer(now, &metas);
                machine.poll(now, room);
                machine.shaper.fire(now);
            }
            if pair.below(20) == 0 {
                pair.delete_a_leaf(now);
            }
            pair.machines.iter_mut().for_each(|machine| machine.tell(now));
            let [single, batched] = &mut pair.machines;
            assert_eq!(single.log, batched.log, "tree {tree}, step {step}");
            lost += single.log.matches("Refused").count();
            single.log.clear();
            batched.log.clear();
        }
        sent += idents as usize - pair.machines[0].pool.live();
    }
    // The trees send most, and drop some.
    assert!(sent > lost && lost > 1000, "{sent} left, {lost} were lost");
}
