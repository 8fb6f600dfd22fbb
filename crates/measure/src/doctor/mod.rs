//! Is it really shaping? What a computer tells of its devices ([`Facts`]), and what follows from that
//! ([`judge`]).
//!
//! Counters are what was counted between two looks, rates bits per second, times nanoseconds, unless a field
//! says otherwise.

mod devices;
mod facts;
mod traffic;

pub use facts::{
    Class, Device, Diagnosis, Ecn, Facts, Finding, FlowTable, Inwards, Processor, Severity, Shaper, Softnet,
};

use alloc::string::String;
use alloc::vec::Vec;

/// What follows from the facts: findings, the worst first, and doubts.
pub fn judge(facts: &Facts) -> (Vec<Finding>, Vec<String>) {
    let mut findings = Vec::new();
    for device in &facts.devices {
        findings.extend(devices::of(facts, device));
        findings.extend(traffic::of(facts, device));
    }
    findings.extend(devices::of_all(facts));
    findings.extend(traffic::of_all(facts));
    findings.sort_by_key(|finding: &Finding| core::cmp::Reverse(finding.severity));
    (findings, traffic::doubts(facts))
}
