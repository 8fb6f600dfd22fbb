//! Random trees of all kinds, with changes and replacements while packets wait: the books of every qdisc are
//! right after every call, and what is sent of a flow is in order.

use super::flat::{bytes_per_second, htb, tbf};
use super::world::World;
use tidegate_packet::{Handle, Nanos, Rate};
use tidegate_policy::*;

/// A leaf of the tree: where its qdisc is attached, what is above, which packets come.
struct Leaf {
    parent: Handle,
    above: Vec<Handle>,
    class: u16,
    /// Its own qdisc, if it has one with a handle.
    qdisc: Option<Handle>,
}

/// A class made by hand, and how it can be changed.
struct Made {
    kind: &'static str,
    parent: Handle,
    id: Handle,
}

struct Tree {
    world: World,
    leaves: Vec<Leaf>,
    made: Vec<Made>,
    next: u16,
    /// hhf was somewhere: a flow that it takes for a heavy one goes past its own packets.
    reorders: bool,
}

const INNER: [&str; 6] = ["prio", "drr", "qfq", "hfsc", "htb", "tbf"];
const LEAVES: &[&str] = &[
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "pfifo_fast",
    "sfq",
    "codel",
    "fq_codel",
    "pie",
    "fq_pie",
    "fq",
    "hhf",
    "skbprio",
    "netem",
    "cake",
    "dualpi2",
];

impl Tree {
    fn new(seed: u64) -> Tree {
        let link = [0, 3_000_000, 20_000_000][seed as usize % 3];
        let mut tree = Tree {
            world: World::new(seed, link),
            leaves: Vec::new(),
            made: Vec::new(),
            next: 1,
            reorders: false,
        };
        tree.world.named = false;
        let root = INNER[tree.world.below(6) as usize];
        let mut classes = Vec::new();
        tree.inner(root, Handle::ROOT, &[], 0, &mut classes);
        tree
    }

    fn handle(&mut self) -> Handle {
        self.next += 1;
        Handle::new(self.next - 1, 0)
    }

    /// An inner qdisc with children; adds the classes of packets that come to it to `into`.
    fn inner(
        &mut self,
        kind: &'static str,
        parent: Handle,
        above: &[Handle],
        depth: u32,
        into: &mut Vec<u16>,
    ) {
        let handle = self.handle();
        let params = self.params(kind);
        self.world.qdisc(Verb::Add, parent, handle, kind, params);
        let mut above = above.to_vec();
        above.push(handle);
        let mut all = Vec::new();
        let children = if kind == "tbf" { 1 } else { 1 + self.world.below(3) as u16 };
        for minor in 1..=children {
            let id = handle.class(minor);
            if let Some(params) = self.class(kind) {
                self.world.class(Verb::Add, handle, id, params);
                self.made.push(Made { kind, parent: handle, id });
            }
            let mut classes = Vec::new();
            if depth < 2 && self.world.below(3) == 0 {
                let below = INNER[self.world.below(6) as usize];
                self.inner(below, id, &above, depth + 1, &mut classes);
            } else {
                let class = self.leaves.len() as u16 + 1;
                self.leaves.push(Leaf { parent: id, above: above.clone(), class, qdisc: None });
                classes.push(class);
                if self.world.below(3) > 0 {
                    self.plant(self.leaves.len() - 1, Verb::Add);
                }
            }
            for class in &classes {
                if kind != "tbf" {
                    self.world.lead(handle, *class, id);
                }
            }
            all.extend(classes);
        }
        self.world.account(handle, &above[..above.len() - 1], &all);
        into.extend(all);
    }

    /// Puts a qdisc on a leaf.
    fn plant(&mut self, leaf: usize, verb: Verb) {
        let handle = self.handle();
        let kind = LEAVES[self.world.below(LEAVES.len() as u64) as usize];
        self.reorders |= kind == "hhf";
        let params = self.params(kind);
        let Leaf { parent, class, .. } = self.leaves[leaf];
        self.world.qdisc(verb, parent, handle, kind, params);
        if let Some(old) = self.leaves[leaf].qdisc.replace(handle) {
            self.world.close_account(old);
        }
        let above = self.leaves[leaf].above.clone();
        self.world.account(handle, &above, &[class]);
    }

    fn params(&mut self, kind: &str) -> Option<QdiscParams> {
        let world = &mut self.world;
        Some(match kind {
            "prio" => QdiscParams::Prio(PrioParams::default()),
            "htb" => QdiscParams::Htb(HtbParams::default()),
            "hfsc" => QdiscParams::Hfsc(HfscParams::default()),
            "tbf" => {
                QdiscParams::Tbf(tbf(200_000 + world.below(4_000_000), 1514 + world.below(4000) as u32, 9000))
            }
            "pfifo" | "pfifo_head_drop" => {
                QdiscParams::Fifo(FifoParams { limit: Some(world.below(12) as u32) })
            }
            "bfifo" => QdiscParams::Fifo(FifoParams { limit: Some(world.below(9000) as u32) }),
            "sfq" => {
                QdiscParams::Sfq(SfqParams { limit: 2 + world.below(20) as u32, ..SfqParams::default() })
            }
            "codel" => QdiscParams::Codel(CodelParams {
                limit: Some(2 + world.below(20) as u32),
                target_us: Some(2000),
                interval_us: Some(15_000),
                ..CodelParams::default()
            }),
            "fq_codel" => QdiscParams::FqCodel(FqCodelParams {
                limit: Some(2 + world.below(20) as u32),
                target_us: Some(2000),
                interval_us: Some(15_000),
                flows: Some(4),
                ..FqCodelParams::default()
            }),
            "pie" => QdiscParams::Pie(PieParams::default()),
            "dualpi2" => QdiscParams::DualPi2(DualPi2Params {
                limit: Some(1 + world.below(20) as u32),
                target_us: Some(2000),
                tupdate_us: Some(1000),
                ..DualPi2Params::default()
            }),
            "cake" => QdiscParams::Cake(Box::new(CakeParams {
                bandwidth: Some(Rate::bits(world.below(4) * 1_000_000)),
                // A change to fewer tins forgets packets behind the backs of the qdiscs above, so the books
                // of Linux are wrong then.
                tins: Some(CakeTins::Diffserv4),
                flows: Some(CakeFlows::ALL[world.below(8) as usize]),
                rtt_us: Some(5000),
                target_us: Some(250),
                ingress: Some(world.below(2) == 0),
                memory_limit: Some(5000 + world.below(40_000) as u32),
                ..CakeParams::default()
            })),
            "skbprio" => QdiscParams::Skbprio(SkbprioParams { limit: Some(world.below(12) as u32) }),
            "hhf" => QdiscParams::Hhf(HhfParams {
                limit: Some(2 + world.below(20) as u32),
                admit_bytes: Some(3000 + world.below(9000) as u32),
                ..HhfParams::default()
            }),
            "fq_pie" => QdiscParams::FqPie(FqPieParams { flows: Some(4), ..FqPieParams::default() }),
            "fq" => QdiscParams::Fq(FqParams {
                limit: Some(2 + world.below(20) as u32),
                max_rate: Some(20_000 + world.below(500_000) as u32),
                ..FqParams::default()
            }),
            "netem" => QdiscParams::Netem(Box::new(NetemParams {
                limit: 1 + world.below(20) as u32,
                // Jitter, reordering and a delay that shrinks break the order: that is what they are for.
                latency_ns: 10_000_000,
                ..NetemParams::default()
            })),
            _ => return None,
        })
    }

    fn class(&mut self, kind: &str) -> Option<ClassParams> {
        let world = &mut self.world;
        let bits = 200_000 + world.below(4_000_000);
        Some(match kind {
            "drr" => ClassParams::Drr(DrrClassParams { quantum: Some(300 + world.below(4000) as u32) }),
            "qfq" => ClassParams::Qfq(QfqClassParams {
                weight: Some(1 + world.below(6) as u32),
                maxpkt: Some(512 + 500 * world.below(4) as u32),
            }),
            "htb" => htb(bits, bits + world.below(4_000_000), 2000, 1514),
            "hfsc" => {
                let line = ServiceCurve { m1: 0, d_us: 0, m2: bytes_per_second(bits) };
                let bent =
                    ServiceCurve { m1: line.m2 * 2, d_us: 1 + world.below(30_000) as u32, m2: line.m2 };
                let rt = [None, Some(line), Some(bent)][world.below(3) as usize];
                let ul = [None, Some(ServiceCurve { m2: line.m2 * 2, ..line })][world.below(2) as usize];
                ClassParams::Hfsc(HfscClassParams { rt, ls: Some(line), ul })
            }
            _ => return None,
        })
    }

    /// Something is changed while packets wait.
    fn meddle(&mut self) {
        if self.world.below(2) == 0 || self.made.is_empty() {
            let leaf = self.world.below(self.leaves.len() as u64) as usize;
            self.plant(leaf, Verb::Replace);
            return;
        }
        let which = self.world.below(self.made.len() as u64) as usize;
        let Made { kind, parent, id } = self.made[which];
        let Some(params) = self.class(kind) else { return };
        // The parent of a class of HTB need not be given.
        let parent = if kind == "htb" { Handle::NONE } else { parent };
        self.world.class(Verb::Change, parent, id, params);
    }

    fn run(&mut self, packets: usize) {
        for _ in 0..packets {
            let gap = if self.world.below(6) == 0 {
                self.world.below(30_000_000)
            } else {
                self.world.below(900_000)
            };
            self.world.pass(self.world.now + Nanos(gap));
            let leaf = self.world.below(self.leaves.len() as u64) as usize;
            let (flow, len) = (self.world.below(4) as u16, 64 + self.world.below(1451) as u32);
            self.world.offer(self.leaves[leaf].class, flow, len);
            if self.world.below(40) == 0 {
                self.meddle();
            }
        }
    }
}

#[test]
fn the_books_of_every_qdisc_are_right_after_every_call() {
    let (mut sent, mut ordered) = (0, 0);
    for seed in 0..150 {
        let mut tree = Tree::new(seed);
        tree.run(150);
        let end = tree.world.now + Nanos::secs(120);
        tree.world.pass(end);
        assert_eq!(tree.world.waiting(), 0, "seed {seed}: all leaves in the end");
        if !tree.reorders {
            tree.world.flows_are_in_order();
            ordered += 1;
        }
        sent += tree.world.sent.len();
    }
    assert!(sent > 10_000 && ordered > 50, "only {sent} were sent, only {ordered} trees keep order");
}
