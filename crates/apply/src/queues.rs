//! Which queues a policy gets that leaves them open: those that the kernel has.

use crate::kernel;
use crate::notice::{Notice, NoticeHandler};
use crate::options::{ApplyOptions, BackendChoice};
use crate::wanted::Wanted;
use tidegate_daemon::Result;

/// Reads a policy for this computer, with the links that it has now. Its scripts run in a sandbox; nothing is
/// changed.
///
/// A short policy that asks for no classes is a cake in each direction. Where the kernel has none, it is an
/// `fq_codel` in each direction, which `report` is told; where the kernel has neither and may be passed by,
/// it stays a cake, for user space.
///
/// # Errors
/// It cannot be read, or requests what is not there or not set by us.
pub fn read(options: &ApplyOptions, report: NoticeHandler<'_>) -> Result<Wanted> {
    let wanted = Wanted::read(options, false, report)?;
    // Only the kernel's qdiscs can lack something.
    if !wanted.leaves_queues_open || options.backend == BackendChoice::User {
        return Ok(wanted);
    }
    let has_no_cake = kernel::has_no("cake");
    if kernel::lacks(&wanted).map_or(true, |lacks| lacks != Some(has_no_cake)) {
        return Ok(wanted);
    }
    // What is to be said of the policy was said above.
    let other = Wanted::read(options, true, &|_| {})?;
    let is_better =
        options.backend == BackendChoice::Kernel || kernel::lacks(&other).is_ok_and(|lacks| lacks.is_none());
    if !is_better {
        return Ok(wanted);
    }
    report(Notice::Policy(
        "this kernel has no cake, so the policy becomes one fq_codel in each direction, in a class of HTB; \
        connections share the line, whichever host they are of"
            .to_owned(),
    ));
    Ok(other)
}
