//! The parameters in force, by kind.

use super::qdisc::{self};
use super::{Unread, numbers};
use tidegate_os::attribute::{Found, read};
use tidegate_packet::Rate;
use tidegate_policy::{
    ClassParams, DrrClassParams, EtsClassParams, FifoParams, HfscClassParams, HfscParams, HtbClassParams, Kind,
    LinkLayer, QdiscParams, QfqClassParams, RateSpec, ServiceCurve, SizeTable, SkbprioParams, Ticks,
};

/// Octets of a rate (`tc_ratespec`).
pub(super) const SPEC: usize = 12;

/// Those of a qdisc.
pub(super) fn qdisc(kind: Kind, options: &[u8]) -> Result<QdiscParams, Unread> {
    let found = read(options);
    let known = match kind {
        Kind::Pfifo | Kind::Bfifo | Kind::PfifoHeadDrop => {
            Some(QdiscParams::Fifo(FifoParams { limit: numbers(options).first().copied() }))
        }
        Kind::Skbprio => Some(QdiscParams::Skbprio(SkbprioParams { limit: numbers(options).first().copied() })),
        Kind::PfifoFast => Some(QdiscParams::PfifoFast),
        Kind::Noqueue => Some(QdiscParams::Noqueue),
        Kind::Ingress | Kind::Clsact => Some(QdiscParams::Ingress),
        Kind::Drr => Some(QdiscParams::Drr),
        Kind::Qfq => Some(QdiscParams::Qfq),
        Kind::Hfsc => {
            options.get(..2).map(|two| QdiscParams::Hfsc(HfscParams { default: u16::from_ne_bytes([two[0], two[1]]) }))
        }
        Kind::Prio => qdisc::prio(options).map(QdiscParams::Prio),
        Kind::Sfq => qdisc::sfq(options).map(QdiscParams::Sfq),
        Kind::Tbf => qdisc::tbf(&found).map(QdiscParams::Tbf),
        Kind::Htb => qdisc::htb(&found).map(QdiscParams::Htb),
        Kind::Codel => Some(QdiscParams::Codel(qdisc::codel(&found))),
        Kind::FqCodel => Some(QdiscParams::FqCodel(qdisc::fq_codel(&found))),
        Kind::Pie => Some(QdiscParams::Pie(qdisc::pie(&found))),
        Kind::FqPie => Some(QdiscParams::FqPie(qdisc::fq_pie(&found))),
        Kind::DualPi2 => Some(QdiscParams::DualPi2(qdisc::dualpi2(&found))),
        Kind::Ets => Some(QdiscParams::Ets(qdisc::ets(&found))),
        Kind::Fq => Some(QdiscParams::Fq(qdisc::fq(&found))),
        Kind::Hhf => Some(QdiscParams::Hhf(qdisc::hhf(&found))),
        Kind::Cake => qdisc::cake(&found).map(|params| QdiscParams::Cake(Box::new(params))),
        Kind::Netem => qdisc::netem(options).map(|params| QdiscParams::Netem(Box::new(params))),
        Kind::Red => qdisc::red(&found, true).map(QdiscParams::Red),
        Kind::Choke => qdisc::red(&found, false).map(QdiscParams::Choke),
        Kind::Sfb => qdisc::sfb(&found).map(QdiscParams::Sfb),
        Kind::Gred => qdisc::gred(&found).map(QdiscParams::Gred),
    };
    known.ok_or(Unread::Odd(kind.name()))
}

/// Packets that htb sent past all its classes.
pub(super) fn direct_packets(options: &[u8]) -> u32 {
    numbers(read(options).get(2).unwrap_or_default()).get(4).copied().unwrap_or(0)
}

/// Those of a class; beside them the level of htb's.
pub(super) fn class(kind: Kind, options: &[u8]) -> Result<(ClassParams, u32), Unread> {
    let found = read(options);
    let params = match kind {
        Kind::Htb => return htb_class(&found).ok_or(Unread::Odd("a class of htb")),
        Kind::Drr => ClassParams::Drr(DrrClassParams { quantum: found.u32(1) }),
        Kind::Qfq => ClassParams::Qfq(QfqClassParams { weight: found.u32(1), maxpkt: found.u32(2) }),
        Kind::Ets => ClassParams::Ets(EtsClassParams { quantum: found.u32(4) }),
        Kind::Hfsc => {
            let [rt, ls, ul] = [1, 2, 3].map(|number| curve(&found, number));
            ClassParams::Hfsc(HfscClassParams { rt, ls, ul })
        }
        _ => ClassParams::None,
    };
    Ok((params, 0))
}

fn curve(found: &Found<'_>, number: u16) -> Option<ServiceCurve> {
    match numbers(found.get(number)?).as_slice() {
        [m1, d_us, m2] => Some(ServiceCurve { m1: *m1, d_us: *d_us, m2: *m2 }),
        _ => None,
    }
}

fn htb_class(options: &Found<'_>) -> Option<(ClassParams, u32)> {
    let octets = options.get(1)?;
    let rest = numbers(octets.get(2 * SPEC..)?);
    let [buffer, cbuffer, quantum, level, prio] = rest.as_slice() else { return None };
    let params = HtbClassParams {
        rate: rate(octets, options.u64(6))?,
        ceil: rate(octets.get(SPEC..)?, options.u64(7))?,
        buffer: Ticks(*buffer),
        cbuffer: Ticks(*cbuffer),
        quantum: *quantum,
        prio: *prio,
    };
    Some((ClassParams::Htb(params), *level))
}

fn layer(number: u8) -> LinkLayer {
    if number & 15 == 2 { LinkLayer::Atm } else { LinkLayer::Ethernet }
}

/// A rate (`tc_ratespec`), or what is told beside it because 32 bits are too few.
pub(super) fn rate(octets: &[u8], wide: Option<u64>) -> Option<RateSpec> {
    let octets = octets.get(..SPEC)?;
    let narrow = u32::from_ne_bytes([octets[8], octets[9], octets[10], octets[11]]);
    Some(RateSpec {
        rate: Rate(wide.unwrap_or_else(|| narrow.into())),
        overhead: u16::from_ne_bytes([octets[2], octets[3]]),
        mpu: u16::from_ne_bytes([octets[6], octets[7]]),
        linklayer: layer(octets[1]),
    })
}

/// A table of sizes; the kernel does not tell its entries.
pub(super) fn size_table(options: &[u8]) -> SizeTable {
    let base = read(options).get(1).unwrap_or_default();
    let (head, rest) = (base.get(..4).unwrap_or(&[0; 4]), numbers(base.get(4..).unwrap_or_default()));
    let at = |place: usize| rest.get(place).copied().unwrap_or(0);
    SizeTable {
        overhead: at(0) as i32,
        mpu: at(2),
        mtu: at(3),
        tsize: at(4),
        linklayer: layer(at(1) as u8),
        linklayer_stated: at(1) != 0,
        cell_align: i16::from_ne_bytes([head[2], head[3]]),
        cell_log: head[0],
        size_log: head[1],
        data: Vec::new(),
    }
}
