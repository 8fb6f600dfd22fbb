//! What goes on in a run, and by whose clock: simulated hosts in virtual time, or real ones.

use super::lay::Laid;
use super::run::Run;
use tidegate_measure::experiment as doc;
use tidegate_packet::{Span, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump};

/// The traffic of one run: several pieces (a transfer, a ping, …), numbered.
pub(super) trait Traffic: Sized {
    /// How long after the measured window answers are still waited for.
    const GRACE: Span;

    /// Sets the run's load going.
    fn begin(run: &mut Run<'_, Self>) -> anyhow::Result<()>;

    /// Lets time pass in the network.
    fn advance(&mut self, laid: &mut Laid, to: Time) -> anyhow::Result<()>;

    /// A step of the run has ended.
    fn step_ended(&mut self, _laid: &mut Laid, _at: Time) {}

    /// Payload bytes acknowledged so far, of each piece; 0 where nothing is acknowledged.
    fn acked(&mut self, laid: &Laid) -> Vec<u64>;

    /// What stands on devices of the machine that is outside of the network's model, each by its number there.
    fn standing(&mut self) -> Vec<(usize, Vec<QdiscDump>, Vec<ClassDump>)> {
        Vec::new()
    }

    /// What its pieces came to.
    fn told(run: &mut Run<'_, Self>) -> (Vec<doc::Transfer>, Vec<doc::Probe>);

    /// How late things happened, where a real clock decides.
    fn lateness(&self) -> Option<doc::Lateness> {
        None
    }
}
