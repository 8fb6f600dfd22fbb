//! Listings of the actions that rewrite packets.

use super::{name, type_of};
use crate::json::Json;
use crate::tc::show::Entry;
use tidegate_policy::{Csum, Nat, Pedit, PeditHeader, PeditKey, Skbmod, Vlan, VlanHow, VlanTag};

pub(super) fn nat(nat: &Nat, entry: &mut Entry) {
    let direction = if nat.egress { "egress" } else { "ingress" };
    let old = format!("{}/{}", nat.old, told_bits(nat.mask));
    entry.say(&format!(" nat {direction} {old} {} {}", nat.new, name(nat.control)));
    entry.member("direction", Json::text(direction));
    entry.member("old_addr", Json::text(old));
    entry.member("new_addr", Json::text(nat.new.to_string()));
    entry.member("control_action", type_of(nat.control));
}

/// How many bits tc says that a mask has: it looks for the first that is set with the octets the wrong way round.
fn told_bits(mask: u32) -> u32 {
    match mask.swap_bytes().trailing_zeros() {
        32 => 0,
        zeros => 32 - zeros,
    }
}

pub(super) fn csum(csum: &Csum, entry: &mut Entry) {
    let names: Vec<&str> = Csum::NAMES.iter().filter(|(bit, _)| csum.sums & bit != 0).map(|(_, name)| *name).collect();
    let names = names.join(", ");
    entry.say(&format!("csum ({names}) action {}", name(csum.control)));
    entry.member("csum", Json::text(names));
    entry.member("control_action", type_of(csum.control));
}

pub(super) fn pedit(pedit: &Pedit, entry: &mut Entry) {
    entry.say(&format!(" pedit action {} keys {}", name(pedit.control), pedit.keys.len()));
    entry.member("control_action", type_of(pedit.control));
    entry.member("nkeys", Json::number(pedit.keys.len()));
}

/// pedit's words; they stand behind what all actions tell.
pub(super) fn keys(pedit: &Pedit, entry: &mut Entry) {
    let mut list = Vec::new();
    for (number, key) in pedit.keys.iter().enumerate() {
        let PeditKey { header, add, value, mask, offset, .. } = key;
        let place = match header {
            PeditHeader::Network => offset.to_string(),
            named => format!("{}+{offset}", named.name()),
        };
        let verb = if *add { "add" } else { "val" };
        entry.say(&format!("\n\t key #{number}  at {place}: {verb} {value:08x} mask {mask:08x}"));
        list.push(Json::Object(vec![
            ("htype", Json::text(header.name())),
            ("offset", Json::number(offset)),
            ("cmd", Json::text(if *add { "add" } else { "set" })),
            ("val", Json::text(format!("{value:x}"))),
            ("mask", Json::text(format!("{mask:x}"))),
        ]));
    }
    entry.member("keys", Json::List(list));
}

/// In JSON tc mixes text into this one, which no program can read; the members here are ours.
pub(super) fn skbmod(skbmod: &Skbmod, entry: &mut Entry) {
    let mac = |octets: [u8; 6]| octets.map(|octet| format!("{octet:02x}")).join(":");
    entry.say(&format!("skbmod {} ", name(skbmod.control)));
    entry.member("control_action", type_of(skbmod.control));
    if skbmod.ecn {
        entry.say("ecn ");
        entry.member("ecn", Json::Bool(true));
        return;
    }
    if skbmod.swap {
        entry.say("swap mac ");
        entry.member("swap_mac", Json::Bool(true));
        return;
    }
    if let Some(ethertype) = skbmod.ethertype {
        entry.say(&format!("set etype 0x{ethertype:X} \n\t "));
        entry.number("etype", ethertype, "");
    }
    for (key, address) in [("dmac", skbmod.destination), ("smac", skbmod.source)] {
        if let Some(address) = address {
            entry.say(&format!("set {key} {} ", mac(address)));
            entry.member(key, Json::text(mac(address)));
        }
    }
}

pub(super) fn vlan(vlan: &Vlan, entry: &mut Entry) {
    let (verb, tag) = match vlan.how {
        VlanHow::Pop => ("pop", None),
        VlanHow::Push(tag) => ("push", Some(tag)),
        VlanHow::Modify(tag) => ("modify", Some(tag)),
    };
    entry.say(&format!("vlan  {verb}"));
    entry.member("vlan_action", Json::text(verb));
    if let Some(tag) = tag {
        let protocol = if tag.protocol == VlanTag::DOT1AD { "802.1ad" } else { "802.1Q" };
        entry.number("id", tag.id, &format!(" id {}", tag.id));
        entry.say(&format!(" protocol {protocol}"));
        entry.member("protocol", Json::text(protocol));
        if let Some(priority) = tag.priority {
            entry.number("priority", priority, &format!(" priority {priority}"));
        }
    }
    entry.say(&format!(" {}", name(vlan.control)));
    entry.member("control_action", type_of(vlan.control));
}
