//! What netfilter's rules know of the header that follows the network header: which packets have one that
//! they find, and which of those meet a condition.
//!
//! Of IPv6 a rule looks behind extension headers. Followed are packets with one of them; of ports, flags and
//! types behind a longer one than eight bytes, and of anything behind two, it is not known what a rule finds:
//! no condition holds there.

use crate::sets::bdd::{Literal, Set, TooLarge};
use crate::sets::field::{Field, View};
use crate::sets::set::{Space, Truth};
use tidegate_packet::LinuxChange;
use tidegate_packet::header::proto;

/// Protocols with two ports in front.
pub(super) const WITH_PORTS: [u8; 5] = [proto::TCP, proto::UDP, 33, 132, 136];
/// IPv6's headers of options and for routers, which say how long they are.
pub(super) const OPTIONS: [u8; 3] = [0, 43, proto::DESTINATION_OPTIONS];
/// All headers that a rule looks behind.
const EXTENSIONS: [u8; 4] = [0, 43, proto::FRAGMENT, proto::DESTINATION_OPTIONS];
/// IPv6's Authentication Header: no later fragment is known to begin with one.
const AUTHENTICATION: u8 = 51;
/// Bytes of an extension header that is followed to its end.
const EXTENSION: u64 = 8;
/// The bits of the offset in IPv4's fragment word.
const OFFSET: u128 = 0x1fff;

/// Where what a packet carries begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// Right behind the network header.
    Here,
    /// Behind one extension header of IPv6.
    Behind,
}

impl Begin {
    /// Bit `at` of the header.
    fn bit(self, view: View, at: u16) -> u16 {
        match self {
            Begin::Behind if view.ports || at >= 32 => Field::Transport.bit(64 + at),
            _ => view.transport(at),
        }
    }
}

impl Space {
    /// Packets that carry a protocol.
    pub(super) fn carrying(&mut self, number: u8, v6: bool) -> Result<Truth, TooLarge> {
        let plain = self.is(Field::Protocol, number.into())?;
        if !v6 {
            return Ok(Truth { holding: plain, known: Set::ALL });
        }
        let (here, behind) = (self.without_extension()?, self.behind_one()?);
        let named = self.naming(&[number])?;
        let plain = self.store.and(here, plain)?;
        let named = self.store.and(behind, named)?;
        Ok(Truth { holding: self.store.or(plain, named)?, known: self.store.or(here, behind)? })
    }

    /// Packets with ports that a rule finds, one of which is in a range; `alone`: the rule names one port or
    /// range.
    pub(super) fn ports(
        &mut self,
        ranges: &[(u16, u16)],
        places: &[u16],
        alone: bool,
        view: View,
        v6: bool,
    ) -> Result<Truth, TooLarge> {
        let reads_later = alone && !self.words.linux.has(LinuxChange::LaterFragments);
        let mut truth = self.found(&WITH_PORTS, 4, reads_later, v6, &mut |space, begin| {
            let mut set = Set::NONE;
            for (low, high) in ranges {
                for place in places {
                    let start = begin.bit(view, *place);
                    let one = space.store.range(start, 16, u64::from(*low), u64::from(*high))?;
                    set = space.store.or(set, one)?;
                }
            }
            Ok(set)
        })?;
        if v6 && reads_later && places == [16] {
            // Linux 6.1 takes the last 16 bits of the flow label for the port.
            let later = self.later_v6(&WITH_PORTS)?;
            let mut set = Set::NONE;
            for (low, high) in ranges {
                let one = self.store.range(Field::FlowLabel.bit(4), 16, u64::from(*low), u64::from(*high))?;
                set = self.store.or(set, one)?;
            }
            let set = self.store.and(later, set)?;
            truth.holding = self.store.or(truth.holding, set)?;
            truth.known = self.store.or(truth.known, later)?;
        }
        Ok(truth)
    }

    pub(super) fn tcp_flags(&mut self, mask: u8, flags: u8, v6: bool) -> Result<Truth, TooLarge> {
        let reads_later = !self.words.linux.has(LinuxChange::LaterFragments);
        self.found(&[proto::TCP], 14, reads_later, v6, &mut |space, begin| {
            let wanted = (0..8u16).filter(|at| mask >> (7 - at) & 1 == 1);
            let literals: Vec<Literal> =
                wanted.map(|at| (begin.bit(View::PLAIN, 13 * 8 + at), flags >> (7 - at) & 1 == 1)).collect();
            if flags & !mask != 0 { Ok(Set::NONE) } else { space.store.cube(&literals) }
        })
    }

    pub(super) fn icmp(&mut self, kind: u8, codes: (u8, u8), v6: bool) -> Result<Truth, TooLarge> {
        self.found(&[proto::ICMP, proto::ICMPV6], 2, false, v6, &mut |space, begin| {
            if kind == u8::MAX {
                return Ok(Set::ALL);
            }
            let bit = |at: u16| begin.bit(View::PLAIN, at);
            let is = space.store.range(bit(0), 8, kind.into(), kind.into())?;
            let code = space.store.range(bit(8), 8, codes.0.into(), codes.1.into())?;
            space.store.and(is, code)
        })
    }

    /// Packets that carry one of these protocols and `least` bytes of its header where a rule looks for them,
    /// and those whose header is as asked; `reads_later`: a rule takes the payload of IPv4's later fragments
    /// for it.
    fn found(
        &mut self,
        protocols: &[u8],
        least: u64,
        reads_later: bool,
        v6: bool,
        asked: &mut dyn FnMut(&mut Space, Begin) -> Result<Set, TooLarge>,
    ) -> Result<Truth, TooLarge> {
        let mut known = self.one_of(Field::Protocol, protocols)?;
        if !v6 && !reads_later {
            let first = self.store.cube(&Field::Fragment.literals(0, 16, 0, OFFSET))?;
            known = self.store.and(known, first)?;
        }
        let set = asked(self, Begin::Here)?;
        let mut holding = self.store.and(known, set)?;
        if v6 {
            let behind = self.shown_behind(protocols, least)?;
            let set = asked(self, Begin::Behind)?;
            let set = self.store.and(behind, set)?;
            (known, holding) = (self.store.or(known, behind)?, self.store.or(holding, set)?);
        }
        Ok(Truth { holding, known })
    }

    /// IPv6 packets that begin with what they carry.
    fn without_extension(&mut self) -> Result<Set, TooLarge> {
        let with = self.one_of(Field::Protocol, &EXTENSIONS)?;
        self.store.minus(Set::ALL, with)
    }

    /// IPv6 packets with one extension header, of which a rule finds what they carry.
    fn behind_one(&mut self) -> Result<Set, TooLarge> {
        let options = self.one_of(Field::Protocol, &OPTIONS)?;
        let fragment = self.is(Field::Protocol, proto::FRAGMENT.into())?;
        let one = self.store.or(options, fragment)?;
        let another = self.naming(&EXTENSIONS)?;
        let one = self.store.minus(one, another)?;
        let later = self.later_v6(&[AUTHENTICATION])?;
        self.store.minus(one, later)
    }

    /// Packets whose extension header says that one of these protocols follows it.
    fn naming(&mut self, protocols: &[u8]) -> Result<Set, TooLarge> {
        let mut named = Set::NONE;
        for number in protocols {
            let this = self.store.cube(&Field::Transport.literals(0, 8, u128::from(*number), 0xff))?;
            named = self.store.or(named, this)?;
        }
        Ok(named)
    }

    /// Those of them whose header begins right behind it, with so many bytes at least.
    fn shown_behind(&mut self, protocols: &[u8], least: u64) -> Result<Set, TooLarge> {
        let options = self.one_of(Field::Protocol, &OPTIONS)?;
        let short = self.store.cube(&Field::Transport.literals(8, 8, 0, 0xff))?;
        let options = self.store.and(options, short)?;
        let fragment = self.is(Field::Protocol, proto::FRAGMENT.into())?;
        let later = self.later(fragment)?;
        let first = self.store.minus(fragment, later)?;
        let one = self.store.or(options, first)?;
        let named = self.naming(protocols)?;
        let long = self.between(Field::Length, EXTENSION + least, u64::from(u16::MAX))?;
        let one = self.store.and(one, named)?;
        self.store.and(one, long)
    }

    /// IPv6's later fragments of what begins with one of these protocols.
    fn later_v6(&mut self, protocols: &[u8]) -> Result<Set, TooLarge> {
        let fragment = self.is(Field::Protocol, proto::FRAGMENT.into())?;
        let later = self.later(fragment)?;
        let named = self.naming(protocols)?;
        self.store.and(later, named)
    }

    /// Those with a Fragment header whose offset is not 0.
    fn later(&mut self, fragments: Set) -> Result<Set, TooLarge> {
        let first = self.store.cube(&Field::Transport.literals(16, 16, 0, 0xfff8))?;
        self.store.minus(fragments, first)
    }
}
