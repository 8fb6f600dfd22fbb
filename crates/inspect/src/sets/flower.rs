//! The sets of packets that flower asks for, as far as they can be known.

use crate::sets::bdd::{Literal, Set, TooLarge};
use crate::sets::carried::{OPTIONS, WITH_PORTS};
use crate::sets::field::{Field, View};
use crate::sets::set::{Rewrite, Space};
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::{FlowerField, FlowerKey};

/// Protocols of which it reads other bytes as ports.
const STRANGE_PORTS: [u8; 2] = [50, 51];
/// What it looks into for the packet inside.
const WRAPPED: [u16; 3] = [ethertype::VLAN, ethertype::QINQ, ethertype::PPPOE];
/// Bytes of IPv6's Fragment header: of a shorter one nothing is read.
const FRAGMENT_HEADER: u64 = 8;
/// The bits of IPv4's fragment word that make it a fragment, and those of the first.
const FRAGMENT: (u128, u128) = (0x3fff, 0x2000);

/// What is known of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sure {
    /// It matches these.
    pub(crate) sure: Set,
    /// Whether it matches these is not known.
    pub(crate) maybe: Set,
}

/// Where a field is read.
struct Read {
    /// The packets that have it.
    having: Set,
    /// Those of them whose value is compared as wanted.
    holding: Set,
    /// Those of which that is not known.
    unknown: Set,
}

impl Space {
    /// The packets that meet all keys.
    pub(crate) fn flower(
        &mut self,
        keys: &[FlowerKey],
        view: View,
        rewrite: Rewrite,
    ) -> Result<Sure, TooLarge> {
        let (mut sure, mut possible) = (Set::ALL, Set::ALL);
        let wrapped = self.one_of(Field::Ethertype, &WRAPPED)?;
        if keys.iter().any(FlowerKey::never_holds) {
            return Ok(Sure { sure: Set::NONE, maybe: Set::NONE });
        }
        for key in keys {
            let Read { having, holding, unknown } = self.read(key, view, rewrite)?;
            let unknown = self.store.or(unknown, wrapped)?;
            // Of a packet that has no such field 0 is compared.
            let zero = if key.range { key.value == 0 } else { key.value & key.mask == 0 };
            let holding = if zero {
                let others = self.store.minus(Set::ALL, having)?;
                let holding = self.store.and(holding, having)?;
                self.store.or(holding, others)?
            } else {
                self.store.and(holding, having)?
            };
            let known = self.store.minus(holding, unknown)?;
            sure = self.store.and(sure, known)?;
            let either = self.store.or(holding, unknown)?;
            possible = self.store.and(possible, either)?;
        }
        Ok(Sure { sure, maybe: self.store.minus(possible, sure)? })
    }

    fn read(&mut self, key: &FlowerKey, view: View, rewrite: Rewrite) -> Result<Read, TooLarge> {
        use FlowerField as F;
        let none = Set::NONE;
        let ip = self.store.or(self.v4, self.v6)?;
        let in_front = self.one_of(Field::Protocol, &OPTIONS)?;
        let in_front = self.store.and(in_front, self.v6)?;
        Ok(match key.field {
            F::EthType | F::VlanEthtype => {
                Read { having: Set::ALL, holding: self.compared(key, Field::Ethertype, 0)?, unknown: none }
            }
            F::NumVlans | F::VlanId | F::VlanPrio | F::CvlanId | F::CvlanPrio | F::CvlanEthtype => {
                Read { having: none, holding: none, unknown: none }
            }
            F::IpProto => {
                let (plain, fragments) = (self.compared(key, Field::Protocol, 0)?, self.v6_fragments()?);
                // The Fragment header begins with the protocol of what it is a fragment of.
                let carried = self.compared(key, Field::Transport, 0)?;
                let holding = self.store.either(fragments, carried, plain)?;
                Read { having: ip, holding, unknown: in_front }
            }
            F::IpTos if !key.range => {
                let (value, mask) = ((key.value & key.mask) as u8, key.mask as u8);
                Read { having: ip, holding: self.ds(value, mask, rewrite)?, unknown: none }
            }
            F::IpTtl => Read { having: ip, holding: self.compared(key, Field::Ttl, 0)?, unknown: none },
            F::SrcIp => self.address(key, view.source())?,
            F::DstIp => self.address(key, view.destination())?,
            F::SrcPort => self.behind(key, &WITH_PORTS, view.transport(0), in_front)?,
            F::DstPort => self.behind(key, &WITH_PORTS, view.transport(16), in_front)?,
            F::TcpFlags => self.behind(key, &[proto::TCP], Field::Transport.bit(100), in_front)?,
            F::IcmpType | F::IcmpCode => {
                let at = Field::Transport.bit(if key.field == F::IcmpType { 0 } else { 8 });
                self.behind(key, &[proto::ICMP, proto::ICMPV6], at, in_front)?
            }
            F::IpFlags => self.fragments(key, in_front)?,
            F::ArpOp => self.arp(key, 7)?,
            F::ArpSha => self.arp(key, 8)?,
            F::ArpSip => self.arp(key, 14)?,
            F::ArpTha => self.arp(key, 18)?,
            F::ArpTip => self.arp(key, 24)?,
            // What tracking found, and a link header that not all devices have.
            F::IpTos | F::CtState | F::CtMark | F::DstMac | F::SrcMac => {
                Read { having: none, holding: none, unknown: Set::ALL }
            }
        })
    }

    /// Where a field has one of several values.
    pub(super) fn one_of<T: Copy + Into<u128>>(
        &mut self,
        field: Field,
        values: &[T],
    ) -> Result<Set, TooLarge> {
        let mut set = Set::NONE;
        for value in values {
            let one = self.is(field, (*value).into())?;
            set = self.store.or(set, one)?;
        }
        Ok(set)
    }

    /// Where the bits of a field from one on are compared as a key wants.
    fn compared(&mut self, key: &FlowerKey, field: Field, from: u16) -> Result<Set, TooLarge> {
        self.compared_at(key, field.bit(from))
    }

    fn compared_at(&mut self, key: &FlowerKey, start: u16) -> Result<Set, TooLarge> {
        let width = key.field.bits() as u16;
        if key.range {
            let bound = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
            return self.store.range(start, width, bound(key.value), bound(key.mask));
        }
        let wanted = (0..width).rev().filter(|place| key.mask >> place & 1 == 1);
        let literals: Vec<Literal> =
            wanted.map(|place| (start + width - 1 - place, key.value >> place & 1 == 1)).collect();
        self.store.cube(&literals)
    }

    fn address(&mut self, key: &FlowerKey, field: Field) -> Result<Read, TooLarge> {
        let ip = self.store.or(self.v4, self.v6)?;
        let long = self.compared(key, field, 0)?;
        // An address of 32 bits has none above.
        let short = if (key.value & key.mask) >> 32 != 0 {
            Set::NONE
        } else {
            self.store.cube(&field.literals(96, 32, key.value, key.mask))?
        };
        let (short, long) = (self.store.and(short, self.v4)?, self.store.and(long, self.v6)?);
        Ok(Read { having: ip, holding: self.store.or(short, long)?, unknown: Set::NONE })
    }

    /// A field of the header behind the network header, which no fragment shows.
    fn behind(
        &mut self,
        key: &FlowerKey,
        protocols: &[u8],
        start: u16,
        in_front: Set,
    ) -> Result<Read, TooLarge> {
        let ip = self.store.or(self.v4, self.v6)?;
        let with = self.one_of(Field::Protocol, protocols)?;
        let with = self.store.and(with, ip)?;
        let whole = self.store.cube(&Field::Fragment.literals(0, 16, 0, FRAGMENT.0))?;
        let whole = self.store.or(whole, self.v6)?;
        let strange = self.one_of(Field::Protocol, &STRANGE_PORTS)?;
        let strange = self.store.and(strange, ip)?;
        Ok(Read {
            having: self.store.and(with, whole)?,
            holding: self.compared_at(key, start)?,
            unknown: self.store.or(strange, in_front)?,
        })
    }

    /// Whether a packet is a fragment (1), and the first one (2).
    fn fragments(&mut self, key: &FlowerKey, in_front: Set) -> Result<Read, TooLarge> {
        let v6_any = self.v6_fragments()?;
        let v6_first = self.store.cube(&Field::Transport.literals(16, 16, 0, 0xfff8))?;
        let v4_whole = self.store.cube(&Field::Fragment.literals(0, 16, 0, FRAGMENT.0))?;
        let v4_first = self.store.cube(&Field::Fragment.literals(0, 16, FRAGMENT.1, FRAGMENT.0))?;
        let v4_any = self.store.minus(Set::ALL, v4_whole)?;
        let any = self.store.either(self.v6, v6_any, v4_any)?;
        let first = self.store.either(self.v6, v6_first, v4_first)?;
        let whole = self.store.minus(Set::ALL, any)?;
        let first = self.store.and(any, first)?;
        let later = self.store.minus(any, first)?;
        let mut holding = Set::NONE;
        for (flags, set) in [(0, whole), (1, later), (3, first)] {
            if (flags ^ key.value) & key.mask == 0 {
                holding = self.store.or(holding, set)?;
            }
        }
        Ok(Read { having: self.store.or(self.v4, self.v6)?, holding, unknown: in_front })
    }

    /// IPv6 packets with a whole Fragment header right behind theirs.
    fn v6_fragments(&mut self) -> Result<Set, TooLarge> {
        let named = self.is(Field::Protocol, proto::FRAGMENT.into())?;
        let whole = self.between(Field::Length, FRAGMENT_HEADER, u64::from(u16::MAX))?;
        let whole = self.store.and(named, whole)?;
        self.store.and(whole, self.v6)
    }

    fn arp(&mut self, key: &FlowerKey, byte: u16) -> Result<Read, TooLarge> {
        let arp = self.is(Field::Ethertype, ethertype::ARP.into())?;
        Ok(Read {
            having: self.store.and(arp, self.other)?,
            holding: self.compared(key, Field::Other, byte * 8)?,
            unknown: Set::NONE,
        })
    }
}
