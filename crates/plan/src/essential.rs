//! What keeps the network alive, checked before a policy is applied: where ARP, neighbour discovery, DHCP and
//! the user's own SSH session go.

use crate::rebind::real_devices;
use std::net::SocketAddr;
use tidegate_inspect::{Explainer, Packet, PolicyModel, Story};
use tidegate_packet::Rate;
use tidegate_policy::ClassParams;

/// A class with a guaranteed rate below this may starve its packets.
const STARVING: Rate = Rate::bits(8000);

/// What must get through, and what it is to people.
const NEEDED: [(&str, &str); 6] = [
    ("arp 192.0.2.1 > 192.0.2.2", "ARP (addresses of neighbours)"),
    ("icmp6 fe80::1 > ff02::1:ff00:2 type 135", "IPv6 neighbour discovery"),
    ("icmp6 fe80::1 > ff02::2 type 133", "IPv6 router discovery"),
    ("icmp6 fe80::1 > ff02::1 type 134", "IPv6 router advertisements"),
    ("udp 0.0.0.0:68 > 255.255.255.255:67", "DHCP (this machine's own address)"),
    ("udp [fe80::1]:546 > [ff02::1:2]:547", "DHCP of IPv6"),
];

/// What keeps the network alive and would be dropped or starve under a policy, a sentence for each packet and
/// device; empty: everything gets through. `session`: the ends of the SSH session to be kept, this machine's
/// first.
///
/// Each packet is sent through the engine on a model machine with the policy; the class it ends in starves it
/// if that guarantees less than 8 kbit/s.
///
/// ```
/// use tidegate_loader::{ReadOptions, read_text};
///
/// let batch = "qdisc add dev eth0 root handle 1: htb\n\
///              class add dev eth0 parent 1: classid 1:1 htb rate 1kbit\n\
///              filter add dev eth0 parent 1: protocol all pref 1 u32 match u32 0 0 flowid 1:1\n";
/// let policy = read_text("starving.batch", batch, &ReadOptions::default()).unwrap();
/// let dangers = tidegate_plan::essential::dangers(&policy.reading(), None);
/// assert!(dangers[0].starts_with("ARP (addresses of neighbours) would not get through eth0: "));
/// assert!(dangers[0].ends_with("the guaranteed rate of its class 1:1 is only 1000 bit/s"));
/// ```
pub fn dangers(reading: &PolicyModel, session: Option<(SocketAddr, SocketAddr)>) -> Vec<String> {
    let mut explainer = Explainer::new(reading);
    let mut all = Vec::new();
    let ssh = session.map(|(here, there)| {
        (format!("tcp {here} > {there} ack"), format!("your SSH session to {}", there.ip()))
    });
    let needed = NEEDED.iter().map(|(words, what)| ((*words).to_owned(), (*what).to_owned())).chain(ssh);
    for (words, what) in needed {
        for dev in real_devices(&reading.ops) {
            let Ok(packet) = Packet::parse(&format!("{words} in lo out {dev}")) else { continue };
            let Ok(trace) = explainer.course(&packet) else { continue };
            let story = explainer.explain(&packet, trace);
            if let Some(danger) = danger(reading, &story) {
                let danger = format!("{what} would not get through {dev}: {danger}");
                if !all.contains(&danger) {
                    all.push(danger);
                }
            }
        }
    }
    all
}

fn danger(reading: &PolicyModel, story: &Story) -> Option<String> {
    if let Some(lost) = &story.end.lost {
        return Some(format!("it is lost ({lost})"));
    }
    let class = story.end.classes.last()?;
    let dump = reading.classes.iter().find(|dump| dump.classid == *class && dump.dev == story.end.device)?;
    match &dump.params {
        ClassParams::Htb(params) if params.rate.rate < STARVING => Some(format!(
            "the guaranteed rate of its class {class} is only {} bit/s",
            params.rate.rate.as_bits()
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_get_through_are_packets() {
        for (words, what) in NEEDED {
            assert!(Packet::parse(&format!("{words} in lo out eth0")).is_ok(), "{what}: {words}");
        }
    }
}
