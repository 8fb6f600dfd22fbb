//! flow: by a hash over flow keys, or by arithmetic on one of them (tc-flow(8)).

use crate::basic::matches;
use crate::conntrack;
use crate::context::{Bound, ClassifyContext};
use crate::entries::{Entries, Entry, FilterData};
use crate::query::{FilterRandom, FilterResult};
use tidegate_packet::header::proto;
use tidegate_packet::{Addrs, FlowKeys, Handle, Timer, dissect_inner, jenkins};
use tidegate_policy::{Errno, FilterParams, FlowKeySet, FlowMode, FlowParams, TcError};

/// The flow filters of one preference.
pub(crate) type Flow = Entries<FlowHash>;

/// How a filter computes classes.
#[derive(Debug)]
pub(crate) struct FlowHash {
    params: FlowParams,
    base: Handle,
    seed: u32,
    /// When the seed is changed next.
    perturb: Timer,
}

impl FlowHash {
    /// The class it computes for a packet.
    fn class(&self, context: &mut ClassifyContext<'_>) -> Handle {
        let params = &self.params;
        let mut words = [0u32; FlowKeySet::NAMES.len()];
        let mut n = 0;
        for bit in 0..words.len() as u32 {
            if params.keys.has(bit) {
                words[n] = key(bit, context);
                n += 1;
            }
        }
        let mut class = match params.mode.unwrap_or_default() {
            FlowMode::Hash => jenkins(&words[..n], self.seed),
            FlowMode::Map => {
                let masked = (words[0] & params.mask) ^ params.xor;
                (masked.checked_shr(params.rshift).unwrap_or(0)).wrapping_add(params.addend)
            }
        };
        if params.divisor > 0 {
            class %= params.divisor;
        }
        self.base.class(self.base.0.wrapping_add(class) as u16)
    }
}

impl Flow {
    pub(crate) fn classify(&mut self, context: &mut ClassifyContext<'_>) -> FilterResult {
        for entry in &mut self.list {
            if !matches(&entry.data.params.terms, context) {
                continue;
            }
            let class = entry.data.class(context);
            match entry.actions.run(class, context) {
                FilterResult::No => {}
                said => return said,
            }
        }
        FilterResult::No
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &FlowParams,
        qdisc: Handle,
        perturb: Timer,
        actions: Bound,
        random: &mut FilterRandom<'_>,
    ) -> Result<(), TcError> {
        if handle == 0 || params.keys.0 == 0 {
            return Err(TcError::bare(Errno::Inval));
        }
        shift_in_range(params)?;
        let mode = params.mode.unwrap_or_default();
        if mode == FlowMode::Map && !params.keys.0.is_power_of_two() {
            return Err(TcError::bare(Errno::OpNotSupp));
        }
        if mode == FlowMode::Map && params.perturb != 0 {
            return Err(TcError::bare(Errno::Inval));
        }
        let base = base_class(params.baseclass, qdisc);
        let seed = random.flow_seed();
        let mut params = params.clone();
        params.baseclass = Some(base);
        params.mode = Some(mode);
        let data = FlowHash { params, base, seed, perturb };
        self.list.push(Entry { handle, data, bound: false, actions });
        Ok(())
    }

    pub(crate) fn change(
        &mut self,
        handle: u32,
        params: &FlowParams,
        qdisc: Handle,
        arm: impl FnOnce(u32) -> Timer,
        actions: Bound,
    ) -> Result<(), TcError> {
        let entry = self.find_mut(handle)?;
        let known = &mut entry.data;
        shift_in_range(params)?;
        let mut new = params.clone();
        new.mode = Some(params.mode.or(known.params.mode).unwrap_or_default());
        let maps = new.mode == Some(FlowMode::Map);
        // Keys that were there already are let be.
        if maps && params.keys.0 != 0 && !params.keys.0.is_power_of_two() {
            return Err(TcError::bare(Errno::OpNotSupp));
        }
        if maps && params.given.perturb {
            return Err(TcError::bare(Errno::Inval));
        }
        if new.keys.0 == 0 {
            new.keys = known.params.keys;
        }
        keep_unsaid(&mut new, &known.params);
        if params.baseclass.is_some() {
            known.base = base_class(params.baseclass, qdisc);
        }
        new.baseclass = Some(known.base);
        known.perturb = arm(new.perturb);
        known.params = new;
        entry.actions = actions;
        Ok(())
    }

    /// When the next seed change of this preference is due.
    pub(crate) fn perturb_due(&self) -> Timer {
        self.timers().min().unwrap_or(Timer::NEVER)
    }

    /// When the next one after `due` is.
    pub(crate) fn perturb_due_after(&self, due: Timer) -> Timer {
        self.timers().filter(|timer| timer.at > due.at).min().unwrap_or(Timer::NEVER)
    }

    fn timers(&self) -> impl Iterator<Item = Timer> {
        self.list.iter().map(|entry| entry.data.perturb)
    }

    /// Changes the seed of the entry that is due at `due`; `next` arms it again.
    pub(crate) fn perturb(
        &mut self,
        due: Timer,
        random: &mut FilterRandom<'_>,
        next: impl Fn(u32) -> Timer,
    ) -> bool {
        let mut all = self.list.iter_mut().map(|entry| &mut entry.data);
        let Some(hash) = all.find(|hash| hash.perturb == due) else { return false };
        hash.seed = random.word() as u32;
        hash.perturb = next(hash.params.perturb);
        true
    }
}

/// Options that a change does not give keep their values.
fn keep_unsaid(new: &mut FlowParams, old: &FlowParams) {
    let options = new.given;
    if !options.bits {
        (new.mask, new.xor) = (old.mask, old.xor);
    }
    if !options.rshift {
        new.rshift = old.rshift;
    }
    if !options.addend {
        new.addend = old.addend;
    }
    if !options.divisor {
        new.divisor = old.divisor;
    }
    if !options.perturb && new.mode == Some(FlowMode::Hash) {
        new.perturb = old.perturb;
    }
}

impl FilterData for FlowHash {
    /// It computes its classes, and holds none.
    fn classid(&self) -> Option<Handle> {
        None
    }
    fn params(&self) -> FilterParams {
        FilterParams::Flow(self.params.clone())
    }
}

/// A word has 32 bits.
fn shift_in_range(params: &FlowParams) -> Result<(), TcError> {
    if params.rshift < u32::BITS { Ok(()) } else { Err(TcError::bare(Errno::Range)) }
}

fn base_class(given: Option<Handle>, qdisc: Handle) -> Handle {
    let given = given.unwrap_or(Handle::NONE);
    let major = if given.major() == 0 { qdisc } else { given };
    major.class(if given.minor() == 0 { 1 } else { given.minor() })
}

/// The value of key number `bit` (the order of `FlowKeySet::NAMES`). What only a host knows (sockets, routes)
/// is 0 here.
fn key(bit: u32, context: &mut ClassifyContext<'_>) -> u32 {
    let pkt = context.pkt;
    let meta = context.pool.meta(pkt);
    match bit {
        5 => 0, // iif: nothing forwarded from a known device yet
        6 => meta.priority,
        7 => meta.mark.0,
        8 => conntrack::number(meta).unwrap_or(0),
        9..=12 if conntrack::number(meta).is_some() => tracked(bit - 9, context),
        17 => context.pool.hash(pkt),
        // Outside a tunnel there is nothing inside.
        19.. => dissect_inner(context.pool.head(pkt)).map_or(0, |keys| plain(bit - 19, &keys)),
        _ => {
            let keys = context.pool.keys(pkt);
            match bit {
                9 | 10 => plain(bit - 9, keys),
                11 | 12 => plain(bit - 8, keys),
                16 => keys.vlan[0].map_or(0, |(tci, _)| u32::from(tci & 0x0fff)),
                18 => keys.flow_label,
                _ => plain(bit, keys),
            }
        }
    }
}

/// src, dst, proto, proto-src and proto-dst.
fn plain(bit: u32, keys: &FlowKeys) -> u32 {
    match bit {
        0 => address(keys.addrs, false),
        1 => address(keys.addrs, true),
        2 => u32::from(keys.protocol),
        3 => u32::from(keys.ports.0),
        4 => u32::from(keys.ports.1),
        _ => 0,
    }
}

/// The two addresses and two ports as connection tracking has them, in the packet's own direction, before
/// translation.
fn tracked(which: u32, context: &ClassifyContext<'_>) -> u32 {
    let keys = context.pool.arrived_keys(context.pkt);
    match (which, keys.protocol) {
        (0 | 1, _) => match keys.addrs {
            Addrs::V6(src, dst) => last_word(if which == 0 { src } else { dst }),
            addrs => address(addrs, which == 1),
        },
        (_, proto::ICMP | proto::ICMPV6) => {
            // An ICMP echo's identifier is its source port, type and code its destination port.
            let at = if keys.protocol == proto::ICMP { 20 } else { 40 };
            let word = |at: i32| context.pool.head(context.pkt).word(at).unwrap_or(0);
            word(if which == 2 { at + 4 } else { at }) >> 16
        }
        _ => plain(which + 1, &keys),
    }
}

fn last_word(bytes: [u8; 16]) -> u32 {
    u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]])
}

fn address(addrs: Addrs, destination: bool) -> u32 {
    match addrs {
        Addrs::None => 0,
        Addrs::V4(src, dst) => u32::from_be_bytes(if destination { dst } else { src }),
        Addrs::V6(src, dst) => {
            let a = if destination { dst } else { src };
            a.chunks_exact(4).fold(0, |fold, w| fold ^ u32::from_be_bytes([w[0], w[1], w[2], w[3]]))
        }
    }
}
