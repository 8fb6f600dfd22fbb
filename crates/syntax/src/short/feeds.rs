//! What filters lead to an ifb: what arrives at a device, or what leaves by it.

use super::found::Tree;
use super::leads::takes_everything;
use super::left::filter_text;
use super::machine::Back;
use std::collections::BTreeSet;
use tidegate_packet::header::ethertype;
use tidegate_policy::FilterOp;
use tidegate_policy::dump::{FilterDump, FilterEntry};

/// The devices whose packets are redirected to an ifb.
#[derive(Default)]
pub(super) struct Feeds {
    /// By filters that see what arrives.
    pub(super) arriving: Vec<String>,
    /// By filters that see what leaves.
    pub(super) leaving: Vec<String>,
}

/// Does an action of a filter redirect to a device?
fn redirects(filter: &FilterDump, dev: &str) -> bool {
    match &filter.entry {
        FilterEntry::Filter { actions, .. } => {
            actions.iter().any(|dump| dump.action.act.redirects_to() == Some(dev))
        }
        _ => false,
    }
}

impl Back<'_> {
    pub(super) fn feeds(&self, dev: &str) -> Feeds {
        let mut feeds = Feeds::default();
        for filter in self.filters.iter().filter(|filter| redirects(filter, dev)) {
            let known = if filter.parent.sees_arriving() { &mut feeds.arriving } else { &mut feeds.leaving };
            if !known.contains(&filter.dev) {
                known.push(filter.dev.clone());
            }
        }
        feeds
    }

    /// The device whose packets a device shapes as a short policy has it: for an ifb that gets what leaves by
    /// another, that other.
    pub(super) fn on(&self, dev: &str) -> String {
        let leaving = if dev.starts_with("ifb") { self.feeds(dev).leaving } else { Vec::new() };
        leaving.into_iter().next().unwrap_or_else(|| dev.to_owned())
    }

    /// Reports packets redirected to an ifb that a short policy cannot combine; are there any?
    pub(super) fn is_mixed(&mut self, dev: &str) -> bool {
        let feeds = if dev.starts_with("ifb") { self.feeds(dev) } else { Feeds::default() };
        let list = |devices: &[String]| match devices.split_last() {
            Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
            _ => devices.concat(),
        };
        let (arriving, leaving) = (list(&feeds.arriving), list(&feeds.leaving));
        let (led, why) = match (feeds.arriving.len(), feeds.leaving.as_slice()) {
            (_, []) => return self.is_from_lan(dev),
            (1.., _) => (
                format!("both what arrives at {arriving} and what leaves by {leaving} is led"),
                "a short policy shapes the two directions separately",
            ),
            (0, [one]) if !one.starts_with("ifb") => return false,
            (0, _) => (
                format!("what leaves by {leaving} is led"),
                "a short policy shapes what leaves by one device towards the provider, or by one towards \
                the LAN",
            ),
        };
        self.accounts.device(dev);
        self.miss(format!("the tree on {dev}, to which {led}"), format!("it is left out: {why}"));
        true
    }

    /// Reports that packets arriving from the LAN are redirected to an ifb; is it so?
    fn is_from_lan(&mut self, ifb: &str) -> bool {
        let Some(lan) = self.lan_led_to(ifb).filter(|_| ifb.starts_with("ifb")) else { return false };
        self.accounts.device(ifb);
        self.miss(
            format!("the tree on {ifb}, to which what arrives at {lan} from the LAN is led"),
            "it is left out: a short policy shapes uploads where they leave, on the device towards the \
            provider",
        );
        true
    }

    /// The filters that lead to the ifb of a tree what leaves by a device.
    pub(super) fn leading_out(&mut self, tree: &Tree) {
        if tree.on == tree.dev {
            return;
        }
        let (mut protocols, mut partial) = (BTreeSet::new(), Vec::new());
        for (at, filter) in self.filters.iter().enumerate().filter(|(_, filter)| redirects(filter, &tree.dev))
        {
            let FilterEntry::Filter { params, .. } = &filter.entry else { continue };
            self.accounts.filter(at);
            if takes_everything(params) {
                protocols.insert(filter.protocol);
            } else {
                partial.push(filter_text(filter));
            }
        }
        for name in partial {
            self.miss(
                format!("{name}, which redirects only what it matches"),
                format!("a short policy shapes all that leaves by {}", tree.on),
            );
        }
        let [v4, v6] = [ethertype::IPV4, ethertype::IPV6].map(|protocol| protocols.contains(&protocol));
        if protocols.contains(&FilterOp::ALL) || v4 == v6 {
            return;
        }
        let (which, other) = if v4 { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
        self.miss(
            format!(
                "the ifb {}, to which of what leaves by {} all of {which} is led, and not of {other}",
                tree.dev, tree.on
            ),
            format!("a short policy shapes all that leaves by {}", tree.on),
        );
    }

    /// Devices other than the policy's whose arriving packets an ifb shapes.
    pub(super) fn arriving_elsewhere(&mut self, ifb: &str, device: &str) {
        for other in self.feeds(ifb).arriving.into_iter().filter(|other| other != device) {
            self.miss(
                format!("what arrives at {other} and is redirected to {ifb}"),
                format!("a short policy that has {device} as its device shapes what arrives there alone"),
            );
        }
    }
}
