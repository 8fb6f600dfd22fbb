//! How large an experiment may be: a scenario is a stranger's text, and what a run records grows with the
//! steps of its series and with the packets that its loads send on their own schedule.

use crate::model::{Scenario, TrafficItem, TrafficKind};
use crate::tables::Diagnostic;

/// Steps of a run's series: six hours in steps of 100 ms are 216,000.
const MAX_STEPS: u64 = 250_000;
/// Packets, requests and pages of one load that leave on a schedule: a minute of 10 Gbit/s in full frames.
const MAX_SCHEDULED: u64 = 50_000_000;

/// Refuses a scenario whose runs would record more than a machine holds.
///
/// # Errors
/// The series have too many steps, or a load sends too much on its schedule; with the place of the load.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Diagnostic> {
    let length = scenario.warm_up.0.saturating_add(scenario.duration.0);
    let steps = length / scenario.step.0.max(1);
    if steps > MAX_STEPS {
        let why = format!("a run has {steps} steps, more than {MAX_STEPS}");
        return Err(Diagnostic::new(0..0, why, "shorten `duration`, or lengthen `step`"));
    }
    for load in &scenario.loads {
        let mut scheduled = 0_u64;
        for item in &load.items {
            scheduled = scheduled.saturating_add(sent(item, length));
            if scheduled > MAX_SCHEDULED {
                let why =
                    format!("with this, a load sends more than {MAX_SCHEDULED} packets on its schedule");
                return Err(Diagnostic::new(
                    item.at.clone(),
                    why,
                    "lower the rate, lengthen `every` or shorten the run",
                ));
            }
        }
    }
    Ok(())
}

/// How often an item sends in a run of this length, in nanoseconds; transfers send as TCP lets them.
fn sent(item: &TrafficItem, length: u64) -> u64 {
    let (every, count) = match item.what {
        TrafficKind::Tcp { .. } => return 0,
        TrafficKind::Ping { every, count, .. } => (every, count),
        TrafficKind::Udp { every, .. }
        | TrafficKind::Request { every, .. }
        | TrafficKind::Dns { every }
        | TrafficKind::Ssh { every }
        | TrafficKind::Web { every, .. } => (every, None),
    };
    let until = item.stop.map_or(length, |stop| stop.0.min(length));
    let times = until.saturating_sub(item.start.0) / every.0.max(1);
    count.map_or(times, |count| count.min(times))
}
