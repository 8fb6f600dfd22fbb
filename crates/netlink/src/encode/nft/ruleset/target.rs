//! What is done with a packet.

use super::super::expression::NftHeader;
use super::super::expression::{Expressions, NftCmp, NftCt, NftMeta, NftVerdict, Payload};
use super::unknown::{Unknown, unknown};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_policy::netfilter::{ConnmarkTarget, NetfilterTarget};

/// The bytes that hold the DS field, in both versions of IP, and where IPv4 has its checksum.
const DS_FIELD: Payload = Payload { base: NftHeader::Network, offset: 0, length: 2 };
const CHECKSUM: u32 = 10;

/// Where targets lead, and which packets they have.
pub(super) struct TargetContext<'w> {
    /// Of which version of IP.
    pub(super) v6: Option<bool>,
    /// What a chain is called here.
    pub(super) names: &'w dyn Fn(&str) -> String,
    /// The chain that was made for this rule.
    pub(super) aside: &'w str,
}

/// A target as steps; `last`: nothing of the rule comes behind it.
pub(super) fn put(
    steps: &mut Expressions,
    target: &NetfilterTarget,
    last: bool,
    way: &TargetContext<'_>,
) -> Result<(), Unknown> {
    let TargetContext { v6, names, aside } = *way;
    let firewall = "leave it to the firewall that has it: its rules are not touched";
    match target {
        NetfilterTarget::Accept => drop(steps.verdict(&NftVerdict::Accept)),
        NetfilterTarget::Drop => drop(steps.verdict(&NftVerdict::Drop)),
        NetfilterTarget::Return => drop(steps.verdict(&NftVerdict::Return)),
        NetfilterTarget::Jump(chain) => drop(steps.verdict(&NftVerdict::Jump(names(chain)))),
        NetfilterTarget::Goto(chain) => drop(steps.verdict(&NftVerdict::Goto(names(chain)))),
        NetfilterTarget::Notrack(_) => drop(steps.notrack()),
        NetfilterTarget::Mark { value, mask } => mark(steps, *value, *mask),
        NetfilterTarget::Connmark(connmark) if !mixes(*connmark) => self::connmark(steps, *connmark),
        NetfilterTarget::Connmark(_) if last => drop(steps.verdict(&NftVerdict::Jump(aside.to_owned()))),
        NetfilterTarget::Connmark(_) => {
            return Err(unknown(
                "what follows a mark of which some bits are carried over",
                "make it a rule of its own",
            ));
        }
        NetfilterTarget::Classify(class) => {
            steps.put(&class.0.to_ne_bytes()).set_meta(NftMeta::Priority);
        }
        NetfilterTarget::Dscp(value) => field(steps, v6, value << 2, 0xfc)?,
        NetfilterTarget::Tos(value, mask) => field(steps, v6, *value, *mask)?,
        NetfilterTarget::Translate(translate) => return Err(unknown(translate.how.name(), firewall)),
        NetfilterTarget::Reject(_) => return Err(unknown("REJECT", firewall)),
        NetfilterTarget::Log { .. } => return Err(unknown("LOG", firewall)),
        NetfilterTarget::Tcpmss(_) => return Err(unknown("TCPMSS", firewall)),
    }
    Ok(())
}

fn mark(steps: &mut Expressions, value: u32, mask: u32) {
    if mask == u32::MAX {
        steps.put(&value.to_ne_bytes());
    } else {
        steps.load_meta(NftMeta::Mark).bits(&(!mask).to_ne_bytes(), &value.to_ne_bytes());
    }
    steps.set_meta(NftMeta::Mark);
}

/// Whether the result has bits of both marks.
const fn mixes(what: ConnmarkTarget) -> bool {
    match what {
        ConnmarkTarget::Set { .. } => false,
        ConnmarkTarget::Save { ctmask, .. } => ctmask != u32::MAX,
        ConnmarkTarget::Restore { nfmask, .. } => nfmask != u32::MAX,
    }
}

fn connmark(steps: &mut Expressions, what: ConnmarkTarget) {
    match what {
        ConnmarkTarget::Set { value, mask: u32::MAX } => {
            steps.put(&value.to_ne_bytes()).set_ct(NftCt::Mark);
        }
        ConnmarkTarget::Set { value, mask } => {
            steps
                .load_ct(NftCt::Mark, None)
                .bits(&(!mask).to_ne_bytes(), &value.to_ne_bytes())
                .set_ct(NftCt::Mark);
        }
        ConnmarkTarget::Save { nfmask, .. } => {
            steps.load_meta(NftMeta::Mark).masked(nfmask).set_ct(NftCt::Mark);
        }
        ConnmarkTarget::Restore { ctmask, .. } => {
            steps.load_ct(NftCt::Mark, None).masked(ctmask).set_meta(NftMeta::Mark);
        }
    }
}

/// `to = (to & !cleared) ^ (from & carried)`, bit by bit: the rules that do it, if a target requests it.
pub(super) fn carry_bits(target: &NetfilterTarget) -> Option<Vec<Expressions>> {
    let NetfilterTarget::Connmark(what) = target else { return None };
    let (save, cleared, carried) = match *what {
        ConnmarkTarget::Save { nfmask, ctmask } if mixes(*what) => (true, ctmask, nfmask),
        ConnmarkTarget::Restore { nfmask, ctmask } if mixes(*what) => (false, nfmask, ctmask),
        _ => return None,
    };
    // A packet without a connection has nothing that could be carried: the first step ends there.
    let mut first = Expressions::default();
    load(&mut first, true);
    change(&mut first, save, !cleared, 0);
    let mut all = vec![first];
    for bit in (0..32).map(|bit| 1_u32 << bit).filter(|bit| carried & bit != 0) {
        let mut steps = Expressions::default();
        load(&mut steps, !save).masked(bit).compare(NftCmp::Is, &bit.to_ne_bytes());
        change(&mut steps, save, u32::MAX, bit);
        all.push(steps);
    }
    Some(all)
}

fn load(steps: &mut Expressions, connection: bool) -> &mut Expressions {
    if connection { steps.load_ct(NftCt::Mark, None) } else { steps.load_meta(NftMeta::Mark) }
}

fn change(steps: &mut Expressions, connection: bool, keep: u32, flip: u32) {
    load(steps, connection).bits(&keep.to_ne_bytes(), &flip.to_ne_bytes());
    if connection {
        steps.set_ct(NftCt::Mark)
    } else {
        steps.set_meta(NftMeta::Mark)
    };
}

/// `field = (field & !mask) ^ value`; IPv4's checksum goes with it.
fn field(steps: &mut Expressions, v6: Option<bool>, value: u8, mask: u8) -> Result<(), Unknown> {
    let remedy = "say of which version of IP (`ip …` or `ip6 …`)";
    let Some(v6) = v6 else { return Err(unknown("the DS field of either version", remedy)) };
    let shift = if v6 { 4 } else { 0 };
    let keep = !(u16::from(mask) << shift);
    let flip = u16::from(value) << shift;
    steps.load(DS_FIELD).bits(&keep.to_be_bytes(), &flip.to_be_bytes());
    steps.store(DS_FIELD, (!v6).then_some(CHECKSUM));
    Ok(())
}
