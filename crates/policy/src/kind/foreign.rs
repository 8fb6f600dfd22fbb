//! Classes changed with the words of another kind.
//!
//! The kernel does not compare the kind that a command on a class names with that of the qdisc: it reads the
//! attributes, which are distinguished by their numbers alone, as that qdisc's own. So the weight of a QFQ
//! class becomes the quantum of a DRR class.

use super::drr::DrrClassParams;
use super::hfsc::{HfscClassParams, ServiceCurve};
use super::htb::HtbClassParams;
use super::name::Kind;
use super::params::ClassParams;
use super::qfq::QfqClassParams;
use crate::error::{Errno, TcError};
use crate::rate::{LinkLayer, RateSpec, Ticks};
use alloc::vec;
use alloc::vec::Vec;

/// An attribute: its number, and as many of its 32-bit words as another kind reads at most.
struct Attribute {
    number: u16,
    words: Vec<u32>,
}

impl ClassParams {
    /// The kind whose words these are.
    pub const fn kind(&self) -> Option<Kind> {
        match self {
            ClassParams::None => None,
            ClassParams::Htb(_) => Some(Kind::Htb),
            ClassParams::Drr(_) => Some(Kind::Drr),
            ClassParams::Hfsc(_) => Some(Kind::Hfsc),
            ClassParams::Qfq(_) => Some(Kind::Qfq),
            ClassParams::Ets(_) => Some(Kind::Ets),
        }
    }

    /// What a qdisc of `kind` reads in these words; none where nothing but its own words make sense to it.
    ///
    /// # Errors
    /// As the kernel refuses attributes whose length is not what the kind has under that number.
    pub fn read_by(&self, kind: Kind) -> Result<Option<ClassParams>, TcError> {
        let sent = attributes(self);
        Ok(Some(match kind {
            Kind::Drr => ClassParams::Drr(DrrClassParams { quantum: number(&sent, 1)? }),
            Kind::Qfq => {
                ClassParams::Qfq(QfqClassParams { weight: number(&sent, 1)?, maxpkt: number(&sent, 2)? })
            }
            Kind::Hfsc => ClassParams::Hfsc(HfscClassParams {
                rt: curve(&sent, 1)?,
                ls: curve(&sent, 2)?,
                ul: curve(&sent, 3)?,
            }),
            Kind::Htb if sent.iter().any(|attribute| attribute.number <= 2) => {
                return Err(TcError::bare(Errno::Range));
            }
            Kind::Ets => return Err(TcError::new(Errno::Inval, "NLA_F_NESTED is missing")),
            _ => return Ok(None),
        }))
    }
}

/// What tc sends for them.
fn attributes(params: &ClassParams) -> Vec<Attribute> {
    let mut sent = Vec::new();
    let mut send =
        |number, words: Option<Vec<u32>>| sent.extend(words.map(|words| Attribute { number, words }));
    let curve = |curve: Option<ServiceCurve>| curve.map(|curve| vec![curve.m1, curve.d_us, curve.m2]);
    let one = |number: Option<u32>| number.map(|number| vec![number]);
    match params {
        ClassParams::None => {}
        ClassParams::Htb(htb) => {
            send(1, Some(rate_words(htb)));
            send(3, Some(table_words(&htb.ceil)));
        }
        ClassParams::Drr(drr) => send(1, one(drr.quantum)),
        ClassParams::Hfsc(hfsc) => {
            send(1, curve(hfsc.rt));
            send(2, curve(hfsc.ls));
            send(3, curve(hfsc.ul));
        }
        ClassParams::Qfq(qfq) => {
            send(1, one(qfq.weight));
            send(2, one(qfq.maxpkt));
        }
        ClassParams::Ets(ets) => send(4, one(ets.quantum)),
    }
    sent
}

/// log2 of the bytes that one entry of a rate table covers, as tc chooses it for frames of up to 2,047 bytes.
const CELL_LOG: u32 = 3;

/// How the specification of a rate begins: the table's cells and the link layer, what is added to a packet,
/// and the rate.
fn rate_words(htb: &HtbClassParams) -> Vec<u32> {
    let RateSpec { rate, overhead, mpu, linklayer } = htb.rate;
    let layer = match linklayer {
        LinkLayer::Ethernet => 1,
        LinkLayer::Atm => 2,
    };
    let aligned = u32::from(u16::MAX);
    vec![
        CELL_LOG | layer << 8 | u32::from(overhead) << 16,
        aligned | u32::from(mpu) << 16,
        rate.0.min(u32::MAX.into()) as u32,
    ]
}

/// How the table of a rate begins: ticks that a packet of the first three cells takes, counted in whole
/// microseconds before.
fn table_words(spec: &RateSpec) -> Vec<u32> {
    (1..=3)
        .map(|cell: u64| {
            let bytes = (cell << CELL_LOG).max(spec.mpu.into());
            let bytes = if spec.linklayer == LinkLayer::Atm { bytes.div_ceil(48) * 53 } else { bytes };
            let micros = bytes * 1_000_000 / spec.rate.0.max(1);
            (micros * Ticks::PER_SECOND / 1_000_000) as u32
        })
        .collect()
}

fn find(sent: &[Attribute], number: u16) -> Option<&Attribute> {
    sent.iter().find(|attribute| attribute.number == number)
}

/// A number of 32 bits: whatever is longer begins with one.
fn number(sent: &[Attribute], number: u16) -> Result<Option<u32>, TcError> {
    Ok(find(sent, number).and_then(|attribute| attribute.words.first().copied()))
}

/// A service curve: three words, whatever follows.
fn curve(sent: &[Attribute], number: u16) -> Result<Option<ServiceCurve>, TcError> {
    match find(sent, number).map(|attribute| attribute.words.as_slice()) {
        Some([m1, d_us, m2]) => Ok(Some(ServiceCurve { m1: *m1, d_us: *d_us, m2: *m2 })),
        Some(_) => Err(TcError::bare(Errno::Range)),
        None => Ok(None),
    }
}
