//! The parameters in force.

use super::{Unread, numbers};
use crate::attribute::{Found, read};
use tidegate_packet::Rate;
use tidegate_policy::{
    ClassParams, FifoParams, HtbClassParams, HtbParams, Kind, LinkLayer, PrioParams, QdiscParams, RateSpec, SizeTable,
    TbfParams, Ticks,
};

/// Octets of a rate (`tc_ratespec`).
const SPEC: usize = 12;

/// Those of a qdisc.
pub(super) fn qdisc(kind: Kind, options: &[u8]) -> Result<QdiscParams, Unread> {
    Ok(match kind {
        Kind::Pfifo | Kind::Bfifo | Kind::PfifoHeadDrop => {
            QdiscParams::Fifo(FifoParams { limit: numbers(options).first().copied() })
        }
        Kind::PfifoFast => QdiscParams::PfifoFast,
        Kind::Noqueue => QdiscParams::Noqueue,
        Kind::Ingress | Kind::Clsact => QdiscParams::Ingress,
        Kind::Prio => QdiscParams::Prio(prio(options).ok_or(Unread::Odd("prio"))?),
        Kind::Tbf => QdiscParams::Tbf(tbf(&read(options)).ok_or(Unread::Odd("tbf"))?),
        Kind::Htb => QdiscParams::Htb(htb(&read(options)).ok_or(Unread::Odd("htb"))?),
        other => return Err(Unread::Kind(other.name().to_owned())),
    })
}

fn prio(options: &[u8]) -> Option<PrioParams> {
    let priomap = options.get(4..20)?.try_into().ok()?;
    Some(PrioParams { bands: *numbers(options).first()?, priomap })
}

fn tbf(options: &Found<'_>) -> Option<TbfParams> {
    let octets = options.get(1)?;
    let rest = numbers(octets.get(2 * SPEC..)?);
    let peak = rate(octets.get(SPEC..)?, options.u64(5))?;
    Some(TbfParams {
        rate: rate(octets, options.u64(4))?,
        peak: (peak.rate.0 > 0).then_some(peak),
        limit: *rest.first()?,
        burst: 0,
        peak_burst: 0,
        buffer: Ticks(*rest.get(1)?),
        peak_buffer: Ticks(*rest.get(2)?),
    })
}

fn htb(options: &Found<'_>) -> Option<HtbParams> {
    let global = numbers(options.get(2)?);
    Some(HtbParams { default: *global.get(2)?, r2q: *global.get(1)?, direct_qlen: options.u32(5) })
}

/// Packets that htb sent past all its classes.
pub(super) fn direct_packets(options: &[u8]) -> u32 {
    numbers(read(options).get(2).unwrap_or_default()).get(4).copied().unwrap_or(0)
}

/// Those of a class; beside them the level of htb's.
pub(super) fn class(kind: Kind, options: &[u8]) -> Result<(ClassParams, u32), Unread> {
    match kind {
        Kind::Prio | Kind::Tbf | Kind::Ingress | Kind::Clsact => Ok((ClassParams::None, 0)),
        Kind::Htb => {
            let (params, level) = htb_class(&read(options)).ok_or(Unread::Odd("a class of htb"))?;
            Ok((ClassParams::Htb(params), level))
        }
        other => Err(Unread::Kind(other.name().to_owned())),
    }
}

fn htb_class(options: &Found<'_>) -> Option<(HtbClassParams, u32)> {
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
    Some((params, *level))
}

fn layer(number: u8) -> LinkLayer {
    if number & 15 == 2 { LinkLayer::Atm } else { LinkLayer::Ethernet }
}

/// A rate (`tc_ratespec`), or what is told beside it because 32 bits are too few.
fn rate(octets: &[u8], wide: Option<u64>) -> Option<RateSpec> {
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
