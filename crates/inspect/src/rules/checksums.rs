//! R21: pedit rewrites bytes that a checksum covers, and no action computes it again.

use super::making::finding;
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{CLSACT_EGRESS, PolicyModel};
use tidegate_gateway::{DeviceSpec, EgressPath, Gateway, GatewayContext, XmitStatus};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Handle, Head, Meta, Pool, Seeded, Time};
use tidegate_policy::{
    Act, Action, ActionsOp, Control, Csum, FilterOp, FilterParams, MatchallParams, Op, Pedit, PeditHeader,
    QdiscOp, QdiscParams, SharedBlocks, Verb,
};

/// The device of the machine that shows it.
const DEVICE: &str = "shown";

/// Commands whose pedit leaves a checksum wrong.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    (0..reading.ops.len()).filter_map(|at| spoiling(reading, at)).collect()
}

fn spoiling(reading: &PolicyModel, at: usize) -> Option<Finding> {
    let (actions, protocol) = match &reading.ops[at] {
        Op::Filter(op) => (&op.actions, op.protocol),
        Op::Actions(ActionsOp::Set(_, actions)) => (actions, FilterOp::ALL),
        _ => return None,
    };
    let pedit = actions.iter().find_map(|action| match &action.act {
        Act::Pedit(pedit) if !pedit.keys.is_empty() => Some(pedit),
        _ => None,
    })?;
    let spoiled = spoiled(pedit, actions, protocol == ethertype::IPV6)?;
    let step = reading.step_of(at)?;
    let behind =
        actions.iter().skip_while(|one| !matches!(&one.act, Act::Pedit(one) if !one.keys.is_empty()));
    let csum = behind.clone().find_map(|one| match &one.act {
        Act::Csum(csum) => Some(csum),
        _ => None,
    });
    let follows = match csum {
        Some(_) if pedit.control != Control::Pipe => "csum behind it is not reached: pedit has no pipe",
        Some(_) => "the csum behind it leaves that out",
        None => "no csum follows",
    };
    let what = format!("pedit rewrites bytes that the checksum of {} covers, and {follows}", spoiled.names);
    let because = "the receiver drops such a packet, and connection tracking calls it invalid".to_owned();
    let witness = format!("the engine sends it with a wrong checksum of {}", spoiled.names);
    let mut finding = finding(Rule::Checksums, Level::Warning, step.place.clone(), what, because, witness);
    // Without a control pedit passes packets on, and no action behind it is carried out.
    let pipe = if pedit.control == Control::Pipe { "" } else { "pipe " };
    let (sums, instead) = match csum {
        Some(csum) => (csum.sums | spoiled.sums, ", in the place of the one that is there"),
        None => (spoiled.sums, ""),
    };
    // Without one csum lets packets pass there, and what follows is not carried out.
    let goes_on = if csum.is_none() && behind.count() > 1 { " pipe" } else { "" };
    let what = format!("write behind it: {pipe}action csum {}{goes_on}{instead}", in_words(sums));
    finding.fix = Some(Fix { what, edits: Vec::new() });
    Some(finding)
}

/// Checksums in csum's words.
fn in_words(sums: u32) -> String {
    let words = Csum::NAMES.iter().filter(|(bit, _)| sums & bit != 0).map(|(_, word)| *word);
    words.collect::<Vec<_>>().join(" and ")
}

/// Checksums that are wrong, for people, and as bits of [`Csum::NAMES`].
struct Spoiled {
    names: String,
    sums: u32,
}

/// Which checksums are wrong behind the actions, for the packets they are meant for; `None`: none, or it is
/// not known here.
fn spoiled(pedit: &Pedit, actions: &[Action], v6: bool) -> Option<Spoiled> {
    let has = |header: PeditHeader| pedit.keys.iter().any(|key| key.header == header);
    let v6 = v6 || has(PeditHeader::Ipv6);
    let (tcp, udp) = ((proto::TCP, "TCP", Csum::TCP), (proto::UDP, "UDP", Csum::UDP));
    let meant: &[(u8, &str, u32)] = match (has(PeditHeader::Tcp), has(PeditHeader::Udp)) {
        (true, false) => &[tcp],
        (false, true) => &[udp],
        _ => &[tcp, udp],
    };
    let sent: Option<Vec<Head>> =
        meant.iter().map(|(protocol, ..)| send(packet(v6, *protocol), actions)).collect();
    let sent = sent?;
    let mut wrong = Vec::new();
    if sent.iter().all(|head| !head.has_right_header()) {
        wrong.push(("IPv4's header", Csum::HEADER));
    }
    // Words that are wrong for one of them only were meant for the other.
    if sent.iter().all(|head| !head.has_right_transport()) {
        wrong.extend(meant.iter().map(|(_, name, sum)| (*name, *sum)));
    }
    (!wrong.is_empty()).then(|| Spoiled {
        names: wrong.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" and "),
        sums: wrong.iter().fold(0, |sums, (_, sum)| sums | sum),
    })
}

/// A packet as it leaves a machine that does this to it; `None`: it does not leave, or not by these actions
/// alone.
fn send(head: Head, actions: &[Action]) -> Option<Head> {
    let rewrites = |act: &Act| matches!(act, Act::Nat(_) | Act::Pedit(_) | Act::Csum(_) | Act::Skbmod(_));
    let ends = |control: Control| matches!(control, Control::Pipe | Control::Pass);
    let ours = actions.iter().filter(|action| rewrites(&action.act));
    let actions: Vec<Action> = ours.map(|action| Action::from(action.act.clone())).collect();
    if !actions.iter().flat_map(|action| action.act.controls()).all(ends) {
        return None;
    }
    let mut gateway = Gateway::new();
    let device = gateway.add_device(DEVICE, DeviceSpec::default());
    let (mut pool, mut draws, now) = (Pool::new(4), Seeded::new(1), Time(1));
    for op in [clsact(), everything(actions)] {
        gateway.apply(GatewayContext { now, pool: &mut pool, random: &mut draws }, &op).ok()?;
    }
    let pkt = pool.insert(Meta::of(&head, 100), head)?;
    let offer = gateway.offer(
        GatewayContext { now, pool: &mut pool, random: &mut draws },
        device,
        EgressPath::Direct,
        pkt,
    );
    if matches!(offer, XmitStatus::Refused | XmitStatus::Stopped) {
        return None;
    }
    let pkt = gateway.poll(GatewayContext { now, pool: &mut pool, random: &mut draws }, device)?;
    let head = pool.settle(&pkt).clone();
    pool.release(pkt);
    Some(head)
}

fn clsact() -> Op {
    Op::Qdisc(QdiscOp {
        verb: Verb::Add,
        dev: DEVICE.to_owned(),
        parent: Handle::INGRESS,
        handle: Handle::NONE,
        kind: Some("clsact".to_owned()),
        params: Some(QdiscParams::Ingress),
        stab: None,
        estimator: None,
        blocks: SharedBlocks::default(),
    })
}

fn everything(actions: Vec<Action>) -> Op {
    Op::Filter(FilterOp {
        verb: Verb::Add,
        dev: DEVICE.to_owned(),
        block: 0,
        parent: CLSACT_EGRESS,
        pref: 1,
        protocol: FilterOp::ALL,
        chain: 0,
        handle: 0,
        kind: Some("matchall".to_owned()),
        params: Some(FilterParams::Matchall(MatchallParams::default())),
        actions,
    })
}

/// The front of a packet of 86 bytes behind the link header, between addresses kept for documents.
fn packet(v6: bool, protocol: u8) -> Head {
    let mut bytes = vec![0; 86];
    let begin = if v6 { 40 } else { 20 };
    if v6 {
        (bytes[0], bytes[5], bytes[6], bytes[7]) = (0x60, 46, protocol, 64);
        bytes[8..12].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        bytes[24..28].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    } else {
        (bytes[0], bytes[3], bytes[8], bytes[9]) = (0x45, 86, 64, protocol);
        bytes[12..20].copy_from_slice(&[192, 0, 2, 7, 198, 51, 100, 9]);
    }
    bytes[begin..begin + 4].copy_from_slice(&[0x9c, 0x40, 0x9c, 0x41]);
    match protocol {
        proto::TCP => (bytes[begin + 12], bytes[begin + 13]) = (0x50, 0x10),
        _ => bytes[begin + 5] = 86 - begin as u8,
    }
    Head::from_network(if v6 { ethertype::IPV6 } else { ethertype::IPV4 }, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_syntax::{Env, tc};

    /// What is wrong behind the actions of a filter, as csum calls it.
    fn wrong(protocol: &str, actions: &str) -> String {
        let command = format!("filter add dev eth0 parent 1: protocol {protocol} matchall {actions}");
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let parsed = tc::parse(&words, &Env::default()).expect(&command);
        let tc::TcCommand::Apply(Op::Filter(op)) = parsed.command else { panic!("{command}") };
        let pedit = op.actions.iter().find_map(|action| match &action.act {
            Act::Pedit(pedit) => Some(pedit),
            _ => None,
        });
        let found = spoiled(pedit.expect(actions), &op.actions, op.protocol == ethertype::IPV6);
        found.map_or_else(String::new, |spoiled| in_words(spoiled.sums))
    }

    #[test]
    fn checksums_that_pedit_leaves_wrong() {
        let table = [
            ("ip", "action pedit ex munge ip ttl set 7", "iph"),
            ("ip", "action pedit ex munge ip ttl set 7 pipe action csum ip4h", ""),
            // Without `pipe` csum is never reached.
            ("ip", "action pedit ex munge ip ttl set 7 action csum ip4h", "iph"),
            ("ip", "action pedit ex munge ip src set 10.0.0.1 pipe action csum ip4h", "tcp and udp"),
            ("ip", "action pedit ex munge tcp dport set 80", "tcp"),
            ("ip", "action pedit ex munge tcp dport set 80 pipe action csum tcp", ""),
            ("ip", "action pedit munge ip dport set 80 pipe action csum tcp and udp", ""),
            ("ip", "action pedit ex munge eth dst set 02:00:00:00:00:01", ""),
            ("ipv6", "action pedit ex munge ip6 hoplimit decrement", ""),
            ("ipv6", "action pedit ex munge ip6 dst set 2001:db8::1", "tcp and udp"),
            // What comes after `continue` may be another filter's.
            ("ip", "action pedit ex munge ip ttl set 7 continue", ""),
        ];
        for (protocol, actions, wanted) in table {
            assert_eq!(wrong(protocol, actions), wanted, "{actions}");
        }
    }
}
