//! The expressions of a condition.

use super::super::batch::Batch;
use super::super::expression::NftHeader;
use super::super::expression::{Expressions, NftCmp, NftCt, NftMeta, Payload};
use super::super::sets::{self, Member};
use super::unknown::{Unknown, unknown};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_policy::netfilter::{
    Condition, Connbytes, Connstate, Connstates, CountDirection, CountMode, Match,
};

/// netfilter's number for IPv4, and for IPv6.
const VERSIONS: [u8; 2] = [2, 10];
const SOURCE_PORT: Payload = transport(0, 2);
const DESTINATION_PORT: Payload = transport(2, 2);
const TCP_FLAGS: Payload = transport(13, 1);
const BY_VERSION: &str = "say of which version of IP (`ip …` or `ip6 …`)";

const fn network(offset: u32, length: u32) -> Payload {
    Payload { base: NftHeader::Network, offset, length }
}

const fn transport(offset: u32, length: u32) -> Payload {
    Payload { base: NftHeader::Transport, offset, length }
}

const fn how(not: bool) -> NftCmp {
    if not { NftCmp::IsNot } else { NftCmp::Is }
}

/// Of this version of IP only.
pub(super) fn version(steps: &mut Expressions, v6: bool, not: bool) {
    steps.load_meta(NftMeta::Family).compare(how(not), &[VERSIONS[usize::from(v6)]]);
}

/// A condition as steps; sets that they ask are made before.
pub(super) fn put(
    batch: &mut Batch,
    steps: &mut Expressions,
    one: &Match,
    v6: Option<bool>,
) -> Result<(), Unknown> {
    let not = one.not;
    match &one.what {
        Condition::Comment(_) | Condition::Protocol(0) => {}
        Condition::Protocol(number) => {
            steps.load_meta(NftMeta::Transport).compare(how(not), &[*number]);
        }
        Condition::Version6(v6) => version(steps, *v6, not),
        Condition::In(name) => drop(steps.by_device(NftMeta::InName, name, not)),
        Condition::Out(name) => drop(steps.by_device(NftMeta::OutName, name, not)),
        Condition::Mark(value, mask) => drop(steps.marked(*value, *mask, not)),
        Condition::Connmark(value, mask) => {
            steps.load_ct(NftCt::Mark, None).masked(*mask).compare(how(not), &value.to_ne_bytes());
        }
        Condition::Source(address, prefix) => within(steps, address_at(v6, false)?, address, *prefix, not),
        Condition::Destination(address, prefix) => {
            within(steps, address_at(v6, true)?, address, *prefix, not)
        }
        Condition::SourcePort(ports) => range(steps, SOURCE_PORT, *ports, not),
        Condition::DestinationPort(ports) => range(steps, DESTINATION_PORT, *ports, not),
        Condition::SourcePorts(all) => ports(batch, steps, SOURCE_PORT, all, not),
        Condition::DestinationPorts(all) => ports(batch, steps, DESTINATION_PORT, all, not),
        // Neither of them; that one of them is so takes two rules.
        Condition::Ports(all) => {
            ports(batch, steps, SOURCE_PORT, all, true);
            ports(batch, steps, DESTINATION_PORT, all, true);
        }
        Condition::TcpFlags(mask, flags) => {
            steps.load(TCP_FLAGS).bits(&[*mask], &[0]).compare(how(not), &[*flags]);
        }
        Condition::Length(from, to) => length(steps, *from, *to, not),
        Condition::Dscp(value) => field(steps, v6, value << 2, 0xfc, not)?,
        Condition::Tos(value, mask) => field(steps, v6, *value, *mask, not)?,
        Condition::Connstate(states) | Condition::State(states) => state(steps, *states, not),
        Condition::Connbytes(what) => carried(steps, what, not),
        Condition::IcmpType(kind, codes) => icmp(steps, *kind, *codes, not)?,
        Condition::Any(all) => any(batch, steps, all, v6, not)?,
    }
    Ok(())
}

/// Where an address is in the header.
fn address_at(v6: Option<bool>, destination: bool) -> Result<Payload, Unknown> {
    match (v6, destination) {
        (Some(false), false) => Ok(network(12, 4)),
        (Some(false), true) => Ok(network(16, 4)),
        (Some(true), false) => Ok(network(8, 16)),
        (Some(true), true) => Ok(network(24, 16)),
        (None, _) => Err(unknown("an address of either version", BY_VERSION)),
    }
}

/// An address as it is there: IPv4's is the end of what the model keeps.
fn address_bytes(address: &[u8; 16], at: Payload) -> &[u8] {
    &address[16 - at.length as usize..]
}

fn within(steps: &mut Expressions, at: Payload, address: &[u8; 16], prefix: u8, not: bool) {
    let member = Member::network(address_bytes(address, at), prefix);
    steps.load(at);
    if u32::from(prefix) < at.length * 8 {
        steps.bits(&sets::mask(at.length as usize, prefix), &vec![0; at.length as usize]);
    }
    steps.compare(how(not), &member.0);
}

fn range(steps: &mut Expressions, at: Payload, (from, to): (u16, u16), not: bool) {
    steps.load(at);
    if from == to {
        steps.compare(how(not), &from.to_be_bytes());
    } else {
        steps.range(!not, &from.to_be_bytes(), &to.to_be_bytes());
    }
}

fn ports(batch: &mut Batch, steps: &mut Expressions, at: Payload, all: &[(u16, u16)], not: bool) {
    if let [only] = all {
        return range(steps, at, *only, not);
    }
    let members = all.iter().map(|(from, to)| Member(from.to_be_bytes().to_vec(), to.to_be_bytes().to_vec()));
    let (set, id) = batch.set(sets::PORT, members.collect());
    steps.load(at).lookup(set, id, !not);
}

fn length(steps: &mut Expressions, from: u16, to: u16, not: bool) {
    let bytes = |number: u16| u32::from(number).to_be_bytes();
    steps.load_meta(NftMeta::Length).in_network_order(4).range(!not, &bytes(from), &bytes(to));
}

/// The DS field, which in IPv6 spans two bytes.
fn field(steps: &mut Expressions, v6: Option<bool>, value: u8, mask: u8, not: bool) -> Result<(), Unknown> {
    match v6 {
        Some(false) => {
            steps.load(network(1, 1));
            if mask != u8::MAX {
                steps.bits(&[mask], &[0]);
            }
            steps.compare(how(not), &[value]);
        }
        Some(true) => {
            let across = |byte: u8| (u16::from(byte) << 4).to_be_bytes();
            steps.load(network(0, 2)).bits(&across(mask), &[0; 2]).compare(how(not), &across(value));
        }
        None => return Err(unknown("the DS field of either version", BY_VERSION)),
    }
    Ok(())
}

fn state(steps: &mut Expressions, states: Connstates, not: bool) {
    const BITS: [(Connstate, u32); 5] = [
        (Connstate::Invalid, 1),
        (Connstate::Established, 2),
        (Connstate::Related, 4),
        (Connstate::New, 8),
        (Connstate::Untracked, 64),
    ];
    let bits = BITS.iter().filter(|(state, _)| states.has(*state)).fold(0, |bits: u32, (_, bit)| bits | bit);
    // Any of these bits, or none of them.
    let how = if not { NftCmp::Is } else { NftCmp::IsNot };
    steps.load_ct(NftCt::State, None).bits(&bits.to_ne_bytes(), &[0; 4]).compare(how, &[0; 4]);
}

fn carried(steps: &mut Expressions, what: &Connbytes, not: bool) {
    let key = match what.mode {
        CountMode::Packets => NftCt::Packets,
        CountMode::Bytes => NftCt::Bytes,
        CountMode::Average => NftCt::Average,
    };
    let reply = match what.direction {
        CountDirection::Original => Some(false),
        CountDirection::Reply => Some(true),
        CountDirection::Both => None,
    };
    steps.load_ct(key, reply).in_network_order(8);
    match (what.to, not) {
        (u64::MAX, false) => steps.compare(NftCmp::AtLeast, &what.from.to_be_bytes()),
        _ => steps.range(!not, &what.from.to_be_bytes(), &what.to.to_be_bytes()),
    };
}

fn icmp(steps: &mut Expressions, kind: u8, codes: (u8, u8), not: bool) -> Result<(), Unknown> {
    const ANY: u8 = 255;
    match (kind, codes) {
        (ANY, _) => {}
        (kind, (0, ANY)) => drop(steps.load(transport(0, 1)).compare(how(not), &[kind])),
        (kind, (low, high)) if low == high => {
            steps.load(transport(0, 2)).compare(how(not), &[kind, low]);
        }
        (kind, (low, high)) if !not => {
            steps.load(transport(0, 2)).range(true, &[kind, low], &[kind, high]);
        }
        _ => return Err(unknown("what is none of several ICMP codes", "write one rule for each code")),
    }
    Ok(())
}

/// One of several conditions of one kind: a set.
fn any(
    batch: &mut Batch,
    steps: &mut Expressions,
    all: &[Condition],
    v6: Option<bool>,
    not: bool,
) -> Result<(), Unknown> {
    let Some(first) = all.first() else { return Ok(()) };
    // States are bits of one number already.
    if let Some(states) = states(all) {
        state(steps, states, not);
        return Ok(());
    }
    let key = load(steps, first, v6)?;
    let members = all.iter().map(|one| member(one, v6)).collect::<Option<Vec<Member>>>();
    let Some(members) = members else { return Err(mixed()) };
    let (set, id) = batch.set(key, members);
    steps.lookup(set, id, !not);
    Ok(())
}

fn mixed() -> Unknown {
    unknown("a set of conditions that are not of one kind", "write one rule for each of them")
}

fn states(all: &[Condition]) -> Option<Connstates> {
    all.iter().try_fold(Connstates(0), |states, one| match one {
        Condition::Connstate(more) | Condition::State(more) => Some(Connstates(states.0 | more.0)),
        _ => None,
    })
}

/// Loads what the set is about; its key's name in nft.
fn load(steps: &mut Expressions, first: &Condition, v6: Option<bool>) -> Result<u32, Unknown> {
    Ok(match first {
        Condition::Source(..) | Condition::Destination(..) => {
            steps.load(address_at(v6, matches!(first, Condition::Destination(..)))?);
            if v6 == Some(true) { sets::ADDRESS6 } else { sets::ADDRESS4 }
        }
        Condition::SourcePort(_) | Condition::SourcePorts(_) => {
            steps.load(SOURCE_PORT);
            sets::PORT
        }
        Condition::DestinationPort(_) | Condition::DestinationPorts(_) => {
            steps.load(DESTINATION_PORT);
            sets::PORT
        }
        Condition::Protocol(_) => {
            steps.load_meta(NftMeta::Transport);
            sets::PROTOCOL
        }
        Condition::Mark(_, u32::MAX) => {
            steps.load_meta(NftMeta::Mark);
            sets::MARK
        }
        Condition::Connmark(_, u32::MAX) => {
            steps.load_ct(NftCt::Mark, None);
            sets::MARK
        }
        Condition::In(_) | Condition::Out(_) => {
            steps.load_meta(if matches!(first, Condition::In(_)) {
                NftMeta::InName
            } else {
                NftMeta::OutName
            });
            sets::DEVICE
        }
        Condition::IcmpType(_, (0, 255)) => {
            steps.load(transport(0, 1));
            sets::ICMP
        }
        Condition::Length(..) => {
            steps.load_meta(NftMeta::Length).in_network_order(4);
            sets::INTEGER
        }
        Condition::Dscp(_) if v6 == Some(false) => {
            steps.load(network(1, 1)).bits(&[0xfc], &[0]);
            sets::INTEGER
        }
        Condition::Dscp(_) if v6 == Some(true) => {
            steps.load(network(0, 2)).bits(&[0x0f, 0xc0], &[0; 2]);
            sets::INTEGER
        }
        other => return Err(unknown(format!("a set of {}", name(other)), "write one rule for each member")),
    })
}

fn member(one: &Condition, v6: Option<bool>) -> Option<Member> {
    let wide = |number: u16| u32::from(number).to_be_bytes().to_vec();
    Some(match one {
        Condition::Source(address, prefix) | Condition::Destination(address, prefix) => {
            let from = if v6 == Some(true) { 0 } else { 12 };
            Member::network(&address[from..], *prefix)
        }
        Condition::SourcePort((from, to)) | Condition::DestinationPort((from, to)) => {
            Member(from.to_be_bytes().to_vec(), to.to_be_bytes().to_vec())
        }
        Condition::Protocol(number) | Condition::IcmpType(number, (0, 255)) => Member::one(&[*number]),
        Condition::Mark(value, u32::MAX) | Condition::Connmark(value, u32::MAX) => {
            Member::one(&value.to_ne_bytes())
        }
        Condition::In(name) | Condition::Out(name) if !name.ends_with('+') => {
            Member::one(&super::super::expression::device(name))
        }
        Condition::Length(from, to) => Member(wide(*from), wide(*to)),
        Condition::Dscp(value) if v6 == Some(false) => Member::one(&[value << 2]),
        Condition::Dscp(value) => Member::one(&(u16::from(*value) << 6).to_be_bytes()),
        _ => return None,
    })
}

/// What a condition is about, for people.
const fn name(one: &Condition) -> &'static str {
    match one {
        Condition::Mark(..) | Condition::Connmark(..) => "marks with masks",
        Condition::Tos(..) => "TOS values",
        Condition::TcpFlags(..) => "TCP flags",
        Condition::IcmpType(..) => "ICMP codes",
        Condition::Connbytes(_) => "bytes carried",
        Condition::Any(_) => "sets",
        _ => "such conditions",
    }
}
