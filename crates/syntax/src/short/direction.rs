//! Which way the packets of a device go: by its name, by the private networks that its classes ask for, by
//! the rules that translate addresses.
//!
//! A packet that leaves towards the provider has a host of the LAN as its source, one that leaves towards the
//! LAN has it as its destination (RFC 1918, RFC 4193, RFC 6598). Where the words of a device's classes
//! contradict each other, its name decides.

use super::class_match::Way;
use super::found::{Misfit, Rules, is_lan};
use super::machine::Back;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use tidegate_packet::Handle;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, NetfilterRule, NetfilterTarget, Translator};
use tidegate_policy::{FilterParams, FlowerField};

/// At which end of a device's packets its classes ask for private networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PrivateEnds {
    source: bool,
    destination: bool,
}

impl PrivateEnds {
    fn add(&mut self, is_source: bool) {
        if is_source { self.source = true } else { self.destination = true }
    }
}

/// Do the classes of a device show, whatever its name, that its packets leave towards the LAN? They ask for
/// private networks as destinations, and no rule translates sources there.
pub fn leads_to_lan(
    dev: &str,
    (qdiscs, classes): (&[QdiscDump], &[ClassDump]),
    filters: &[FilterDump],
    rules: &[Rules],
) -> bool {
    let back = Back::new(qdiscs, classes, filters, rules);
    let on = back.on(dev);
    !back.translates(&on) && back.leads_to_lan(dev, &on)
}

impl Back<'_> {
    /// Which way the packets of a device go, as [`Back::directions`] found it.
    pub(super) fn way(&self, dev: &str) -> Way {
        self.ways.get(dev).copied().unwrap_or(Way::Up)
    }

    /// Finds out which way the packets of each device go.
    pub(super) fn directions(&mut self) {
        let devices: BTreeSet<&String> = self.qdiscs.iter().map(|qdisc| &qdisc.dev).collect();
        self.ways = devices.into_iter().map(|dev| (dev.clone(), self.direction(dev))).collect();
    }

    fn direction(&self, dev: &str) -> Way {
        let on = self.on(dev);
        let other_ifb = self.qdiscs.iter().any(|q| {
            q.parent == Handle::ROOT
                && !q.handle.is_none()
                && q.dev.starts_with("ifb")
                && self.on(&q.dev) == q.dev
        });
        match on.as_str() {
            on if on.starts_with("ifb") => Way::Ifb,
            on if self.translates(on) => Way::Up,
            on if self.leads_to_lan(dev, on) => Way::Lan,
            on if is_lan(on) && !other_ifb => Way::Lan,
            _ => Way::Up,
        }
    }

    /// Do a device's classes show that its packets leave towards the LAN?
    fn leads_to_lan(&self, dev: &str, on: &str) -> bool {
        let ends = self.private_ends(dev, on);
        ends.destination && (!ends.source || self.translating().next().is_some())
    }

    /// Says of a device what shows that it leads to the LAN, where its name does not.
    pub(super) fn taken_for_lan(&mut self, dev: &str) {
        let on = self.on(dev);
        if self.way(dev) == Way::Lan && !is_lan(&on) {
            self.misfits.push(Misfit::new(
                format!("the direction of {on}, which no command says"),
                "it is taken for the device towards the LAN, because its classes match private networks as \
                destinations",
            ));
        }
    }

    /// The LAN's device whose arriving packets are redirected to an ifb: these are uploads.
    pub(super) fn lan_led_to(&self, ifb: &str) -> Option<String> {
        let arriving = self.feeds(ifb).arriving;
        let ends = self.private_ends(ifb, ifb);
        let of_lan = |dev: &String| {
            !self.translates(dev) && (is_lan(dev) || ends == PrivateEnds { source: true, destination: false })
        };
        arriving.iter().all(of_lan).then(|| arriving.first().cloned())?
    }

    /// The devices by which packets leave with translated sources.
    fn translating(&self) -> impl Iterator<Item = &str> {
        let hides = |target: &NetfilterTarget| match target {
            NetfilterTarget::Translate(translate) => {
                matches!(translate.how, Translator::Source | Translator::Masquerade)
            }
            _ => false,
        };
        let rules = self.rules.iter().flat_map(|chain| &chain.rules);
        let hiding = rules.filter(move |rule| rule.targets().any(hides));
        hiding.flat_map(|rule| {
            rule.matches.iter().filter_map(|found| match &found.what {
                Condition::Out(device) if !found.not => Some(device.as_str()),
                _ => None,
            })
        })
    }

    fn translates(&self, dev: &str) -> bool {
        self.translating().any(|pattern| is_named(dev, pattern))
    }

    /// At which end the filters of a device, and the rules that lead to its classes, ask for private
    /// networks.
    fn private_ends(&self, dev: &str, on: &str) -> PrivateEnds {
        let mut ends = PrivateEnds::default();
        let (mut marks, mut masked) = (BTreeSet::new(), Vec::new());
        for filter in self.filters.iter().filter(|f| f.dev == dev && !f.parent.sees_arriving()) {
            let FilterEntry::Filter { handle, params, .. } = &filter.entry else { continue };
            match params {
                FilterParams::Fw(fw) => match fw.mask.filter(|mask| *mask != u32::MAX) {
                    Some(mask) => masked.push((*handle, mask)),
                    None => {
                        marks.insert(*handle);
                    }
                },
                _ => of_filter(filter, params, &mut ends),
            }
        }
        let own = self.classes.iter().filter(|class| class.dev == dev);
        let classes: BTreeSet<Handle> = own.map(|class| class.classid).collect();
        let leads = |target: &NetfilterTarget| match target {
            NetfilterTarget::Classify(class) => classes.contains(class),
            NetfilterTarget::Mark { value, mask }
            | NetfilterTarget::Connmark(ConnmarkTarget::Set { value, mask }) => {
                let fits = |(mark, own): &(u32, u32)| mask & own != 0 && (value ^ mark) & mask & own == 0;
                marks.contains(value) || masked.iter().any(fits)
            }
            _ => false,
        };
        for rule in self.rules.iter().flat_map(|chain| &chain.rules) {
            let mut of_rule = PrivateEnds::default();
            note_private_ends(rule, &mut of_rule);
            if of_rule != PrivateEnds::default() && !leaves_elsewhere(rule, on) && rule.targets().any(leads) {
                ends.source |= of_rule.source;
                ends.destination |= of_rule.destination;
            }
        }
        ends
    }
}

fn of_filter(filter: &FilterDump, params: &FilterParams, ends: &mut PrivateEnds) {
    match (params, filter.protocol) {
        (FilterParams::U32(u32), ethertype::IPV4) => {
            for key in u32.keys.iter().filter(|key| matches!(key.offset, 12 | 16) && key.offset_mask == 0) {
                if is_private_v4(key.value, key.mask) {
                    ends.add(key.offset == 12);
                }
            }
        }
        (FilterParams::U32(u32), ethertype::IPV6) => {
            for key in u32.keys.iter().filter(|key| matches!(key.offset, 8 | 24) && key.offset_mask == 0) {
                if key.mask >> 25 == 0x7f && key.value >> 25 == UNIQUE_LOCAL {
                    ends.add(key.offset == 8);
                }
            }
        }
        (FilterParams::Flower(flower), ethertype::IPV4) => {
            for key in &flower.keys {
                let source = key.field == FlowerField::SrcIp;
                let address = source || key.field == FlowerField::DstIp;
                if address && is_private_v4(key.value as u32, key.mask as u32) {
                    ends.add(source);
                }
            }
        }
        _ => {}
    }
}

fn note_private_ends(rule: &NetfilterRule, ends: &mut PrivateEnds) {
    for found in rule.matches.iter().filter(|found| !found.not) {
        let (bytes, bits, source) = match &found.what {
            Condition::Source(bytes, bits) => (bytes, *bits, true),
            Condition::Destination(bytes, bits) => (bytes, *bits, false),
            _ => continue,
        };
        let v4 = bytes[..12].iter().all(|byte| *byte == 0) && bits <= 32;
        let is_private = match v4 {
            true => {
                let address = u32::from(Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]));
                is_private_v4(address, u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0))
            }
            false => bits >= 7 && Ipv6Addr::from(*bytes).to_bits() >> 121 == u128::from(UNIQUE_LOCAL),
        };
        if is_private {
            ends.add(source);
        }
    }
}

/// The first seven bits of unique local addresses (RFC 4193).
const UNIQUE_LOCAL: u32 = 0x7e;

/// Is all of a network private (RFC 1918), or of the addresses that providers give to their customers
/// (RFC 6598)?
fn is_private_v4(value: u32, mask: u32) -> bool {
    let within = |network: u32, bits: u32| mask & bits == bits && value & bits == network;
    within(0x0a00_0000, 0xff00_0000)
        || within(0xac10_0000, 0xfff0_0000)
        || within(0xc0a8_0000, 0xffff_0000)
        || within(0x6440_0000, 0xffc0_0000)
}

/// Whether a pattern, in which a final `+` matches any ending, names a device.
fn is_named(device: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('+') {
        Some(prefix) => device.starts_with(prefix),
        None => device == pattern,
    }
}

/// Does a rule ask for packets that leave by another device, or that came in by this one?
pub(super) fn leaves_elsewhere(rule: &NetfilterRule, device: &str) -> bool {
    rule.matches.iter().any(|found| match &found.what {
        Condition::Out(pattern) => is_named(device, pattern) == found.not,
        Condition::In(pattern) => is_named(device, pattern) && !found.not,
        _ => false,
    })
}
