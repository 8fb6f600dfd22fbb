//! Trees under a steady load: a backlog that stays, each packet that leaves replaced by one for a random leaf
//! and flow.

#![allow(unreachable_pub)] // shared with a test

use tidegate_packet::{FwMark, Handle, Head, Meta, Nanos, Pkt, Pool, Rate, Seeded, Time};
use tidegate_policy::*;
use tidegate_qdisc::{DeviceInfo, EventRing, Shaper, XmitStatus};

/// Packets polled, then offered, at a time: as rte_sched's benchmark does.
const BATCH: usize = 32;
/// Bytes of every packet.
const LEN: u32 = 64;
/// Between two packets: 10.24 Gbit/s of 64 bytes.
const STEP: Nanos = Nanos(50);
/// The link of every shaping tree: never the bottleneck, so that every poll finds a packet.
const LINK: Rate = Rate::bits(100_000_000_000);
const ROOT: Handle = Handle::new(1, 0);

/// How packets come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketInput {
    /// Their priority names the leaf, and the flow hash is known.
    Given,
    /// The same, one by one instead of in batches.
    Single,
    /// With header bytes: dissected and hashed here where a qdisc asks, classified by filters.
    Parsed,
}

/// One kind of packet.
struct Sort {
    head: Head,
    priority: u32,
    mark: FwMark,
}

/// What a packet's priority and mark name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// The priority names the leaf.
    Leaf,
    /// It names the flow: for a hash with a key of its own, only a priority can spare the hashing.
    Flow,
    /// It names nothing.
    Nothing,
    /// It names the queue within a pipe, the mark the pipe.
    Pipes,
    /// It names the leaf within a share, the mark the share.
    Shares,
}

impl Names {
    fn of(case: &BenchCase) -> Names {
        match case.name.split(' ').next() {
            Some("sfq,") => Names::Flow,
            Some("fq_codel," | "cake,") => Names::Nothing,
            Some("pipes,") => Names::Pipes,
            Some("shares,") => Names::Shares,
            _ => Names::Leaf,
        }
    }

    fn priority(self, leaf: u32, flow: u32) -> u32 {
        match self {
            Names::Leaf => leaf_class(leaf).0,
            Names::Flow => leaf_class(flow).0,
            Names::Nothing => 0,
            Names::Pipes => queue_in_pipe(leaf, flow),
            Names::Shares => share_handle(leaf).class((leaf / SHARES + 1) as u16).0,
        }
    }

    fn mark(self, leaf: u32) -> FwMark {
        match self {
            Names::Pipes => FwMark(leaf_class(leaf).0),
            Names::Shares => FwMark(leaf_class(leaf % SHARES).0),
            _ => FwMark(leaf + 1),
        }
    }
}

/// Spread evenly: what is measured is the tree, not collisions of a hash.
fn flow_hash(flow: u32) -> u32 {
    (flow + 1).wrapping_mul(0x9e37_79b9) | 1
}

/// A tree and its load.
pub struct Rig {
    shaper: Shaper,
    pool: Pool,
    source: Seeded,
    now: Time,
    arrival: PacketInput,
    names: Names,
    leaves: u32,
    flows: u32,
    sorts: Vec<Sort>,
    random: u32,
    batch: Vec<Pkt>,
    renewed: Vec<Pkt>,
    backlog: usize,
    /// Packets that were refused or lost; a good run has none.
    pub lost: usize,
}

/// A tree to be built, and what loads it.
#[derive(Clone, Copy)]
pub struct BenchCase {
    /// Its name in the table.
    pub name: &'static str,
    /// Leaves: classes, bands or flows that packets are spread over.
    pub leaves: u32,
    /// Flows in each leaf.
    pub flows: u32,
    /// Packets waiting in each leaf.
    pub backlog: u32,
    /// Builds the tree.
    pub build: fn(&mut Rig, &BenchCase),
}

/// All trees.
pub const CASES: &[BenchCase] = &[
    BenchCase { name: "pfifo", leaves: 1, flows: 1, backlog: 256, build: |rig, _| rig.root("pfifo", None) },
    BenchCase { name: "prio, 3 bands", leaves: 3, flows: 1, backlog: 128, build: prio },
    BenchCase { name: "tbf", leaves: 1, flows: 1, backlog: 256, build: tbf },
    BenchCase { name: "drr, 16 classes", leaves: 16, flows: 1, backlog: 16, build: drr },
    BenchCase { name: "sfq, 100 flows", leaves: 1, flows: 100, backlog: 400, build: sfq },
    BenchCase { name: "codel", leaves: 1, flows: 1, backlog: 256, build: |rig, _| rig.root("codel", None) },
    BenchCase {
        name: "fq_codel, 100 flows",
        leaves: 1,
        flows: 100,
        backlog: 400,
        build: |rig, _| rig.root("fq_codel", None),
    },
    BenchCase { name: "cake, 100 flows", leaves: 1, flows: 100, backlog: 400, build: cake },
    BenchCase {
        name: "htb, 1 leaf, pfifo",
        leaves: 1,
        flows: 1,
        backlog: 256,
        build: |rig, c| htb(rig, c, 1, 10),
    },
    BenchCase {
        name: "htb, 16 leaves, pfifo",
        leaves: 16,
        flows: 1,
        backlog: 16,
        build: |rig, c| htb(rig, c, 1, 10),
    },
    BenchCase {
        name: "htb, 4096 leaves, pfifo",
        leaves: 4096,
        flows: 1,
        backlog: 8,
        build: |rig, c| htb(rig, c, 1, 10),
    },
    BenchCase {
        name: "htb, 16 borrowing, pfifo",
        leaves: 16,
        flows: 1,
        backlog: 16,
        build: |rig, c| htb(rig, c, 1, -2),
    },
    BenchCase { name: "htb, 16 leaves, fq_codel", leaves: 16, flows: 4, backlog: 16, build: htb_fq_codel },
    BenchCase { name: "htb, 4096 leaves, fq_codel", leaves: 4096, flows: 4, backlog: 8, build: htb_fq_codel },
    BenchCase {
        name: "htb, 1024 x 16, pfifo",
        leaves: 16384,
        flows: 1,
        backlog: 2,
        build: |rig, c| htb(rig, c, 16, 10),
    },
    BenchCase { name: "pipes, 1 x 16", leaves: 1, flows: 16, backlog: 512, build: pipes },
    BenchCase { name: "pipes, 1024 x 16", leaves: 1024, flows: 16, backlog: 32, build: pipes },
    BenchCase { name: "pipes, 4096 x 16", leaves: 4096, flows: 16, backlog: 16, build: pipes },
    BenchCase { name: "shares, 100 classes", leaves: 100, flows: 1, backlog: 16, build: shares },
    BenchCase { name: "shares, 100000 classes", leaves: 100_000, flows: 1, backlog: 2, build: shares },
    BenchCase { name: "drr, 16384 classes", leaves: 16384, flows: 1, backlog: 2, build: drr },
];

impl Rig {
    /// Builds the tree and fills it.
    pub fn new(case: &BenchCase, arrival: PacketInput) -> Rig {
        let mut rig = Rig {
            shaper: Shaper::new(
                DeviceInfo { tx_queue_len: 100_000, ..DeviceInfo::default() },
                EventRing::new(0),
            ),
            pool: Pool::new(1 << 20),
            source: Seeded::new(1),
            now: Time(1_000_000_000),
            arrival,
            names: Names::of(case),
            leaves: case.leaves,
            flows: case.flows,
            sorts: Vec::new(),
            random: 12345,
            batch: Vec::with_capacity(BATCH),
            renewed: Vec::with_capacity(BATCH),
            backlog: (case.leaves * case.backlog) as usize,
            lost: 0,
        };
        (case.build)(&mut rig, case);
        if arrival == PacketInput::Parsed && !matches!(rig.names, Names::Pipes | Names::Shares) {
            rig.filters(case);
        }
        rig.sorts = (0..case.leaves * case.flows).map(|n| rig.sort(case, n)).collect();
        for _ in 0..rig.backlog {
            let meta = Meta::of(&rig.sorts[0].head, LEN);
            let pkt = rig.pool.insert(meta, Head::default()).expect("the pool has room");
            rig.offer(pkt);
        }
        rig
    }

    /// Leaf `n / flows`, flow `n % flows`.
    fn sort(&self, case: &BenchCase, n: u32) -> Sort {
        let (leaf, flow) = (n / case.flows, n % case.flows);
        let mut ip = [0u8; 48];
        ip[0] = 0x45;
        ip[3] = 50;
        (ip[8], ip[9]) = (64, 17);
        ip[12..16].copy_from_slice(&[10, 0, (leaf >> 8) as u8, leaf as u8]);
        ip[16..20].copy_from_slice(&[192, 0, 2, 1]);
        ip[20..22].copy_from_slice(&(1024 + flow as u16).to_be_bytes());
        ip[22..24].copy_from_slice(&(5000 + leaf as u16 % 1000).to_be_bytes());
        Sort {
            head: Head::from_network(0x0800, &ip),
            priority: if matches!(self.names, Names::Pipes | Names::Shares) {
                self.names.priority(leaf, flow)
            } else {
                0
            },
            mark: self.names.mark(leaf),
        }
    }

    /// Filters for each leaf: u32 on the destination port for a few, firewall marks for many.
    fn filters(&mut self, case: &BenchCase) {
        let flat = matches!(
            case.name.split([',', ' ']).next(),
            Some("pfifo" | "tbf" | "sfq" | "codel" | "fq_codel" | "cake")
        );
        if flat {
            return;
        }
        for leaf in 0..case.leaves {
            let classid = Some(leaf_class(leaf));
            let (kind, handle, params) = if case.leaves <= 16 {
                let port = U32Key { value: 5000 + leaf, mask: 0xffff, offset: 20, offset_mask: 0 };
                let udp = U32Key { value: 0x11_0000, mask: 0xff_0000, offset: 8, offset_mask: 0 };
                (
                    "u32",
                    0,
                    FilterParams::U32(U32Params { classid, keys: vec![udp, port], ..U32Params::default() }),
                )
            } else {
                ("fw", leaf + 1, FilterParams::Fw(FwParams { classid, ..FwParams::default() }))
            };
            self.filter(handle, kind, Some(params));
        }
    }

    fn filter(&mut self, handle: u32, kind: &str, params: Option<FilterParams>) {
        let op = FilterOp {
            verb: Verb::Add,
            dev: "bench".into(),
            block: 0,
            parent: ROOT,
            pref: 1,
            protocol: 0x0800,
            chain: 0,
            handle,
            kind: Some(kind.into()),
            params,
            actions: Vec::new(),
        };
        let result = self.shaper.filter_op(self.now, &mut self.pool, &mut self.source, &op);
        assert!(result.is_ok(), "filter {op:?}: {result:?}");
    }

    fn root(&mut self, kind: &str, params: Option<QdiscParams>) {
        self.qdisc(Handle::ROOT, ROOT, kind, params);
    }

    fn qdisc(&mut self, parent: Handle, handle: Handle, kind: &str, params: Option<QdiscParams>) {
        let (kind, stab) = (Some(kind.into()), None);
        let op = QdiscOp {
            verb: Verb::Add,
            dev: "bench".into(),
            parent,
            handle,
            kind,
            params,
            stab,
            estimator: None,
            blocks: SharedBlocks::default(),
        };
        let result = self.shaper.qdisc_op(self.now, &mut self.pool, &mut self.source, &op);
        assert!(result.is_ok(), "qdisc {op:?}: {result:?}");
    }

    fn class(&mut self, parent: Handle, classid: Handle, params: ClassParams) {
        let (kind, params) = (None, Some(params));
        let op =
            ClassOp { verb: Verb::Add, dev: "bench".into(), parent, classid, kind, params, estimator: None };
        let result = self.shaper.class_op(self.now, &mut self.pool, &mut self.source, &op);
        assert!(result.is_ok(), "class {op:?}: {result:?}");
    }

    fn next_random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    /// Makes a packet a new one of a random sort.
    #[inline]
    fn renew(&mut self, pkt: Pkt) -> Pkt {
        let random = self.next_random();
        let leaf = ((u64::from(random) * u64::from(self.leaves)) >> 32) as u32;
        let flow = ((random & 0xffff) * self.flows) >> 16;
        if self.arrival != PacketInput::Parsed {
            let meta = self.pool.meta_mut(&pkt);
            (meta.priority, meta.mark) = (self.names.priority(leaf, flow), self.names.mark(leaf));
            self.pool.set_hash(&pkt, flow_hash(flow));
            return pkt;
        }
        let sort = &self.sorts[(leaf * self.flows + flow) as usize];
        self.pool.release(pkt);
        let mut meta = Meta::of(&sort.head, LEN);
        (meta.mark, meta.priority) = (sort.mark, sort.priority);
        let Some(pkt) = self.pool.insert(meta, sort.head.clone()) else {
            unreachable!("one was just released")
        };
        pkt
    }

    fn offer(&mut self, pkt: Pkt) {
        self.now += STEP;
        let pkt = self.renew(pkt);
        if self.shaper.offer(self.now, &mut self.pool, &mut self.source, pkt) != XmitStatus::Queued {
            self.lost += 1;
        }
    }

    /// Sends `packets` packets and takes in as many.
    #[inline(never)]
    pub fn steady(&mut self, packets: usize) {
        for _ in 0..packets / BATCH {
            if self.arrival == PacketInput::Single {
                self.turn_singly();
            } else {
                self.turn();
            }
        }
    }

    /// A batch out and in.
    fn turn(&mut self) {
        let mut batch = core::mem::take(&mut self.batch);
        self.shaper.poll_batch(self.now, &mut self.pool, &mut self.source, BATCH, &mut batch);
        self.lost += BATCH - batch.len();
        self.now += Nanos(STEP.0 * BATCH as u64);
        let mut renewed = core::mem::take(&mut self.renewed);
        for pkt in batch.drain(..) {
            let pkt = self.renew(pkt);
            renewed.push(pkt);
        }
        let lost = &mut self.lost;
        self.shaper.offer_batch(self.now, &mut self.pool, &mut self.source, &mut renewed, |offer, _| {
            *lost += usize::from(offer != XmitStatus::Queued);
        });
        (self.batch, self.renewed) = (batch, renewed);
    }

    fn turn_singly(&mut self) {
        for _ in 0..BATCH {
            match self.shaper.poll(self.now, &mut self.pool, &mut self.source) {
                Some(pkt) => self.batch.push(pkt),
                None => self.lost += 1,
            }
        }
        while let Some(pkt) = self.batch.pop() {
            self.offer(pkt);
        }
    }

    /// Is the backlog what it was?
    pub fn whole(&self) -> bool {
        self.lost == 0 && self.pool.live() == self.backlog
    }
}

/// The class of a leaf; inner classes have numbers below and above.
fn leaf_class(leaf: u32) -> Handle {
    ROOT.class(1 + leaf as u16)
}

fn prio(rig: &mut Rig, _case: &BenchCase) {
    rig.root("prio", Some(QdiscParams::Prio(PrioParams::default())));
}

fn tbf(rig: &mut Rig, _case: &BenchCase) {
    let rate = RateSpec { rate: LINK, ..RateSpec::default() };
    let params = TbfParams { rate, limit: 1 << 20, burst: 1 << 20, ..TbfParams::default() };
    rig.root("tbf", Some(QdiscParams::Tbf(params)));
}

/// Shaping at a rate at which no packet takes a nanosecond: all is computed, and nothing has to wait.
fn cake(rig: &mut Rig, _case: &BenchCase) {
    let params = CakeParams { bandwidth: Some(Rate(1 << 50)), ..CakeParams::default() };
    rig.root("cake", Some(QdiscParams::Cake(Box::new(params))));
}

fn sfq(rig: &mut Rig, _case: &BenchCase) {
    let params = SfqParams { limit: 10_000, flows: 1024, depth: 127, divisor: 1024, ..SfqParams::default() };
    rig.root("sfq", Some(QdiscParams::Sfq(params)));
}

fn drr(rig: &mut Rig, case: &BenchCase) {
    rig.root("drr", None);
    for leaf in 0..case.leaves {
        rig.class(ROOT, leaf_class(leaf), ClassParams::Drr(DrrClassParams::default()));
    }
}

/// A link class, then leaves in groups of `fanout` (1: all under the link). A leaf's rate is its share of the
/// load times `share`, or divided by it when negative: with less than its share it borrows most of the time,
/// and its mode changes all the time.
fn htb(rig: &mut Rig, case: &BenchCase, fanout: u32, share: i64) {
    let load = u64::from(LEN) * 1_000_000_000 / STEP.0;
    let fair = load / u64::from(case.leaves);
    let rate = if share > 0 { fair * share as u64 } else { fair / share.unsigned_abs() };
    htb_of(rig, case, fanout, Rate(rate), 4 * LEN);
}

/// The same with the rate of a leaf, and how many bytes its bucket holds.
fn htb_of(rig: &mut Rig, case: &BenchCase, fanout: u32, rate: Rate, burst: u32) {
    rig.root("htb", Some(QdiscParams::Htb(HtbParams::default())));
    let top = ROOT.class(0xfff0);
    rig.class(Handle::ROOT, top, htb_class(LINK, burst));
    for leaf in 0..case.leaves {
        let mut parent = top;
        if fanout > 1 {
            parent = ROOT.class(0x8000 + (leaf / fanout) as u16);
            if leaf % fanout == 0 {
                let all = Rate(rate.0.saturating_mul(u64::from(fanout)).min(LINK.0));
                rig.class(top, parent, htb_class(all, burst));
            }
        }
        rig.class(parent, leaf_class(leaf), htb_class(Rate(rate.0.min(LINK.0)), burst));
    }
}

fn htb_class(rate: Rate, burst: u32) -> ClassParams {
    let spec = |rate| RateSpec { rate, ..RateSpec::default() };
    ClassParams::Htb(HtbClassParams {
        rate: spec(rate),
        ceil: spec(LINK),
        buffer: Ticks((u64::from(burst) * Ticks::PER_SECOND / rate.0).max(1000) as u32),
        cbuffer: Ticks(1000),
        quantum: 1514,
        prio: 0,
    })
}

/// The htbs that share the link: one has numbers for 65,535 classes only.
const SHARES: u32 = 4;

fn share_handle(leaf: u32) -> Handle {
    Handle::new(2 + (leaf % SHARES) as u16, 0)
}

/// A drr over htbs that have all leaves in equal parts. The mark names the htb.
fn shares(rig: &mut Rig, case: &BenchCase) {
    rig.root("drr", None);
    rig.filter(0, "fw", None);
    let rate = Rate((10 * u64::from(LEN) * 1_000_000_000 / STEP.0 / u64::from(case.leaves)).min(LINK.0));
    for share in 0..SHARES {
        rig.class(ROOT, leaf_class(share), ClassParams::Drr(DrrClassParams::default()));
        rig.qdisc(
            leaf_class(share),
            share_handle(share),
            "htb",
            Some(QdiscParams::Htb(HtbParams::default())),
        );
        let top = share_handle(share).class(0xfff0);
        rig.class(Handle::ROOT, top, htb_class(LINK, 4 * LEN));
        for leaf in (share..case.leaves).step_by(SHARES as usize) {
            let class = share_handle(leaf).class((leaf / SHARES + 1) as u16);
            rig.class(top, class, htb_class(rate, 4 * LEN));
        }
    }
}

fn htb_fq_codel(rig: &mut Rig, case: &BenchCase) {
    htb(rig, case, 1, 10);
    for leaf in 0..case.leaves {
        rig.qdisc(leaf_class(leaf), Handle::new(0x100 + leaf as u16, 0), "fq_codel", None);
    }
}

/// Bands of strict priority in a pipe: the last has classes that take turns, as rte_sched's traffic classes.
const STRICT: u32 = 12;

fn strict_handle(pipe: u32) -> Handle {
    Handle::new(0x1000 + pipe as u16, 0)
}

fn turns_handle(pipe: u32) -> Handle {
    Handle::new(0x4000 + pipe as u16, 0)
}

/// The priority of a packet for a queue of a pipe: a small number for a band of its own, a class of the last
/// band's drr otherwise.
fn queue_in_pipe(pipe: u32, queue: u32) -> u32 {
    if queue < STRICT { queue + 1 } else { turns_handle(pipe).class((queue - STRICT + 1) as u16).0 }
}

/// A link and its pipes, each with two buckets; in each pipe 12 bands of strict priority and a 13th of four
/// classes by turns: the tree that rte_sched has. The mark names the pipe.
fn pipes(rig: &mut Rig, case: &BenchCase) {
    htb_of(rig, case, 1, LINK, 1_000_000);
    rig.filter(0, "fw", None);
    for pipe in 0..case.leaves {
        let mut priomap = [STRICT as u8; 16];
        (0..STRICT).for_each(|band| priomap[band as usize + 1] = band as u8);
        let params = PrioParams { bands: STRICT + 1, priomap };
        let (strict, turns) = (strict_handle(pipe), turns_handle(pipe));
        rig.qdisc(leaf_class(pipe), strict, "prio", Some(QdiscParams::Prio(params)));
        rig.qdisc(strict.class(STRICT as u16 + 1), turns, "drr", None);
        for class in 1..=4 {
            rig.class(turns, turns.class(class), ClassParams::Drr(DrrClassParams::default()));
        }
    }
}
