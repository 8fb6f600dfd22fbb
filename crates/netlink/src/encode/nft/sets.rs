//! Sets without a name: what a rule's `{ … }` becomes.

use super::batch::{Batch, NEWSET, NEWSETELEM};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_netlink_wire::numbers::NLM_F_CREATE;

const ANONYMOUS: u32 = 1;
const CONSTANT: u32 = 2;
const INTERVAL: u32 = 4;
/// This element is where an interval has ended.
const END: u32 = 1;
/// The kernel finds the number itself.
const NAME: &str = "__set%d";

/// From one value to another, both included, in the order of the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member(pub Vec<u8>, pub Vec<u8>);

impl Member {
    /// A single value.
    #[must_use]
    pub fn one(bytes: &[u8]) -> Member {
        Member(bytes.to_vec(), bytes.to_vec())
    }

    /// The addresses of a network.
    #[must_use]
    pub fn network(address: &[u8], prefix: u8) -> Member {
        let mask = mask(address.len(), prefix);
        let from: Vec<u8> = address.iter().zip(&mask).map(|(byte, mask)| byte & mask).collect();
        let to = from.iter().zip(&mask).map(|(byte, mask)| byte | !mask).collect();
        Member(from, to)
    }
}

/// So many leading ones.
pub(super) fn mask(bytes: usize, prefix: u8) -> Vec<u8> {
    let ones = |at: usize| usize::from(prefix).saturating_sub(8 * at).min(8);
    (0..bytes).map(|at| !(0xff_u16 >> ones(at)) as u8).collect()
}

/// Members that touch or overlap are one, as the kernel wants them.
fn joined(mut members: Vec<Member>) -> Vec<Member> {
    members.sort();
    let mut all: Vec<Member> = Vec::new();
    for member in members {
        match all.last_mut() {
            Some(last) if member.0 <= last.1 || next(&last.1).as_ref() == Some(&member.0) => {
                last.1 = last.1.clone().max(member.1);
            }
            _ => all.push(member),
        }
    }
    all
}

/// The value behind this one; `None`: it is the last.
fn next(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut next = bytes.to_vec();
    for byte in next.iter_mut().rev() {
        let (sum, over) = byte.overflowing_add(1);
        *byte = sum;
        if !over {
            return Some(next);
        }
    }
    None
}

/// What a key is called by nft: kept in the kernel for listings only.
pub(super) const ADDRESS4: u32 = 7;
pub(super) const ADDRESS6: u32 = 8;
pub(super) const PROTOCOL: u32 = 12;
pub(super) const PORT: u32 = 13;
pub(super) const ICMP: u32 = 14;
pub(super) const MARK: u32 = 19;
pub(super) const DEVICE: u32 = 41;
pub(super) const INTEGER: u32 = 4;

impl Batch {
    /// Makes a set without a name for the rule that follows: its name and number for
    /// [`super::Expressions::lookup`].
    pub(super) fn set(&mut self, key: u32, members: Vec<Member>) -> (&'static str, u32) {
        let bytes = members.first().map_or(0, |member| member.0.len()) as u32;
        let intervals = members.iter().any(|member| member.0 != member.1);
        self.sets += 1;
        let id = self.sets;
        let flags = ANONYMOUS | CONSTANT | if intervals { INTERVAL } else { 0 };
        let mut to = Attributes::default();
        to.text(1, &self.table).text(2, NAME).payload(3, &flags.to_be_bytes()).payload(4, &key.to_be_bytes());
        to.payload(5, &bytes.to_be_bytes()).payload(10, &id.to_be_bytes());
        self.push(NEWSET, NLM_F_CREATE, &to);
        let mut to = Attributes::default();
        to.text(1, &self.table).text(2, NAME).payload(4, &id.to_be_bytes());
        to.marked_nest(3, &if intervals { ranges(&joined(members)) } else { values(&members) });
        self.push(NEWSETELEM, NLM_F_CREATE, &to);
        (NAME, id)
    }
}

fn element(list: &mut Attributes, bytes: &[u8], flags: u32) {
    let (mut key, mut element) = (Attributes::default(), Attributes::default());
    key.payload(1, bytes);
    element.marked_nest(1, &key);
    if flags != 0 {
        element.payload(3, &flags.to_be_bytes());
    }
    list.marked_nest(1, &element);
}

fn values(members: &[Member]) -> Attributes {
    let mut list = Attributes::default();
    members.iter().for_each(|member| element(&mut list, &member.0, 0));
    list
}

/// Where intervals begin, and where they have ended; what lies before the first has ended too.
fn ranges(members: &[Member]) -> Attributes {
    let mut list = Attributes::default();
    if let Some(first) = members.first().filter(|first| first.0.iter().any(|byte| *byte != 0)) {
        element(&mut list, &vec![0; first.0.len()], END);
    }
    for member in members {
        element(&mut list, &member.0, 0);
        if let Some(behind) = next(&member.1) {
            element(&mut list, &behind, END);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_touch_are_one() {
        let port = |from: u16, to: u16| Member(from.to_be_bytes().to_vec(), to.to_be_bytes().to_vec());
        let all = joined(vec![port(443, 443), port(80, 90), port(91, 100), port(85, 95), port(65535, 65535)]);
        assert_eq!(all, [port(80, 100), port(443, 443), port(65535, 65535)]);
        assert_eq!(next(&[0xff, 0xff]), None);
    }

    #[test]
    fn a_network_has_a_first_and_a_last_address() {
        assert_eq!(Member::network(&[10, 1, 2, 3], 22), Member(vec![10, 1, 0, 0], vec![10, 1, 3, 255]));
        assert_eq!(Member::network(&[10, 1, 2, 3], 0), Member(vec![0; 4], vec![255; 4]));
        assert_eq!(mask(4, 32), [255; 4]);
    }
}
