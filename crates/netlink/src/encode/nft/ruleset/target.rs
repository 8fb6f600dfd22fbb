//! What is done with a packet.

use super::super::expression::Header;
use super::super::expression::{Compare, Ct, Expressions, Meta, Payload, Verdict};
use super::unknown::{Unknown, unknown};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_policy::netfilter::{Connmark, Target};

/// The bytes that hold the DS field, in both versions of IP, and where IPv4 has its checksum.
const DS_FIELD: Payload = Payload { base: Header::Network, offset: 0, length: 2 };
const CHECKSUM: u32 = 10;

/// Where targets lead, and which packets they have.
pub(super) struct Way<'w> {
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
    target: &Target,
    last: bool,
    way: &Way<'_>,
) -> Result<(), Unknown> {
    let Way { v6, names, aside } = *way;
    let firewall = "leave it to the firewall that has it: its rules are not touched";
    match target {
        Target::Accept => drop(steps.verdict(&Verdict::Accept)),
        Target::Drop => drop(steps.verdict(&Verdict::Drop)),
        Target::Return => drop(steps.verdict(&Verdict::Return)),
        Target::Jump(chain) => drop(steps.verdict(&Verdict::Jump(names(chain)))),
        Target::Goto(chain) => drop(steps.verdict(&Verdict::Goto(names(chain)))),
        Target::Notrack(_) => drop(steps.notrack()),
        Target::Mark { value, mask } => mark(steps, *value, *mask),
        Target::Connmark(connmark) if !mixes(*connmark) => self::connmark(steps, *connmark),
        Target::Connmark(_) if last => drop(steps.verdict(&Verdict::Jump(aside.to_owned()))),
        Target::Connmark(_) => {
            return Err(unknown(
                "what follows a mark of which some bits are carried over",
                "make it a rule of its own",
            ));
        }
        Target::Classify(class) => drop(steps.put(&class.0.to_ne_bytes()).set_meta(Meta::Priority)),
        Target::Dscp(value) => field(steps, v6, value << 2, 0xfc)?,
        Target::Tos(value, mask) => field(steps, v6, *value, *mask)?,
        Target::Translate(translate) => return Err(unknown(translate.how.name(), firewall)),
        Target::Reject(_) => return Err(unknown("REJECT", firewall)),
        Target::Log { .. } => return Err(unknown("LOG", firewall)),
        Target::Tcpmss(_) => return Err(unknown("TCPMSS", firewall)),
    }
    Ok(())
}

fn mark(steps: &mut Expressions, value: u32, mask: u32) {
    if mask == u32::MAX {
        steps.put(&value.to_ne_bytes());
    } else {
        steps.load_meta(Meta::Mark).bits(&(!mask).to_ne_bytes(), &value.to_ne_bytes());
    }
    steps.set_meta(Meta::Mark);
}

/// Do bits of both marks stand in what comes of it?
const fn mixes(what: Connmark) -> bool {
    match what {
        Connmark::Set { .. } => false,
        Connmark::Save { ctmask, .. } => ctmask != u32::MAX,
        Connmark::Restore { nfmask, .. } => nfmask != u32::MAX,
    }
}

fn connmark(steps: &mut Expressions, what: Connmark) {
    match what {
        Connmark::Set { value, mask: u32::MAX } => drop(steps.put(&value.to_ne_bytes()).set_ct(Ct::Mark)),
        Connmark::Set { value, mask } => {
            steps.load_ct(Ct::Mark, None).bits(&(!mask).to_ne_bytes(), &value.to_ne_bytes()).set_ct(Ct::Mark);
        }
        Connmark::Save { nfmask, .. } => drop(steps.load_meta(Meta::Mark).masked(nfmask).set_ct(Ct::Mark)),
        Connmark::Restore { ctmask, .. } => {
            steps.load_ct(Ct::Mark, None).masked(ctmask).set_meta(Meta::Mark);
        }
    }
}

/// `to = (to & !cleared) ^ (from & carried)`, bit by bit: the rules that do it, if a target asks for it.
pub(super) fn carry_bits(target: &Target) -> Option<Vec<Expressions>> {
    let Target::Connmark(what) = target else { return None };
    let (save, cleared, carried) = match *what {
        Connmark::Save { nfmask, ctmask } if mixes(*what) => (true, ctmask, nfmask),
        Connmark::Restore { nfmask, ctmask } if mixes(*what) => (false, nfmask, ctmask),
        _ => return None,
    };
    // A packet without a connection has nothing that could be carried: the first step ends there.
    let mut first = Expressions::default();
    load(&mut first, true);
    change(&mut first, save, !cleared, 0);
    let mut all = vec![first];
    for bit in (0..32).map(|bit| 1_u32 << bit).filter(|bit| carried & bit != 0) {
        let mut steps = Expressions::default();
        load(&mut steps, !save).masked(bit).compare(Compare::Is, &bit.to_ne_bytes());
        change(&mut steps, save, u32::MAX, bit);
        all.push(steps);
    }
    Some(all)
}

fn load(steps: &mut Expressions, connection: bool) -> &mut Expressions {
    if connection { steps.load_ct(Ct::Mark, None) } else { steps.load_meta(Meta::Mark) }
}

fn change(steps: &mut Expressions, connection: bool, keep: u32, flip: u32) {
    load(steps, connection).bits(&keep.to_ne_bytes(), &flip.to_ne_bytes());
    if connection {
        steps.set_ct(Ct::Mark)
    } else {
        steps.set_meta(Meta::Mark)
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
