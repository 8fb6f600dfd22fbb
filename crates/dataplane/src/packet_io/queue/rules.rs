//! The rules that lead packets to our queues: a table of our own, which the kernel removes when its owner is
//! gone.

use std::io;

use tidegate_policy::netfilter::{Base, ChainType, Hook};

use super::super::{AttachPoint, TrafficDirection};
use tidegate_netlink::Netfilter;
use tidegate_netlink::encode::nft::{
    Batch, Expressions, NftCmp, NftHeader, NftMeta, NftQueue, NftVerdict, Payload,
};

/// Behind source translation (100), so that what leaves has the addresses it leaves with.
const LEAVING: i32 = 200;
/// Right behind.
const MARKING: i32 = LEAVING + 1;
/// Behind connection tracking (-200) and rules that mark arrivals (-150), before destinations are translated
/// (-100).
const COMING: i32 = -140;
/// `NFPROTO_IPV4` and `NFPROTO_IPV6`, as `meta nfproto` has them.
const FAMILIES: [u8; 2] = [2, 10];
/// The first two bytes of either header, without and with congestion experienced.
const CONGESTED: [([u8; 2], [u8; 2]); 2] = [([0xff, 0xfc], [0, 0x03]), ([0xff, 0xcf], [0, 0x30])];
/// Where IPv4's header has its checksum.
const CHECKSUM: u32 = 10;

/// The table; it is removed when this is dropped, or when its owner dies.
#[derive(Debug)]
pub(super) struct Rules {
    netfilter: Netfilter,
    table: String,
}

impl Rules {
    /// Makes the rules: packets that pass an attach point are queued in the queue of its number, counted from
    /// `first`. Packets with `congested` in their mark when they come back get CE, and that bit is cleared.
    pub(super) fn make(spots: &[AttachPoint], first: u16, congested: u32) -> io::Result<Rules> {
        let mut rules = Rules { netfilter: Netfilter::open()?, table: format!("tidegate-door-{first}") };
        // Left by an owner that was killed, on a kernel whose tables do not go with their owners.
        let _ = rules.carry_out(|batch| batch.delete_table());
        let mut refused = None;
        // A kernel may have queues as nftables' own expression, or as iptables' target; and tables with
        // owners (5.12), or not.
        for (owned, own) in [(true, true), (true, false), (false, true), (false, false)] {
            match rules.carry_out(|batch| rules_of(batch, spots, first, congested, owned, own)) {
                Ok(()) => return Ok(rules),
                Err(error) => refused = Some(refused.unwrap_or(error)),
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::other("no rules were tried")))
    }

    /// Nothing is redirected to the queues any more. The chains stay: with a chain the kernel drops whatever
    /// waits in any queue.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.carry_out(|batch| batch.delete_rules())
    }

    fn carry_out(&mut self, fill: impl FnOnce(&mut Batch)) -> io::Result<()> {
        let mut batch = Batch::new(&self.table);
        fill(&mut batch);
        self.netfilter.carry_out(batch)?.map_err(|(_, refused)| {
            let kind = io::Error::from_raw_os_error(refused.errno).kind();
            io::Error::new(kind, format!("the rules that lead packets to a queue are refused: {refused}"))
        })
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // With its owner it would go anyway, but not at once.
        let _ = self.carry_out(|batch| batch.delete_table());
    }
}

fn rules_of(batch: &mut Batch, spots: &[AttachPoint], first: u16, congested: u32, owned: bool, own: bool) {
    let comment = Some("packets on their way through tidegate");
    if owned {
        batch.make_own_table(comment)
    } else {
        batch.make_table(comment)
    }
    let base = |hook, priority| Some(Base { kind: ChainType::Filter, hook, priority });
    batch.chain("leaving", base(Hook::Postrouting, LEAVING), true);
    batch.chain("marking", base(Hook::Postrouting, MARKING), true);
    batch.chain("coming", base(Hook::Prerouting, COMING), true);
    batch.chain("marked", base(Hook::Prerouting, COMING + 1), true);
    for (number, point) in (first..).zip(spots) {
        let queue = NftQueue { first: number, count: 1, bypass: true, by_processor: false };
        let mut rule = Expressions::default();
        let by = |rule: &mut Expressions| match point.direction {
            TrafficDirection::Egress => drop(rule.leaves_by(&point.dev)),
            TrafficDirection::Ingress => drop(rule.came_by(&point.dev)),
        };
        by(&mut rule);
        if own {
            rule.queue(queue)
        } else {
            rule.queue_target(queue)
        };
        let (queueing, marking) = match point.direction {
            TrafficDirection::Egress => ("leaving", "marking"),
            TrafficDirection::Ingress => ("coming", "marked"),
        };
        batch.rule(queueing, &rule);
        for rule in congestion(&by, congested) {
            batch.rule(marking, &rule);
        }
    }
}

/// The rules that write CE: one for each family, and one that takes the bit off the mark.
fn congestion(by: &dyn Fn(&mut Expressions), bit: u32) -> Vec<Expressions> {
    let field = Payload { base: NftHeader::Network, offset: 0, length: 2 };
    let mut rules = Vec::new();
    for (family, (keep, set)) in FAMILIES.into_iter().zip(CONGESTED) {
        let mut rule = Expressions::default();
        by(&mut rule);
        rule.marked(bit, bit, false).load_meta(NftMeta::Family).compare(NftCmp::Is, &[family]);
        rule.load(field).bits(&keep, &set).store(field, (family == FAMILIES[0]).then_some(CHECKSUM));
        rules.push(rule);
    }
    let mut rule = Expressions::default();
    by(&mut rule);
    rule.marked(bit, bit, false)
        .load_meta(NftMeta::Mark)
        .bits(&(!bit).to_ne_bytes(), &[0; 4])
        .set_meta(NftMeta::Mark);
    rule.verdict(&NftVerdict::Accept);
    rules.push(rule);
    rules
}
