//! All packets there are, and the sets of them that rules and filters ask for: exact, however many.
//!
//! A packet here is one that a host may send: an IPv4 header has version 4 and at least five words, and a
//! packet is long enough for its headers and, where its protocol is unknown, for four bytes behind them.

use crate::sets::bdd::{Literal, Set, Store, TooLarge};
use crate::sets::field::{ByteBit, Field, Layout, View, byte_bit};
use std::collections::BTreeMap;
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, LinuxVersion};
use tidegate_policy::netfilter::{Condition, Connbytes, Connstate, Connstates, CountDirection, CountMode};
use tidegate_policy::{FilterOp, U32Key};

/// The states of a connection, in the order of their numbers in [`Field::State`].
pub(crate) const STATES: [Connstate; 5] =
    [Connstate::New, Connstate::Established, Connstate::Related, Connstate::Invalid, Connstate::Untracked];
/// Those that have a connection.
const CONNECTED: (u64, u64) = (0, 2);
/// Bytes of the least header behind the network header.
const LEAST: [(u8, u64); 4] = [(proto::TCP, 20), (proto::UDP, 8), (proto::ICMP, 8), (proto::ICMPV6, 8)];
/// The least bytes behind the IP header for all other protocols.
const LEAST_OTHER: u64 = 4;
/// Bytes of an ARP packet: the least of what is neither IPv4 nor IPv6.
const LEAST_STRANGE: u64 = 28;
/// Bits of [`Field::Carried`] for each way of counting.
const CARRIED_BITS: u16 = 8;

/// How the DS field was rewritten: `(ds & keep) ^ flip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rewrite {
    pub(crate) keep: u8,
    pub(crate) flip: u8,
}

impl Rewrite {
    /// It is as it came.
    pub(crate) const NONE: Rewrite = Rewrite { keep: 0xff, flip: 0 };

    /// And then these bits are cleared and those flipped.
    pub(crate) fn then(self, cleared: u8, flipped: u8) -> Rewrite {
        Rewrite { keep: self.keep & !cleared, flip: (self.flip & !cleared) ^ flipped }
    }
}

/// What is known of a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    pub(crate) holding: Set,
    /// Where it is known; elsewhere it does not hold, inverted or not.
    pub(crate) known: Set,
}

impl Truth {
    /// Of several conditions before the first is looked at, one of which has to hold: that of none at all is
    /// known of `of`.
    pub(crate) fn any_of<C>(several: &[C], of: Set) -> Truth {
        Truth { holding: Set::NONE, known: if several.is_empty() { of } else { Set::NONE } }
    }
}

/// The values of a policy by which packets are distinguished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    /// Devices that packets come in by; the first is any that is not named.
    pub(crate) inputs: Vec<String>,
    /// Marks that a connection may have.
    pub(crate) connmarks: Vec<u32>,
    /// For each way of counting a connection's bytes or packets, the bounds that conditions compare with, 0
    /// first.
    pub(crate) counted: Vec<(CountMode, CountDirection, Vec<u64>)>,
    /// The release of Linux whose rules of netfilter look at them.
    pub(crate) linux: LinuxVersion,
}

/// The packets there are.
pub(crate) struct Space {
    pub(crate) store: Store,
    pub(crate) words: Vocabulary,
    pub(crate) v4: Set,
    pub(crate) v6: Set,
    /// Those that are neither.
    pub(crate) other: Set,
    connected: Set,
}

/// What a u32 filter does with packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct U32Sets {
    /// It matches these.
    pub(crate) matched: Set,
    /// It reads a byte that these do not have: the filters of its preference behind it are not evaluated.
    pub(crate) ended: Set,
}

/// Where the offsets of u32 count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Bytes from the network header.
    pub(crate) base: i32,
    /// And to the header behind it, for offsets that count from there.
    pub(crate) next: i32,
    /// The words of the packets' IPv4 headers, where a filter has asked for them.
    pub(crate) words: Option<u8>,
}

impl Origin {
    /// The network header.
    pub(crate) const NETWORK: Origin = Origin { base: 0, next: 0, words: None };

    /// A key as it is from the network header.
    fn key(self, key: &U32Key) -> U32Key {
        let ahead = self.base.wrapping_add(self.next & key.offset_mask);
        U32Key { offset: key.offset.wrapping_add(ahead), offset_mask: 0, ..*key }
    }
}

impl Space {
    pub(crate) fn new(words: Vocabulary) -> Result<Space, TooLarge> {
        let none = Set::NONE;
        let mut space =
            Space { store: Store::default(), words, v4: none, v6: none, other: none, connected: none };
        let known = space.known_words()?;
        for (layout, into) in [(Layout::V4, 0), (Layout::V6, 1), (Layout::Other, 2)] {
            let formed = match layout {
                Layout::V6 => space.well_formed_v6()?,
                Layout::Other => space.well_formed_other()?,
                _ => space.well_formed_v4()?,
            };
            let set = space.store.and(formed, known)?;
            *[&mut space.v4, &mut space.v6, &mut space.other][into] = set;
        }
        space.connected = space.between(Field::State, CONNECTED.0, CONNECTED.1)?;
        Ok(space)
    }

    /// Packets whose connection is found by their own addresses and ports, where it is known: what follows a
    /// packet the other way, but for later fragments and what is behind other headers.
    pub(crate) fn answerable(&mut self) -> Result<Set, TooLarge> {
        let mut bare = self.store.cube(&Field::Fragment.literals(0, 16, 0, 0x1fff))?;
        bare = self.store.and(bare, self.v4)?;
        let mut plain = self.v6;
        for protocol in [0, 43, 44, 51, proto::DESTINATION_OPTIONS] {
            let other = self.is(Field::Protocol, protocol.into())?;
            plain = self.store.minus(plain, other)?;
        }
        let known = self.state(Connstates(Connstate::Established as u8))?;
        let whole = self.store.or(bare, plain)?;
        self.store.and(known, whole)
    }

    /// The set of all packets.
    pub(crate) fn all(&mut self) -> Result<Set, TooLarge> {
        let ip = self.store.or(self.v4, self.v6)?;
        self.store.or(ip, self.other)
    }

    /// Packets of more bytes than these, from the network header.
    pub(crate) fn longer_than(&mut self, bytes: i32) -> Result<Set, TooLarge> {
        let Ok(bytes) = u64::try_from(bytes) else { return self.all() };
        let mut longer = Set::NONE;
        for (formed, header) in [(self.v4, 0), (self.v6, V6_HEADER), (self.other, 0)] {
            let least = (bytes + 1).saturating_sub(header);
            let long = match least <= u64::from(u16::MAX) {
                true => self.between(Field::Length, least, u64::from(u16::MAX))?,
                false => Set::NONE,
            };
            let long = self.store.and(formed, long)?;
            longer = self.store.or(longer, long)?;
        }
        Ok(longer)
    }

    /// Those that netfilter knows a connection of.
    pub(crate) fn connected(&self) -> Set {
        self.connected
    }

    /// Where a field has this value.
    pub(crate) fn is(&mut self, field: Field, value: u128) -> Result<Set, TooLarge> {
        let literals = field.literals(0, field.width(), value, u128::MAX);
        self.store.cube(&literals)
    }

    /// Where a field's value is between these.
    pub(crate) fn between(&mut self, field: Field, low: u64, high: u64) -> Result<Set, TooLarge> {
        self.store.range(field.start(), field.width(), low, high)
    }

    /// Where the present DS field has this value in the bits of a mask.
    pub(crate) fn ds(&mut self, value: u8, mask: u8, rewrite: Rewrite) -> Result<Set, TooLarge> {
        // Bits that are the same for all packets match for all or for none.
        if (rewrite.flip ^ value) & mask & !rewrite.keep != 0 || value & !mask != 0 {
            return Ok(Set::NONE);
        }
        let literals =
            Field::Ds.literals(0, 8, u128::from(value ^ rewrite.flip), u128::from(mask & rewrite.keep));
        self.store.cube(&literals)
    }

    /// The packets that a filter of this protocol is evaluated for.
    pub(crate) fn protocol(&mut self, protocol: u16) -> Result<Set, TooLarge> {
        match protocol {
            FilterOp::ALL => Ok(Set::ALL),
            protocol => self.is(Field::Ethertype, u128::from(protocol)),
        }
    }

    /// What the keys of a u32 filter of this protocol ask for.
    pub(crate) fn u32(
        &mut self,
        protocol: u16,
        keys: &[U32Key],
        view: View,
        rewrite: Rewrite,
        origin: Origin,
    ) -> Result<U32Sets, TooLarge> {
        let mut sets = U32Sets { matched: Set::NONE, ended: Set::NONE };
        let keys: Vec<U32Key> = keys.iter().map(|key| origin.key(key)).collect();
        let deep = keys.iter().any(|key| key.offset > 16);
        let v4: &[Layout] = match origin.words {
            Some(5) => &[Layout::V4],
            Some(words) => &[Layout::V4Words(words)],
            None if deep => &[Layout::V4, Layout::V4Options],
            None => &[Layout::V4],
        };
        let deep = deep || origin.words.is_some();
        let layouts: Vec<Layout> = match protocol {
            ethertype::IPV4 => v4.to_vec(),
            ethertype::IPV6 => vec![Layout::V6],
            FilterOp::ALL => v4.iter().copied().chain([Layout::V6, Layout::Other]).collect(),
            _ => vec![Layout::Other],
        };
        for layout in layouts {
            let among = self.laid_out(layout, protocol, deep)?;
            let part = self.keys(layout, among, &keys, view, rewrite)?;
            sets.matched = self.store.or(sets.matched, part.matched)?;
            sets.ended = self.store.or(sets.ended, part.ended)?;
        }
        Ok(sets)
    }

    /// What is known of a condition on a packet's own bytes; `None`: it is about something else, or about the
    /// DS field, which may change on the way.
    pub(crate) fn condition(
        &mut self,
        what: &Condition,
        v6: bool,
        view: View,
    ) -> Result<Option<Truth>, TooLarge> {
        let set = match what {
            Condition::Comment(_) | Condition::Protocol(0) => Set::ALL,
            Condition::Protocol(number) => return self.carrying(*number, v6).map(Some),
            Condition::Source(net, bits) => self.within(view.source(), *net, *bits, v6)?,
            Condition::Destination(net, bits) => self.within(view.destination(), *net, *bits, v6)?,
            Condition::SourcePort(range) => return self.ports(&[*range], &[0], true, view, v6).map(Some),
            Condition::DestinationPort(range) => {
                return self.ports(&[*range], &[16], true, view, v6).map(Some);
            }
            Condition::SourcePorts(ranges) => return self.ports(ranges, &[0], false, view, v6).map(Some),
            Condition::DestinationPorts(ranges) => {
                return self.ports(ranges, &[16], false, view, v6).map(Some);
            }
            Condition::Ports(ranges) => return self.ports(ranges, &[0, 16], false, view, v6).map(Some),
            Condition::TcpFlags(mask, flags) => return self.tcp_flags(*mask, *flags, v6).map(Some),
            Condition::IcmpType(kind, codes) => return self.icmp(*kind, *codes, v6).map(Some),
            Condition::Length(low, high) => {
                let header = if v6 { 40 } else { 0 };
                let [low, high] = [*low, *high].map(|bound| u64::from(bound).checked_sub(header));
                match high {
                    Some(high) => self.between(Field::Length, low.unwrap_or(0), high)?,
                    None => Set::NONE,
                }
            }
            Condition::Connstate(_) | Condition::State(_) | Condition::Connbytes(_) => return Ok(None),
            Condition::Mark(..) | Condition::Connmark(..) | Condition::Dscp(_) | Condition::Tos(..) => {
                return Ok(None);
            }
            Condition::In(_) | Condition::Out(_) | Condition::Version6(_) | Condition::Any(_) => {
                return Ok(None);
            }
        };
        Ok(Some(Truth { holding: set, known: Set::ALL }))
    }

    /// The packets that came in by a device whose name fits.
    pub(crate) fn came_in(&mut self, fits: impl Fn(&str) -> bool) -> Result<Set, TooLarge> {
        let fitting: Vec<usize> =
            (0..self.words.inputs.len()).filter(|at| fits(&self.words.inputs[*at])).collect();
        let mut set = Set::NONE;
        for at in fitting {
            let one = self.is(Field::Input, at as u128)?;
            set = self.store.or(set, one)?;
        }
        Ok(set)
    }

    /// Packets that are this to their connection.
    pub(crate) fn state(&mut self, states: Connstates) -> Result<Set, TooLarge> {
        let mut set = Set::NONE;
        for (number, _) in (0..).zip(STATES).filter(|(_, state)| states.has(*state)) {
            let one = self.is(Field::State, number)?;
            set = self.store.or(set, one)?;
        }
        Ok(set)
    }

    /// Packets whose connection has carried so much.
    pub(crate) fn carried(&mut self, range: &Connbytes) -> Result<Set, TooLarge> {
        let known = |(mode, direction, _): &&(CountMode, CountDirection, Vec<u64>)| {
            (*mode, *direction) == (range.mode, range.direction)
        };
        let Some((at, group)) = self.words.counted.iter().enumerate().find(|(_, group)| known(group)) else {
            return Ok(Set::NONE);
        };
        let interval = |bound: u64| group.2.partition_point(|begin| *begin <= bound).saturating_sub(1) as u64;
        let (low, high) = (interval(range.from), interval(range.to));
        let start = Field::Carried.bit(at as u16 * CARRIED_BITS);
        let set = self.store.range(start, CARRIED_BITS, low, high)?;
        self.store.and(set, self.connected)
    }

    fn within(&mut self, field: Field, net: [u8; 16], bits: u8, v6: bool) -> Result<Set, TooLarge> {
        let (from, width) = if v6 { (0, 128) } else { (96, 32) };
        let bits = u16::from(bits).min(width);
        let mask = u128::MAX.checked_shl(u32::from(width - bits)).unwrap_or(0);
        let literals = field.literals(from, width, u128::from_be_bytes(net), mask);
        self.store.cube(&literals)
    }

    /// Packets of this layout that a filter of a protocol is evaluated for.
    fn laid_out(&mut self, layout: Layout, protocol: u16, deep: bool) -> Result<Set, TooLarge> {
        let set = match layout {
            Layout::V4 | Layout::V4Options | Layout::V4Words(_) => {
                self.is(Field::Ethertype, u128::from(ethertype::IPV4))?
            }
            Layout::V6 => self.is(Field::Ethertype, u128::from(ethertype::IPV6))?,
            Layout::Other if protocol == FilterOp::ALL => self.other,
            Layout::Other => self.is(Field::Ethertype, u128::from(protocol))?,
        };
        let words = if let Layout::V4Words(words) = layout { words } else { 5 };
        let plain = self.is(Field::Ihl, words.into())?;
        match layout {
            Layout::V4Words(_) => self.store.and(set, plain),
            Layout::V4 if deep => self.store.and(set, plain),
            Layout::V4Options => self.store.minus(set, plain),
            _ => Ok(set),
        }
    }

    /// What keys ask for among packets of one layout, one key after the other.
    fn keys(
        &mut self,
        layout: Layout,
        among: Set,
        keys: &[U32Key],
        view: View,
        rewrite: Rewrite,
    ) -> Result<U32Sets, TooLarge> {
        let mut literals = BTreeMap::new();
        let mut ended = Set::NONE;
        let mut possible = true;
        for key in keys {
            if let Some(long_enough) = self.present(layout, key.offset)? {
                let so_far = self.matched_so_far(among, possible, &literals)?;
                let short = self.store.minus(so_far, long_enough)?;
                ended = self.store.or(ended, short)?;
            }
            possible = possible && reaches(key.offset) && take_in(&mut literals, layout, key, view, rewrite);
        }
        let matched = self.matched_so_far(among, possible, &literals)?;
        Ok(U32Sets { matched: self.store.minus(matched, ended)?, ended })
    }

    fn matched_so_far(
        &mut self,
        among: Set,
        possible: bool,
        literals: &BTreeMap<u16, bool>,
    ) -> Result<Set, TooLarge> {
        if !possible {
            return Ok(Set::NONE);
        }
        let literals: Vec<Literal> = literals.iter().map(|(bit, value)| (*bit, *value)).collect();
        let cube = self.store.cube(&literals)?;
        self.store.and(among, cube)
    }

    /// Those packets of a layout that have the word at an offset; `None`: all.
    fn present(&mut self, layout: Layout, offset: i32) -> Result<Option<Set>, TooLarge> {
        if !reaches(offset) {
            return Ok(Some(Set::NONE));
        }
        let end = u64::try_from(offset + 4).unwrap_or(0);
        let (always, header) = match layout {
            Layout::V4 => (20 + LEAST_OTHER, 0),
            Layout::V4Options => (24 + LEAST_OTHER, 0),
            Layout::V4Words(words) => (4 * u64::from(words) + LEAST_OTHER, 0),
            Layout::V6 => (40 + LEAST_OTHER, 40),
            Layout::Other => (LEAST_STRANGE, 0),
        };
        if end <= always {
            return Ok(None);
        }
        self.between(Field::Length, end - header, u64::from(u16::MAX)).map(Some)
    }

    /// Numbers of values are below the number of values.
    fn known_words(&mut self) -> Result<Set, TooLarge> {
        let most = |words: usize| words.saturating_sub(1) as u64;
        let (inputs, connmarks) = (most(self.words.inputs.len()), most(self.words.connmarks.len()));
        let mut set = self.between(Field::Input, 0, inputs)?;
        let known = self.between(Field::Connmark, 0, connmarks)?;
        set = self.store.and(set, known)?;
        let known = self.between(Field::State, 0, most(STATES.len()))?;
        set = self.store.and(set, known)?;
        let groups: Vec<u64> = self.words.counted.iter().map(|group| most(group.2.len())).collect();
        for (at, last) in (0..).zip(groups) {
            let known = self.store.range(Field::Carried.bit(at * CARRIED_BITS), CARRIED_BITS, 0, last)?;
            set = self.store.and(set, known)?;
        }
        Ok(set)
    }

    fn well_formed_v4(&mut self) -> Result<Set, TooLarge> {
        let mut headers = Set::NONE;
        for words in 5..=15 {
            let long_enough = self.long_enough(4 * words)?;
            let is = self.is(Field::Ihl, u128::from(words))?;
            let one = self.store.and(is, long_enough)?;
            headers = self.store.or(headers, one)?;
        }
        let v4 = self.is(Field::Ethertype, u128::from(ethertype::IPV4))?;
        self.store.and(v4, headers)
    }

    fn well_formed_v6(&mut self) -> Result<Set, TooLarge> {
        let long_enough = self.long_enough(0)?;
        let v6 = self.is(Field::Ethertype, u128::from(ethertype::IPV6))?;
        self.store.and(v6, long_enough)
    }

    fn well_formed_other(&mut self) -> Result<Set, TooLarge> {
        let mut other = self.between(Field::Length, LEAST_STRANGE, u64::from(u16::MAX))?;
        for known in [ethertype::IPV4, ethertype::IPV6] {
            let ip = self.is(Field::Ethertype, u128::from(known))?;
            other = self.store.minus(other, ip)?;
        }
        // Hardware and protocol addresses of Ethernet and IPv4, with their lengths (RFC 826).
        let arp = self.is(Field::Ethertype, u128::from(ethertype::ARP))?;
        let front = Field::Other.literals(0, 48, 0x0001_0800_0604, u128::MAX);
        let front = self.store.cube(&front)?;
        let broken = self.store.minus(arp, front)?;
        self.store.minus(other, broken)
    }

    /// Packets whose length has room for so many bytes and the header of their protocol.
    fn long_enough(&mut self, bytes: u64) -> Result<Set, TooLarge> {
        let most = u64::from(u16::MAX);
        let mut set = self.between(Field::Length, bytes + LEAST_OTHER, most)?;
        for (number, least) in LEAST {
            let is = self.is(Field::Protocol, u128::from(number))?;
            let long = self.between(Field::Length, bytes + least, most)?;
            set = self.store.either(is, long, set)?;
        }
        Ok(set)
    }
}

/// Bytes of IPv6's header, which its length field does not count.
const V6_HEADER: u64 = 40;

/// Are bytes kept so far from the network header?
fn reaches(offset: i32) -> bool {
    let first = -(Head::ETHERNET as i32);
    (first..=(Head::NETWORK as i32 - 4)).contains(&offset) || offset == first - Head::HEADROOM
}

/// Adds a key's condition on packets of a layout; false: no packet meets it.
fn take_in(
    literals: &mut BTreeMap<u16, bool>,
    layout: Layout,
    key: &U32Key,
    view: View,
    rewrite: Rewrite,
) -> bool {
    // The engine compares the masked difference, so bits of the value outside the mask do not matter.
    (0..32).filter(|at| key.mask >> (31 - at) & 1 == 1).all(|at: u16| {
        let wanted = key.value >> (31 - at) & 1 == 1;
        match byte_bit(layout, view, key.offset + i32::from(at / 8), at % 8) {
            ByteBit::Fixed(value) => value == wanted,
            ByteBit::Bit(bit) => *literals.entry(bit).or_insert(wanted) == wanted,
            // Only where the first word is read does a rewritten DS field show: the bytes are as they came.
            ByteBit::Ds(bit) if key.offset == 0 => {
                let place = 7 - bit;
                let (kept, flipped) = (rewrite.keep >> place & 1 == 1, rewrite.flip >> place & 1 == 1);
                if !kept {
                    return flipped == wanted;
                }
                let before = wanted != flipped;
                *literals.entry(Field::Ds.bit(bit)).or_insert(before) == before
            }
            ByteBit::Ds(bit) => *literals.entry(Field::Ds.bit(bit)).or_insert(wanted) == wanted,
        }
    })
}
