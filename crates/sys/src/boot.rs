//! Which run of the machine this is, and for how long it has been up.

use std::io;
use std::time::Duration;

use rustix::time::ClockId;

/// Where the kernel shows the random name that it gave this run of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The name of this run of the machine: another one after every restart.
///
/// # Errors
/// There is no `/proc`.
pub fn id() -> io::Result<String> {
    Ok(std::fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

/// How long the machine has been up, time asleep included (`CLOCK_BOOTTIME`): no change of the wall clock
/// alters it, and all processes agree on it.
#[must_use]
pub fn uptime() -> Duration {
    let now = rustix::time::clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_has_a_name_and_an_age() {
        assert_eq!(id().expect("/proc is there").len(), 36);
        let before = uptime();
        assert!(before > Duration::ZERO && uptime() >= before);
    }
}
