//! What becomes of the ECN field on the way to a host.

use anyhow::Context;
use std::time::Duration;
use tidegate_field::Family;
use tidegate_field::ping::{Pinger, Plan};
use tidegate_measure::doctor::Ecn;

/// A code point that is seldom rewritten by others (AF41), and ECT(0): it may be marked.
const SENT: u8 = 34 << 2 | 2;
/// How often the host is asked.
const TRIES: u64 = 5;
const BETWEEN: Duration = Duration::from_millis(100);

/// Asks a host, and looks at the DS field of its answer; what cannot be known is said.
///
/// # Errors
/// It has no address, there is no way, or we may not ask.
pub(super) fn ask(host: &str, unknown: &mut Vec<String>) -> anyhow::Result<Option<Ecn>> {
    let mut plan = Plan::new(host, Family::Any)?;
    (plan.ds_field, plan.interval, plan.count) = (SENT, BETWEEN, Some(TRIES));
    let seen = Pinger::begin(&[plan]).context("asking for the ECN field")?.finish();
    let answered = seen.answered_ds_field.first().copied().flatten();
    if seen.targets.iter().all(|target| target.figures().rtt.is_none()) {
        unknown.push(format!("what becomes of ECN on the way to {host} is not known: it answers no pings"));
        return Ok(None);
    }
    Ok(Some(Ecn { host: host.to_owned(), sent: SENT, answered, quoted: Vec::new() }))
}
