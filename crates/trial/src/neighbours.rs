//! What happens to ARP and to IPv6's neighbour discovery. The hosts of a trial know one another's addresses,
//! so its own traffic does not show it: a policy that drops these would be praised for a link that dies. So
//! they are sent through the policy's machine, alone.

use crate::policy::TrialPolicy;
use std::net::{IpAddr, Ipv6Addr};
use tidegate_gateway::{DropReason, EgressPath};
use tidegate_inspect::{Loss, Packet, PacketEntry, PolicyModel, Prober};
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::Kind;

/// What drops by chance drops this many in a row too seldom to matter.
const TRIES: usize = 20;
/// ICMPv6's neighbour solicitation (RFC 4861).
const SOLICITATION: u8 = 135;
/// The sender of a solicitation, and the multicast group it is sent to.
const SOLICITOR: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const SOLICITED: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 2);

/// What a policy drops that neighbours must hear of one another, in sentences.
pub(crate) fn sentences(policy: &TrialPolicy, ipv6: bool) -> Vec<String> {
    let reading = policy.reading();
    let mut prober = Prober::new(&reading);
    let mut lines = Vec::new();
    for device in [&policy.wan, &policy.lan] {
        let Some(id) = prober.device(device) else { continue };
        let kind = prober.gateway().spec(id).kind;
        if kind.has_no_neighbours() {
            continue;
        }
        let solicitations = [
            ("ARP requests", arp(), EgressPath::Direct),
            ("IPv6's neighbour solicitations", solicitation(), EgressPath::Local),
        ];
        for (what, packet, route) in solicitations.into_iter().take(if ipv6 { 2 } else { 1 }) {
            let ways =
                [("leave by", PacketEntry::Leaves(id, route)), ("arrive at", PacketEntry::Arrives(id))];
            for (how, course) in ways {
                let Some(loss) = always_dropped(&mut prober, &packet, course) else { continue };
                lines.push(format!(
                    "{what} that {how} {device} are dropped {}: on a real link no host behind {device} \
                    stays reachable. What follows is of hosts that know one another's addresses.",
                    dropped_by(&reading, &mut prober, &loss)
                ));
                break;
            }
        }
    }
    lines
}

fn arp() -> Packet {
    Packet { ethertype: ethertype::ARP, length: 28, ..Packet::default() }
}

fn solicitation() -> Packet {
    Packet {
        ethertype: ethertype::IPV6,
        protocol: proto::ICMPV6,
        source: IpAddr::V6(SOLICITOR),
        destination: IpAddr::V6(SOLICITED),
        icmp: (SOLICITATION, 0),
        length: 72,
        ..Packet::default()
    }
}

/// Where each of several such packets is dropped, if it is.
fn always_dropped(prober: &mut Prober, packet: &Packet, course: PacketEntry) -> Option<Loss> {
    let mut last = None;
    for _ in 0..TRIES {
        last = Some(prober.travel(packet, course).dropped?);
    }
    last
}

/// `by drr 1: on eth0, which has no class for them`.
fn dropped_by(reading: &PolicyModel, prober: &mut Prober, loss: &Loss) -> String {
    let device = prober.gateway().name(loss.device).to_owned();
    let here = |q: &&tidegate_policy::dump::QdiscDump| q.dev == device && q.handle == loss.at;
    let kind = reading.qdiscs.iter().find(here).map(|q| q.kind);
    match (loss.why, kind) {
        (DropReason::Policy, None) => format!("by a filter on {device}"),
        (DropReason::Policy, Some(kind)) if kind.is_hook() => {
            format!("by a filter of the {} on {device}", kind.name())
        }
        (DropReason::Policy, Some(kind)) => format!("by a filter at {} {} on {device}", kind.name(), loss.at),
        (DropReason::Unclassified, Some(kind)) => {
            let default = if kind == Kind::Hfsc { ", having no default" } else { "" };
            format!("by {} {} on {device}, which has no class for them{default}", kind.name(), loss.at)
        }
        (DropReason::Netfilter | DropReason::NetfilterLeaving, _) => "by netfilter".to_owned(),
        (_, Some(kind)) => format!("by {} {} on {device}", kind.name(), loss.at),
        (_, None) => format!("on {device}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::tests::policy;

    #[test]
    fn who_drops_arp_is_named_and_where() {
        let lines_of = |script: &str| sentences(&policy(script), false);
        let drr =
            "tc qdisc add dev eth0 root handle 1: drr\ntc class add dev eth0 parent 1: classid 1:1 drr\n";
        let rest = ": on a real link no host behind eth0 stays reachable. What follows is of hosts that \
        know one another's addresses.";
        let by = |who: &str| vec![format!("ARP requests that leave by eth0 are dropped by {who}{rest}")];
        assert_eq!(lines_of(drr), by("drr 1: on eth0, which has no class for them"));
        let hfsc = "tc qdisc add dev eth0 root handle 1: hfsc\ntc class add dev eth0 parent 1: classid 1:1 \
        hfsc sc rate 1mbit\n";
        assert_eq!(lines_of(hfsc), by("hfsc 1: on eth0, which has no class for them, having no default"));
        let filter = "tc qdisc add dev eth0 root handle 1: prio\n\
                      tc filter add dev eth0 parent 1: protocol all prio 1 u32 match u32 0 0 action drop\n";
        assert_eq!(lines_of(filter), by("a filter at prio 1: on eth0"));
        let arriving = "tc qdisc add dev eth0 root pfifo\ntc qdisc add dev eth0 handle ffff: ingress\n\
                        tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action drop\n";
        let arrive = lines_of(arriving);
        assert!(
            arrive[0].starts_with("ARP requests that arrive at eth0 are dropped by a filter"),
            "{arrive:?}"
        );
        for fine in [
            "tc qdisc add dev eth0 root handle 1: htb\n",
            "tc qdisc add dev eth0 root pfifo\ntc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol ip prio 1 matchall action drop\n",
            "tc qdisc add dev eth0 root netem loss 50%\n",
            "tc qdisc add dev eth0 root plug\n",
        ] {
            assert_eq!(lines_of(fine), Vec::<String>::new(), "{fine}");
        }
        let taken = "tc filter add dev eth0 parent 1: protocol ip prio 1 matchall flowid 1:1\n\
                     tc filter add dev eth0 parent 1: protocol arp prio 2 matchall flowid 1:1\n";
        assert_eq!(lines_of(&format!("{drr}{taken}")), Vec::<String>::new());
        let six = sentences(&policy(&format!("{drr}{taken}")), true);
        assert!(
            six[0].starts_with("IPv6's neighbour solicitations that leave by eth0 are dropped by drr 1:"),
            "{six:?}"
        );
    }
}
