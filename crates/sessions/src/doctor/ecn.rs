//! What happens to the ECN field on the way to a host.

use crate::error::{Context, Result};
use std::net::IpAddr;
use std::time::Duration;
use tidegate_measure::doctor::EcnResult;
use tidegate_prober::ping::{PingSchedule, Pinger};
use tidegate_prober::{AddressFamily, Error, quoted};

/// A code point that is seldom rewritten by others (AF41), and ECT(0): it may be marked.
const SENT: u8 = 34 << 2 | 2;
/// How many packets the host gets.
const TRIES: u64 = 5;
const BETWEEN: Duration = Duration::from_millis(100);
/// The most hops whose ICMP quotes are read.
const MOST_HOPS: u8 = 8;

/// Sends to a host, and reads the DS field of its reply and of what routers quote; what cannot be known is
/// added to `unknown`.
///
/// # Errors
/// It has no address, there is no way, or we may not ask.
pub(super) fn ask(host: &str, unknown: &mut Vec<String>) -> Result<EcnResult> {
    let mut plan = PingSchedule::new(host, AddressFamily::Any)?;
    (plan.ds_field, plan.interval, plan.count) = (SENT, BETWEEN, Some(TRIES));
    let address = plan.address;
    let seen = Pinger::begin(&[plan]).context("asking for the ECN field")?.finish();
    if seen.targets.iter().all(|target| target.figures().rtt.is_none()) {
        unknown.push(format!("what becomes of ECN up to {host} itself is not known: it answers no pings"));
    }
    let answered = seen.answered_ds_field.first().copied().flatten();
    Ok(EcnResult { host: host.to_owned(), sent: SENT, answered, quoted: on_the_way(address, unknown)? })
}

/// The routers on the path that quoted a request, and the DS field that it had there.
fn on_the_way(address: IpAddr, unknown: &mut Vec<String>) -> Result<Vec<(String, u8)>> {
    match quoted::find(address, SENT, MOST_HOPS) {
        Ok(found) => Ok(found.into_iter().map(|(by, field)| (by.to_string(), field)).collect()),
        Err(Error::NotAllowed { .. }) => {
            unknown.push("the ECN field was not probed on the way: that needs root".to_owned());
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}
