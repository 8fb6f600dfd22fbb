//! `tc filter …`: the words before the kind, fw and flow.

use super::build::later;
use super::command::{Notes, block, class_id, device, either, estimator_aside, find_device, found, one_of, parent_or};
use super::words::{Words, begins};
use super::{Object, ShowWhat, TcCommand, help_of};
use super::{action, basic, ematch, flower, u32_filter};
use crate::nearest;
use crate::number::{u16_in, u32_in};
use crate::units::parse_classid;
use crate::{Env, Refusal};
use tidegate_packet::Handle;
use tidegate_policy::spec::{FILTERS, FLOW, FW, MATCHALL, REFUSED_FILTERS, why_not};
use tidegate_policy::{
    Action, FilterOp, FilterParams, FlowKeySet, FlowMode, FlowParams, FwParams, Indev, MatchallParams, Op, Verb,
};

/// Where `filter … ingress` hangs.
pub(super) const INGRESS_FILTERS: Handle = Handle(0xffff_fff2);
/// Where `filter … egress` hangs.
pub(super) const EGRESS_FILTERS: Handle = Handle(0xffff_fff3);

pub(super) fn filter(verb: Verb, words: &mut Words<'_>, env: &Env, notes: &mut Notes) -> Result<TcCommand, Refusal> {
    let mut op = FilterOp {
        verb,
        dev: String::new(),
        block: 0,
        parent: Handle::NONE,
        pref: 0,
        protocol: 0,
        chain: 0,
        handle: 0,
        kind: None,
        params: None,
        actions: Vec::new(),
    };
    let (mut handle, mut protocol, mut chain) = (None, None, None);
    while let Some(word) = words.take() {
        match word {
            "dev" => device(&mut op.dev, words)?,
            _ if begins(word, "block") => block(&mut op.block, words)?,
            "root" | "ingress" | "egress" => {
                if !op.parent.is_none() {
                    return Err(Refusal::new(255, format!("Error: \"{word}\" is duplicate parent ID")).at(words.last()));
                }
                op.parent = hook(word);
            }
            "parent" => parent_or(&mut op.parent, "Invalid parent ID", words)?,
            "handle" => {
                let text = words.need()?;
                if handle.is_some() {
                    return Err(Refusal::duplicate("handle", text).at(words.last()));
                }
                handle = Some((text, words.last()));
            }
            _ if begins(word, "preference") || begins(word, "priority") => {
                let text = words.need()?;
                if op.pref != 0 {
                    return Err(Refusal::duplicate("priority", text).at(words.last()));
                }
                op.pref = preference(text, words.last())?;
            }
            _ if begins(word, "protocol") => {
                let text = words.need()?;
                if protocol.is_some() {
                    return Err(Refusal::duplicate("protocol", text).at(words.last()));
                }
                protocol = Some(protocol_of(text, words.last())?);
            }
            _ if begins(word, "chain") => {
                let text = words.need()?;
                if chain.is_some() {
                    return Err(Refusal::duplicate("chain", text).at(words.last()));
                }
                chain = Some(chain_of(text, words.last())?);
            }
            _ if begins(word, "estimator") => estimator_aside(words, notes)?,
            _ if begins(word, "help") => return Ok(help_of(Some(Object::Filter))),
            kind => {
                op.kind = Some(kind.into());
                break;
            }
        }
    }
    let absent = |refusal: Refusal| match refusal.code {
        2 => refusal.then("We have an error talking to the kernel"),
        _ => refusal,
    };
    one_of(&op.dev, op.block, words)?;
    // A name that leads nowhere is found before the kind's words are read, a missing one by the kernel.
    if !op.dev.is_empty() {
        find_device(&op.dev, env).map_err(absent)?;
    }
    op.chain = chain.unwrap_or(0);
    // Only a command that may create fills in `all`.
    let creates = matches!(verb, Verb::Add | Verb::Replace);
    op.protocol = protocol.unwrap_or(if creates { FilterOp::ALL } else { 0 });
    match op.kind.clone() {
        Some(kind) => {
            let place = words.last();
            let unbuilt = why_not(REFUSED_FILTERS, &kind).filter(|_| creates && words.peek().is_none());
            if let Some(why) = unbuilt {
                return Err(later("filter", &kind, place).remedy(format!("Not built: {why}.")));
            }
            let read = options(&kind, place, (handle, op.protocol), words, env)?;
            (op.handle, op.params, op.actions) = (read.handle, read.params, read.actions);
        }
        None if handle.is_some() => {
            return Err(Refusal::new(255, "Must specify filter type when using \"handle\"")
                .remedy("Name the kind after it: handle 10 fw."));
        }
        None => {}
    }
    if op.block == 0 {
        find_device(&op.dev, env).map_err(absent)?;
    }
    Ok(TcCommand::Apply(Op::Filter(op)))
}

pub(super) fn show(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let mut what = ShowWhat::of(Object::Filter);
    while let Some(word) = words.take() {
        match word {
            "dev" => {
                let dev = words.need()?;
                if what.dev.is_some() {
                    return Err(Refusal::duplicate("dev", dev).at(words.last()));
                }
                either(word, what.block == 0, words)?;
                what.dev = Some(dev.into());
            }
            _ if begins(word, "block") => {
                block(&mut what.block, words)?;
                either("block", what.dev.is_none(), words)?;
            }
            "root" | "ingress" | "egress" => {
                if what.parent.is_some() {
                    return Err(Refusal::new(255, format!("Error: \"{word}\" is duplicate parent ID")).at(words.last()));
                }
                what.parent = Some(hook(word));
            }
            "parent" => {
                let text = words.need()?;
                if what.parent.is_some() {
                    return Err(Refusal::duplicate("parent", text).at(words.last()));
                }
                what.parent = Some(class_id(text, "invalid parent ID", words.last())?);
            }
            "help" => return Ok(help_of(Some(Object::Filter))),
            "chain" => {
                let text = words.need()?;
                what.chain = Some(chain_of(text, words.last())?);
            }
            _ if begins(word, "preference") || begins(word, "priority") => {
                let text = words.need()?;
                what.pref = Some(preference(text, words.last())?);
            }
            _ if begins(word, "protocol") => {
                let text = words.need()?;
                what.protocol = Some(protocol_of(text, words.last())?);
            }
            _ => return Err(unknown_in_show(word, words.last())),
        }
    }
    found(what, env)
}

/// A word that is none of a listing's, of filters or of chains.
pub(super) fn unknown_in_show(word: &str, place: usize) -> Refusal {
    Refusal::new(255, format!(" What is \"{word}\"? Try \"tc filter help\""))
        .at(place)
        .remedy("show takes dev DEVICE or block N, parent ID or root, pref N, protocol NAME, chain N.")
}

pub(super) fn hook(word: &str) -> Handle {
    match word {
        "root" => Handle::ROOT,
        "ingress" => INGRESS_FILTERS,
        _ => EGRESS_FILTERS,
    }
}

pub(super) fn preference(text: &str, place: usize) -> Result<u16, Refusal> {
    u16_in(text, 0).ok_or_else(|| {
        Refusal::wrong(text, "invalid priority value").at(place).remedy("A preference is a number from 0 to 65535.")
    })
}

pub(super) fn chain_of(text: &str, place: usize) -> Result<u32, Refusal> {
    u32_in(text, 0).ok_or_else(|| Refusal::wrong(text, "invalid chain index value").at(place))
}

pub(super) fn protocol_of(text: &str, place: usize) -> Result<u16, Refusal> {
    parse_protocol(text).ok_or_else(|| {
        Refusal::wrong(text, "invalid protocol")
            .at(place)
            .remedy("Protocols are ip, ipv6, arp, all, 802.1q, or a number.")
    })
}

/// An EtherType by name or number.
pub(crate) fn parse_protocol(text: &str) -> Option<u16> {
    let lower = text.to_ascii_lowercase();
    let named = PROTOCOLS.iter().find(|(name, _)| name.to_ascii_lowercase() == lower);
    let number = named.map(|(_, number)| *number).or((lower == "ipv4").then_some(0x0800));
    number.or_else(|| u16_in(text, 0))
}

/// The names of EtherTypes that tc prints and reads.
pub(super) const PROTOCOLS: [(&str, u16); 52] = [
    ("802_3", 0x0001),
    ("ax25", 0x0002),
    ("all", 0x0003),
    ("802_2", 0x0004),
    ("snap", 0x0005),
    ("ddcmp", 0x0006),
    ("wan_ppp", 0x0007),
    ("ppp_mp", 0x0008),
    ("localtalk", 0x0009),
    ("can", 0x000c),
    ("ppptalk", 0x0010),
    ("tr_802_2", 0x0011),
    ("mobitex", 0x0015),
    ("control", 0x0016),
    ("irda", 0x0017),
    ("econet", 0x0018),
    ("loop", 0x0060),
    ("pup", 0x0200),
    ("pupat", 0x0201),
    ("ip", 0x0800),
    ("x25", 0x0805),
    ("arp", 0x0806),
    ("bpq", 0x08ff),
    ("ieeepup", 0x0a00),
    ("ieeepupat", 0x0a01),
    ("dec", 0x6000),
    ("dna_dl", 0x6001),
    ("dna_rc", 0x6002),
    ("dna_rt", 0x6003),
    ("lat", 0x6004),
    ("diag", 0x6005),
    ("cust", 0x6006),
    ("sca", 0x6007),
    ("teb", 0x6558),
    ("rarp", 0x8035),
    ("atalk", 0x809b),
    ("aarp", 0x80f3),
    ("802.1Q", 0x8100),
    ("ipx", 0x8137),
    ("ipv6", 0x86dd),
    ("mpls_uc", 0x8847),
    ("mpls_mc", 0x8848),
    ("atmmpoa", 0x884c),
    ("ppp_disc", 0x8863),
    ("ppp_ses", 0x8864),
    ("atmfate", 0x8884),
    ("profinet", 0x8892),
    ("aoe", 0x88a2),
    ("ethercat", 0x88a4),
    ("802.1ad", 0x88a8),
    ("tipc", 0x88ca),
    ("LLDP", 0x88cc),
];

pub(super) type Given<'a> = Option<(&'a str, usize)>;

/// What stands from the kind on.
#[derive(Default)]
pub(super) struct Read {
    pub(super) handle: u32,
    pub(super) params: Option<FilterParams>,
    pub(super) actions: Vec<Action>,
}

/// Reads the handle in the kind's notation, and the words after the kind.
pub(super) fn options(
    kind: &str,
    place: usize,
    (handle, protocol): (Given<'_>, u16),
    words: &mut Words<'_>,
    env: &Env,
) -> Result<Read, Refusal> {
    match kind {
        "fw" => fw(handle, words, env),
        "flow" => flow(handle, words, env),
        "matchall" => matchall(handle, words, env),
        "basic" => basic::parse(handle, words, env),
        "flower" => flower::parse(handle, protocol, words, env),
        "u32" => {
            let mut node = match handle {
                Some((text, place)) => u32_filter::parse_handle(text).ok_or_else(|| {
                    Refusal::new(1, "Illegal filter ID")
                        .at(place)
                        .remedy("A handle of u32 is TABLE:BUCKET:NODE in hexadecimal, such as 800::801.")
                })?,
                None => 0,
            };
            let read = u32_filter::parse(words, env)?;
            if let Some(order) = read.order {
                node = node & !0xfff | order & 0xfff;
            }
            Ok(Read { handle: node, params: read.params.map(FilterParams::U32), actions: read.actions })
        }
        _ => match words.peek() {
            Some(option) => {
                if let Some(why) = why_not(REFUSED_FILTERS, kind) {
                    return Err(later("filter", kind, place).remedy(format!("Not built: {why}.")));
                }
                let known: Vec<&str> = FILTERS.iter().map(|filter| filter.name).collect();
                let remedy = match nearest(kind, known.iter().copied()) {
                    Some(name) => format!("There is no filter \"{kind}\"; did you mean {name}?"),
                    None => format!("There is no filter \"{kind}\"; this version knows {}.", known.join(", ")),
                };
                Err(Refusal::new(1, format!("Unknown filter \"{kind}\", hence option \"{option}\" is unparsable"))
                    .at(place)
                    .remedy(remedy))
            }
            None => {
                let number = handle.and_then(|(text, _)| u32_in(text, 0)).unwrap_or(0);
                Ok(Read { handle: number, ..Read::default() })
            }
        },
    }
}

fn illegal(name: &str, more: &str, text: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("Illegal \"{name}\"{more}")).at(place).remedy(format!(
        "\"{text}\" is not a value for {name}: a number is wanted (0x for hexadecimal), for classes 1:10."
    ))
}

fn fw(handle: Given<'_>, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let mut params = FwParams::default();
    let mut number = 0;
    if let Some((text, place)) = handle {
        let (value, mask) = match text.split_once('/') {
            Some((value, mask)) => (value, Some(mask)),
            None => (text, None),
        };
        number = u32_in(value, 0).ok_or_else(|| illegal("handle", "", text, place))?;
        if let Some(mask) = mask {
            params.mask = Some(u32_in(mask, 0).ok_or_else(|| illegal("handle", " mask", text, place))?);
        }
    }
    if words.peek().is_none() {
        return Ok(Read { handle: number, ..Read::default() });
    }
    let mut actions = Vec::new();
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "classid") || begins(word, "flowid") => params.classid = Some(class(words)?),
            _ if begins(word, "action") => actions = action::parse(words, env)?,
            _ if begins(word, "police") => actions = action::old_police(words)?,
            "indev" => params.indev = Some(Indev::named(words.need()?)),
            "help" => return Err(Refusal { stderr: FW.help(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&FW.help())
                    .at(words.last())
                    .remedy("fw takes classid (or flowid) and a class: handle 10 fw flowid 1:10."));
            }
        }
    }
    Ok(Read { handle: number, params: Some(FilterParams::Fw(params)), actions })
}

fn flow(handle: Given<'_>, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let number = number(handle)?;
    if words.peek().is_none() {
        return Ok(Read { handle: number, ..Read::default() });
    }
    let mut actions = Vec::new();
    // tc always sends a mode; unless `hash` is said, it is `map`.
    let mut params = FlowParams { mode: Some(FlowMode::Map), ..FlowParams::default() };
    while let Some(word) = words.take() {
        let place = words.last();
        let option = FLOW.options.iter().find(|option| option.is(word)).map(|option| option.key);
        let mut value = |name: &str| {
            let text = words.need()?;
            u32_in(text, 0).ok_or_else(|| illegal(name, "", text, words.last()))
        };
        match option {
            Some("and" | "or" | "xor") => params.said.bits = true,
            Some("rshift") => params.said.rshift = true,
            Some("addend") => params.said.addend = true,
            Some("divisor") => params.said.divisor = true,
            Some("perturb") => params.said.perturb = true,
            _ => {}
        }
        match option {
            Some("hash") => params.mode = Some(FlowMode::Hash),
            Some("map") => params.mode = Some(FlowMode::Map),
            Some("keys") => params.keys = keys(env, words)?,
            Some("and") => {
                let mask = value("mask")?;
                params.mask &= mask;
                params.xor &= mask;
            }
            Some("or") => {
                let bits = value("or")?;
                params.mask &= !bits;
                params.xor |= bits;
            }
            Some("xor") => params.xor ^= value("xor")?,
            Some("rshift") => params.rshift = value("rshift")?,
            Some("addend") => params.addend = addend(words)?,
            Some("divisor") => params.divisor = value("divisor")?,
            Some("perturb") => params.perturb = value("perturb")?,
            Some("baseclass") => {
                let text = words.need()?;
                let class = parse_classid(text).filter(|class| class.minor() != 0);
                params.baseclass = Some(class.ok_or_else(|| illegal("baseclass", "", text, words.last()))?);
            }
            _ if begins(word, "action") => actions = action::parse(words, env)?,
            _ if begins(word, "police") => actions = action::old_police(words)?,
            _ if begins(word, "match") => {
                if words.peek().is_none() {
                    words.need()?;
                }
                params.terms = ematch::parse(words)?;
                // tc looks at the expression's last word again unless something follows.
                if words.peek().is_none() {
                    words.back();
                    let again = words.take().unwrap_or_default();
                    return Err(Refusal::new(1, format!("What is \"{again}\"?"))
                        .then(&FLOW.help())
                        .at(words.last())
                        .remedy(
                            "tc 6.1 reads `match` only before other words of flow: write it before `map` or `hash`.",
                        ));
                }
            }
            _ if word == "help" => return Err(Refusal { stderr: FLOW.help(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&FLOW.help())
                    .at(place)
                    .remedy("flow takes `hash keys K,…` or `map key K` with and, or, xor, rshift, addend; divisor, baseclass, perturb."));
            }
        }
    }
    if params.mode == Some(FlowMode::Map) && params.keys.0.count_ones() > 1 {
        return Err(Refusal::new(1, "Invalid mode \"map\" for multiple keys")
            .remedy("Only one key can be computed with; to spread by several, write `flow hash keys …`."));
    }
    Ok(Read { handle: number, params: Some(FilterParams::Flow(params)), actions })
}

/// A handle that is a plain number; 0 where none is given.
pub(super) fn number(handle: Given<'_>) -> Result<u32, Refusal> {
    let Some((text, place)) = handle else { return Ok(0) };
    u32_in(text, 0).ok_or_else(|| illegal("handle", "", text, place))
}

/// The class after `classid` or `flowid`.
pub(super) fn class(words: &mut Words<'_>) -> Result<Handle, Refusal> {
    let text = words.need()?;
    parse_classid(text).ok_or_else(|| illegal("classid", "", text, words.last()))
}

fn matchall(handle: Given<'_>, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let number = number(handle)?;
    if words.peek().is_none() {
        return Ok(Read { handle: number, ..Read::default() });
    }
    let (mut params, mut actions) = (MatchallParams::default(), Vec::new());
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "classid") || word == "flowid" => params.classid = Some(class(words)?),
            _ if begins(word, "action") => actions = action::parse(words, env)?,
            "skip_hw" => return Err(later("matchall option", word, words.last())),
            "skip_sw" => return Err(flower::no_card(words.last())),
            "help" => return Err(Refusal { stderr: MATCHALL.help(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&MATCHALL.help())
                    .at(words.last())
                    .remedy("matchall takes classid (or flowid) and a class, and action."));
            }
        }
    }
    Ok(Read { handle: number, params: Some(FilterParams::Matchall(params)), actions })
}

fn keys(env: &Env, words: &mut Words<'_>) -> Result<FlowKeySet, Refusal> {
    let list = words.need()?;
    let mut set = FlowKeySet(0);
    for name in list.split(',') {
        let known = FlowKeySet::NAMES.iter().position(|key| *key == name);
        // tc has no name for the flow label.
        let usable = |bit: &usize| *bit < 18 || env.tunnel_keys && *bit >= FlowKeySet::TUNNEL;
        let bit = known.filter(usable).ok_or_else(|| {
            let remedy = match known {
                Some(FlowKeySet::TUNNEL..) => {
                    "The keys of a tunnel's inside are of patched kernels; with --dissect legacy the machine is such a one. \
                     Others look into tunnels by themselves: write src, dst, proto …"
                        .into()
                }
                _ => format!("The keys are {}.", FlowKeySet::NAMES[..18].join(", ")),
            };
            Refusal::new(1, format!("Unknown flow key \"{name}\"")).at(words.last()).remedy(remedy)
        })?;
        set.0 |= 1 << bit;
    }
    Ok(set)
}

/// A number or an IPv4 address, with a minus sign to take it away; for IPv6 addresses their last word counts.
fn addend(words: &mut Words<'_>) -> Result<u32, Refusal> {
    let text = words.need()?;
    let (body, negative) = match text.strip_prefix('-') {
        Some(body) => (body, true),
        None => (text, false),
    };
    let number = u32_in(body, 0)
        .or_else(|| u32_filter::dotted(body))
        .or_else(|| u32_filter::parse_prefix6(body).map(|(octets, _)| octets).map(last_word));
    let number = number.ok_or_else(|| {
        Refusal::new(1, format!("Error: any valid address is expected rather than \"{body}\"."))
            .at(words.last())
            .remedy("addend takes a number or an address, with - before it to subtract: addend -192.168.0.0.")
    })?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

fn last_word(octets: [u8; 16]) -> u32 {
    u32::from_be_bytes([octets[12], octets[13], octets[14], octets[15]])
}
