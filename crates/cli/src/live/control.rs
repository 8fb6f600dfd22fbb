//! What keeps the network alive, asked of the policy before it is applied: where ARP, neighbour discovery, DHCP and the user's own SSH session go.

use crate::session::{self, Ssh};
use tidegate_insight::{Explainer, Packet, Reading, Story};
use tidegate_packet::Rate;
use tidegate_policy::ClassParams;

/// A class that is sure of less than this may starve what is in it.
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

/// What would be lost or starve, in sentences.
pub(crate) fn dangers(reading: &Reading) -> Vec<String> {
    let mut explainer = Explainer::new(reading);
    let mut all = Vec::new();
    let ssh = session();
    let needed = NEEDED.iter().map(|(words, what)| ((*words).to_owned(), (*what).to_owned())).chain(ssh);
    for (words, what) in needed {
        for dev in devices(reading) {
            let Ok(packet) = Packet::parse(&format!("{words} in lo out {dev}")) else { continue };
            let Ok(course) = explainer.course(&packet) else { continue };
            let story = explainer.explain(&packet, course);
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

/// The devices that the policy names, as the reading knows them.
fn devices(reading: &Reading) -> Vec<String> {
    crate::rebind::real_devices(&reading.ops)
}

/// The packets that this machine sends to whoever sits at the other end of the user's session.
fn session() -> Option<(String, String)> {
    let Ssh { here, there } = session::ssh()?;
    Some((format!("tcp {here} > {there} ack"), format!("your SSH session to {}", there.ip())))
}

fn danger(reading: &Reading, story: &Story) -> Option<String> {
    if let Some(lost) = &story.end.lost {
        return Some(format!("it is lost ({lost})"));
    }
    let class = story.end.classes.last()?;
    let dump = reading.classes.iter().find(|dump| dump.classid == *class && dump.dev == story.end.device)?;
    match &dump.params {
        ClassParams::Htb(params) if params.rate.rate < STARVING => {
            Some(format!("its class {class} is sure of {} bit/s only", params.rate.rate.as_bits()))
        }
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
