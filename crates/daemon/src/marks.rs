//! The policy's marks, which the kernel sets: a table of netfilter that goes with the daemon.

use crate::error::{ErrorContext, Result};
use crate::machine::Wanted;
use std::sync::Mutex;
use tidegate_netlink::Netfilter;
use tidegate_netlink::encode::nft;

const COMMENT: &str = "marks for tidegate's daemon, with which they go";

/// The table, if the policy has rules, and the socket that it lives by.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<Option<Netfilter>>);

impl Marks {
    /// Those of a policy.
    ///
    /// # Errors
    /// The kernel has no nftables, or refuses a rule.
    pub(crate) fn set(wanted: &Wanted) -> Result<Marks> {
        let marks = Marks::default();
        marks.tell(wanted, false)?;
        Ok(marks)
    }

    /// Those of another policy instead, all at once.
    ///
    /// # Errors
    /// As for [`Marks::set`]; then those of the old policy stay.
    pub(crate) fn replace(&self, current: &Wanted, wanted: &Wanted) -> Result<()> {
        if wanted.tables.is_empty() {
            *self.0.lock().map_err(|_| error!(Kernel, "an earlier change failed"))? = None;
            return Ok(());
        }
        self.tell(wanted, !current.tables.is_empty())
    }

    fn tell(&self, wanted: &Wanted, replaces: bool) -> Result<()> {
        if wanted.tables.is_empty() {
            return Ok(());
        }
        let name = format!("tidegate-{}", wanted.name());
        let batch = nft::own_ruleset(&name, COMMENT, replaces, &wanted.tables)?;
        let mut guard = self.0.lock().map_err(|_| error!(Kernel, "an earlier change failed"))?;
        let netfilter = match &mut *guard {
            Some(netfilter) => netfilter,
            None => guard.insert(
                Netfilter::open().context("this kernel has no nftables, which set the policy's marks")?,
            ),
        };
        let result = netfilter.carry_out(batch).context("nftables")?;
        result.map_err(|(_, refused)| {
            error!(Kernel, "the kernel refuses the rules that set the policy's marks: {refused}")
        })
    }
}
