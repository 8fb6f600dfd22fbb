//! Is it really shaping? What a computer reports of its devices ([`Facts`]), and what follows from that
//! ([`evaluate`]).
//!
//! Counters are differences between two readings, rates bits per second, times nanoseconds, unless a field
//! has another unit.

mod devices;
mod facts;
mod traffic;

pub use facts::{
    BrokenPolicy, DeviceFacts, Diagnosis, DoctorFinding, EcnResult, Facts, FlowTableFacts, Inwards,
    Processor, Severity, ShaperClass, ShaperFacts, Softnet,
};

use alloc::string::String;
use alloc::vec::Vec;

/// What follows from the facts: findings, the worst first, and caveats.
pub fn evaluate(facts: &Facts) -> (Vec<DoctorFinding>, Vec<String>) {
    let mut findings = Vec::new();
    for device in &facts.devices {
        findings.extend(devices::of(facts, device));
        findings.extend(traffic::of(facts, device));
    }
    findings.extend(devices::of_all(facts));
    findings.extend(traffic::of_all(facts));
    findings.sort_by_key(|finding: &DoctorFinding| core::cmp::Reverse(finding.severity));
    (findings, traffic::caveats(facts))
}
