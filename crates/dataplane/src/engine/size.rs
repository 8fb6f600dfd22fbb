//! How long packets and rates are, as tc counts them.

use crate::packet_io::Came;
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Rate};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{ClassParams, QdiscParams};

/// Bytes of a TCP header's length field, and of UDP's header.
const TCP_OFFSET: usize = 12;
const UDP_HEADER: usize = 8;

/// Bytes of a packet, link header included, with the headers that each segment of a super-packet will have:
/// what Linux counts (`qdisc_pkt_len`).
pub(super) fn counted(came: &Came<'_>, head: &Head) -> u32 {
    match came.segments {
        0 | 1 => came.len,
        more => came.len + (more - 1) * (came.link_header + headers(head)),
    }
}

/// Bytes of network and transport header.
fn headers(head: &Head) -> u32 {
    let bytes = head.network();
    let at = |place: usize| usize::from(bytes.get(place).copied().unwrap_or(0));
    let (network, protocol) = match head.ethertype() {
        ethertype::IPV6 => (40, at(6)),
        _ => ((at(0) & 15) * 4, at(9)),
    };
    let transport = match protocol as u8 {
        proto::TCP => (at(network + TCP_OFFSET) >> 4) * 4,
        _ => UDP_HEADER,
    };
    (network + transport) as u32
}

/// The highest rate that a device's qdiscs allow, by their parameters; `None`: nothing there limits the rate.
pub fn link_rate(qdiscs: &[QdiscDump], classes: &[ClassDump]) -> Option<Rate> {
    let of_qdiscs = qdiscs.iter().filter_map(|dump| match &dump.params {
        QdiscParams::Tbf(tbf) => Some(tbf.rate.rate),
        QdiscParams::Cake(cake) => cake.bandwidth,
        QdiscParams::Netem(netem) => netem.rate.as_ref().map(|rate| Rate(rate.rate)),
        _ => None,
    });
    let of_classes = classes.iter().filter_map(|dump| match &dump.params {
        ClassParams::Htb(htb) => Some(htb.ceil.rate),
        ClassParams::Hfsc(hfsc) => hfsc.ul.or(hfsc.ls).map(|curve| Rate(u64::from(curve.m2))),
        _ => None,
    });
    of_qdiscs.chain(of_classes).filter(|rate| *rate > Rate::default()).max()
}
