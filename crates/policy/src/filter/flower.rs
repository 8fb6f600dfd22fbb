//! flower: by fields of the headers.

use super::parts::Indev;
use alloc::vec::Vec;
use tidegate_packet::Handle;

/// flower: packets are classified by fields of their headers (tc-flower(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowerParams {
    /// Where matching packets go.
    pub classid: Option<Handle>,
    /// The device that packets must have come in by.
    pub indev: Option<Indev>,
    /// What is compared, in the order of [`FlowerField`], each field once.
    pub keys: Vec<FlowerKey>,
    /// Packets are not shown to it: it is for a card alone.
    pub skip_sw: bool,
    /// It is for software alone.
    pub skip_hw: bool,
}

/// A field and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowerKey {
    /// The field that is compared.
    pub field: FlowerField,
    /// Its value; of a range, the lowest.
    pub value: u128,
    /// The bits compared; of a range, the highest value.
    pub mask: u128,
    /// From `value` to `mask`: of ports only.
    pub range: bool,
}

/// A field of a header, in the order in which tc lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowerField {
    /// How many tags.
    NumVlans,
    /// The outer tag's number.
    VlanId,
    /// The priority bits (PCP) of the outer VLAN tag.
    VlanPrio,
    /// The protocol behind the outer tag.
    VlanEthtype,
    /// The inner tag's number.
    CvlanId,
    /// The priority bits (PCP) of the inner VLAN tag.
    CvlanPrio,
    /// The protocol behind the inner tag.
    CvlanEthtype,
    /// Destination on the link.
    DstMac,
    /// Source on the link.
    SrcMac,
    /// The protocol of the network.
    EthType,
    /// The protocol behind the network header.
    IpProto,
    /// The DS field.
    IpTos,
    /// The time to live, or hop limit.
    IpTtl,
    /// Destination, IPv4 in 32 bits, IPv6 in 128.
    DstIp,
    /// Source.
    SrcIp,
    /// Destination port.
    DstPort,
    /// Source port.
    SrcPort,
    /// TCP's flags, 12 bits.
    TcpFlags,
    /// ICMP's type.
    IcmpType,
    /// ICMP's code.
    IcmpCode,
    /// ARP's sender's address.
    ArpSip,
    /// ARP's target's address.
    ArpTip,
    /// What ARP does.
    ArpOp,
    /// ARP's sender's address on the link.
    ArpSha,
    /// ARP's target's address on the link.
    ArpTha,
    /// Is it a fragment (1)? The first one (2)?
    IpFlags,
    /// What it is to its connection: new (1), established (2), related (4), looked up (8), invalid (16), an
    /// answer (32).
    CtState,
    /// Its connection's mark.
    CtMark,
}

impl FlowerField {
    /// How many bits it has; addresses have those of IPv6.
    pub const fn bits(self) -> u32 {
        use FlowerField::{
            ArpOp, ArpSha, ArpSip, ArpTha, ArpTip, CtMark, CtState, CvlanEthtype, CvlanId, CvlanPrio, DstIp,
            DstMac, EthType, IpFlags, SrcIp, SrcMac, TcpFlags, VlanEthtype, VlanId, VlanPrio,
        };
        match self {
            VlanPrio | CvlanPrio => 3,
            VlanId | CvlanId | TcpFlags => 12,
            DstMac | SrcMac | ArpSha | ArpTha => 48,
            EthType | VlanEthtype | CvlanEthtype | FlowerField::DstPort | FlowerField::SrcPort => 16,
            CtState => 16,
            ArpSip | ArpTip | IpFlags | CtMark => 32,
            DstIp | SrcIp => 128,
            FlowerField::NumVlans
            | FlowerField::IpProto
            | FlowerField::IpTos
            | FlowerField::IpTtl
            | FlowerField::IcmpType
            | FlowerField::IcmpCode
            | ArpOp => 8,
        }
    }

    /// All its bits.
    pub const fn all(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }
}

impl FlowerKey {
    /// Is it an address of which no bit is compared (`src_ip 0/0`)? Where no other address is compared, Linux
    /// requires that the packet has addresses of that kind, without having read which it has, and the filter
    /// matches nothing (6.1 and 7.2 were asked). Beside another address such a key is left out.
    pub const fn never_holds(&self) -> bool {
        self.mask == 0 && !self.range && matches!(self.field, FlowerField::SrcIp | FlowerField::DstIp)
    }
}

impl FlowerParams {
    /// The key of a field.
    pub fn key(&self, field: FlowerField) -> Option<&FlowerKey> {
        self.keys.iter().find(|key| key.field == field)
    }

    /// Sets the comparison of a field; one that was set before is replaced. One that compares no bit is left
    /// out, as in Linux; an address of which no bit is compared stays ([`FlowerKey::never_holds`]).
    pub fn set(&mut self, key: FlowerKey) {
        self.keys.retain(|known| known.field != key.field);
        if key.mask == 0 && !key.range && !key.never_holds() {
            return;
        }
        let at = self.keys.partition_point(|known| known.field < key.field);
        self.keys.insert(at, key);
    }
}
