//! Packets on their way in and out.

use crate::error::Error;
use crate::limits::MAX_LENGTH;
use std::net::IpAddr;
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Handle, Head, Time};
use tidegate_qdisc::DropReason;

/// A packet that is offered to a device.
///
/// ```
/// use tidegate_device::{OfferedPacket, PacketFields};
///
/// // 1,200 bytes of IP over Ethernet, from fields; or `OfferedPacket::from_bytes` from a frame.
/// let fields = PacketFields::udp("192.0.2.1:4433".parse()?, "198.51.100.7:50000".parse()?);
/// let packet = OfferedPacket::from_fields(7, fields, 14 + 1200);
/// assert_eq!((packet.id, packet.length), (7, 1214));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OfferedPacket<'p> {
    /// The caller's number for it, which comes back when the packet ends.
    pub id: u64,
    /// The bytes that it has on the device: Ethernet header, where the device has one, and IP packet, without
    /// FCS and preamble. At most [`MAX_LENGTH`] beside the Ethernet header.
    pub length: u32,
    /// The firewall mark (`skb->mark`), which `fw` filters read; 0: none.
    pub mark: u32,
    /// `skb->priority`: a band's number or a class id (`major << 16 | minor`); 0 for forwarded packets
    /// without one.
    pub priority: u32,
    /// What filters, hashes and AQMs read.
    pub(crate) header: Header<'p>,
}

/// Where the header bytes come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Header<'p> {
    Bytes(&'p [u8]),
    Fields(PacketFields),
}

impl<'p> OfferedPacket<'p> {
    /// A packet by its bytes from the Ethernet header on, or from the IP header on where the device has no
    /// Ethernet header. The first 128 bytes are kept; give all if filters rewrite packets, because checksums
    /// cover them.
    pub fn from_bytes(id: u64, bytes: &'p [u8], length: u32) -> OfferedPacket<'p> {
        OfferedPacket { id, length, mark: 0, priority: 0, header: Header::Bytes(bytes) }
    }

    /// A packet by its addresses: for simulators that have no header bytes.
    pub fn from_fields(id: u64, fields: PacketFields, length: u32) -> OfferedPacket<'p> {
        OfferedPacket { id, length, mark: 0, priority: 0, header: Header::Fields(fields) }
    }

    /// Its front, as a device with so long a link header has it.
    pub(crate) fn head(&self, link_header: u32) -> Result<Head, Error> {
        let refuse = |reason: String| Err(Error::Packet { reason });
        let least = link_header + 1;
        if !(least..=MAX_LENGTH + link_header).contains(&self.length) {
            let most = MAX_LENGTH + link_header;
            return refuse(format!("a length of {} bytes; this device has {least} to {most}", self.length));
        }
        match self.header {
            Header::Bytes(bytes) if bytes.len() as u64 > u64::from(self.length) => {
                refuse(format!("{} bytes of header in a packet of {}", bytes.len(), self.length))
            }
            Header::Bytes(bytes) if (bytes.len() as u32) < least => {
                refuse(format!("{} bytes of header; give {least} and more, or addresses", bytes.len()))
            }
            Header::Bytes(bytes) if link_header > 0 => Ok(Head::from_frame(bytes)),
            Header::Bytes(bytes) => {
                let kind = match bytes[0] >> 4 {
                    4 => ethertype::IPV4,
                    6 => ethertype::IPV6,
                    other => return refuse(format!("IP version {other}; only 4 and 6 are known")),
                };
                let mut head = Head::from_network(kind, bytes);
                head.set_summed();
                Ok(head)
            }
            Header::Fields(fields) => fields.head(self.length - link_header),
        }
    }
}

/// The fields of a packet from which a simulator's packet gets its header bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFields {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same IP version.
    pub destination: IpAddr,
    /// Source port, for TCP and UDP.
    pub source_port: u16,
    /// Destination port, for TCP and UDP.
    pub destination_port: u16,
    /// IP's protocol number: 6 TCP, 17 UDP.
    pub protocol: u8,
    /// The DS field: DSCP in the upper six bits, ECN in the lower two (0 not capable, 1 ECT(1), 2 ECT(0), 3
    /// CE).
    pub dsfield: u8,
}

impl PacketFields {
    /// A UDP datagram between these ends; not ECN-capable, and without a DSCP. Where the ends are of
    /// different IP versions, the device refuses the packet.
    pub fn udp(source: std::net::SocketAddr, destination: std::net::SocketAddr) -> PacketFields {
        PacketFields {
            source: source.ip(),
            destination: destination.ip(),
            source_port: source.port(),
            destination_port: destination.port(),
            protocol: proto::UDP,
            dsfield: 0,
        }
    }

    /// The header bytes of an IP packet with these fields; shorter packets have as much of it as fits.
    fn head(&self, network_len: u32) -> Result<Head, Error> {
        const TTL: u8 = 64;
        let transport_len = match self.protocol {
            proto::TCP => 20,
            proto::UDP => 8,
            _ => 0,
        };
        let mut bytes = Vec::with_capacity(60);
        let kind = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                bytes.extend([0x45, self.dsfield]);
                bytes.extend((network_len as u16).to_be_bytes());
                bytes.extend([0, 0, 0x40, 0, TTL, self.protocol, 0, 0]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
                ethertype::IPV4
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                bytes.extend([0x60 | self.dsfield >> 4, self.dsfield << 4, 0, 0]);
                bytes.extend((network_len.saturating_sub(40) as u16).to_be_bytes());
                bytes.extend([self.protocol, TTL]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
                ethertype::IPV6
            }
            _ => {
                let reason = format!("from {} to {}: not one IP version", self.source, self.destination);
                return Err(Error::Packet { reason });
            }
        };
        let least = bytes.len() + transport_len;
        if (network_len as usize) < least {
            let reason = format!("an IP packet of {network_len} bytes; its headers alone have {least}");
            return Err(Error::Packet { reason });
        }
        if transport_len > 0 {
            bytes.extend(self.source_port.to_be_bytes());
            bytes.extend(self.destination_port.to_be_bytes());
        }
        match self.protocol {
            proto::UDP => {
                bytes.extend(((network_len as usize - least + transport_len) as u16).to_be_bytes());
                bytes.extend([0, 0]);
            }
            // A segment with the ACK flag and a full window.
            proto::TCP => bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]),
            _ => {}
        }
        Ok(Head::from_network(kind, &bytes))
    }
}

/// A packet that a device sends: its bytes are the caller's to deliver.
#[derive(Clone, Debug)]
pub struct SentPacket {
    /// The caller's number for it.
    pub id: u64,
    /// Nothing else of this packet is in the device: no copy is reported later. See [`DroppedPacket::last`].
    pub last: bool,
    /// When it was offered.
    pub offered: Time,
    /// When the link has sent its last bit; the present time where the link is the caller's.
    pub finished: Time,
    /// Its length as it leaves, bytes.
    pub length: u32,
    /// Its DS field as it leaves: DSCP and ECN.
    pub dsfield: u8,
    /// The firewall mark as it leaves.
    pub mark: u32,
    /// `skb->priority` as it leaves.
    pub priority: u32,
    /// A queue marked congestion: the packet came without CE and leaves with it.
    pub marked: bool,
    /// Bytes of it were rewritten on the way (pedit, nat, netem's corruption): see [`SentPacket::header`].
    pub rewritten: bool,
    pub(crate) head: Head,
    pub(crate) ethernet: bool,
}

impl SentPacket {
    /// The front of the packet as it is on the wire, at most 128 bytes: marks and rewritten bytes included.
    pub fn header(&self) -> &[u8] {
        if self.ethernet { self.head.frame() } else { self.head.network() }
    }
}

/// A packet that a device dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedPacket {
    /// The caller's number for it.
    pub id: u64,
    /// Nothing else of this packet is in the device. Where a queue duplicates packets (netem), each copy ends
    /// on its own, and the last to end has this set: then what the caller keeps for the packet can be freed.
    pub last: bool,
    /// When it was offered.
    pub offered: Time,
    /// When it was dropped.
    pub dropped: Time,
    /// Its length, bytes.
    pub length: u32,
    /// Why.
    pub cause: DropCause,
    /// The qdisc that dropped it; [`Handle::NONE`]: one without a handle, or none.
    pub qdisc: Handle,
}

/// Why a device dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropCause {
    /// The queue was full when it came.
    Full = 1,
    /// The queue was full, and this packet, which waited, made room.
    Overflow = 2,
    /// The queue's AQM signalled congestion.
    Aqm = 3,
    /// A filter, an action or the lack of a class.
    Filter = 4,
    /// Its queue was deleted, emptied or made smaller by a command, or its hash key changed.
    Purged = 5,
    /// Longer than the shaper's bucket can ever hold.
    TooLong = 6,
    /// An acknowledgement that a later one replaces (CAKE's ACK filter).
    Superseded = 7,
}

impl DropCause {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            DropCause::Full => "full",
            DropCause::Overflow => "overflow",
            DropCause::Aqm => "aqm",
            DropCause::Filter => "filter",
            DropCause::Purged => "purged",
            DropCause::TooLong => "too_long",
            DropCause::Superseded => "superseded",
        }
    }

    pub(crate) fn of(why: DropReason) -> DropCause {
        match why {
            DropReason::Full => DropCause::Full,
            DropReason::Overflow => DropCause::Overflow,
            DropReason::Codel | DropReason::Early => DropCause::Aqm,
            DropReason::TooLong => DropCause::TooLong,
            DropReason::Unclassified
            | DropReason::Policy
            | DropReason::Netfilter
            | DropReason::NetfilterLeaving => DropCause::Filter,
            DropReason::Purged(_)
            | DropReason::PurgedAtOnce
            | DropReason::PurgedUnseen
            | DropReason::Rehash => DropCause::Purged,
            DropReason::Superseded => DropCause::Superseded,
        }
    }
}
