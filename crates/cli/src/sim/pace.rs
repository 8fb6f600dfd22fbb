//! How long a simulation will take, estimated from its pace so far.

use indicatif::ProgressBar;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the pace is observed before something is printed.
const LOOK: Duration = Duration::from_secs(5);
/// What is done sooner is not announced.
const LONG: Duration = Duration::from_secs(30);

/// The progress of a simulation: a bar, and one line once it shows that it takes long; nothing in a pipe.
#[derive(Default)]
pub(crate) struct Pace {
    /// The bar, and when it began.
    begun: OnceLock<(ProgressBar, Instant)>,
    done: AtomicU64,
    reported: AtomicBool,
}

impl Pace {
    /// So many seconds of link time are to be done.
    pub(crate) fn begin(&self, seconds: u64) {
        self.begun.get_or_init(|| (progress("simulating", seconds), Instant::now()));
    }

    /// So many seconds of link time more are done.
    pub(crate) fn add(&self, seconds: u64) {
        let Some((bar, begun)) = self.begun.get() else { return };
        bar.inc(seconds);
        let done = self.done.fetch_add(seconds, Ordering::Relaxed) + seconds;
        let (total, elapsed) = (bar.length().unwrap_or(0), begun.elapsed());
        let left = left(done, total, elapsed).filter(|_| elapsed >= LOOK);
        if let Some(left) = left.filter(|left| *left >= LONG)
            && !bar.is_hidden()
            && !self.reported.swap(true, Ordering::Relaxed)
        {
            let line = format!(
                "tidegate sim: {done} of {total} s of link time took {} s; at this pace the rest takes {}; \
                Ctrl-C writes what is done by then",
                elapsed.as_secs(),
                words(left)
            );
            bar.suspend(|| eprintln!("{line}"));
        }
    }

    pub(crate) fn finish(&self) {
        self.begun.get().into_iter().for_each(|(bar, _)| bar.finish_and_clear());
    }
}

/// A bar on the terminal; nothing in a pipe.
pub(crate) fn progress(doing: &str, seconds: u64) -> ProgressBar {
    // Numbers of up to six digits, and the time left.
    let columns = doing.len() + "  123456/123456 s of link time, 10m left".len();
    crate::output::progress_bar(seconds, (doing, "{pos}/{len} s of link time, {eta} left"), columns)
}

/// How long the rest takes if it goes on as it went.
fn left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64(total.saturating_sub(done) as f64 / done as f64))
}

fn words(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds < 120 { format!("{seconds} s") } else { format!("{} minutes", seconds / 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_goes_as_what_is_done_went() {
        assert_eq!(left(0, 100, LOOK), None);
        assert_eq!(left(10, 100, LOOK), Some(Duration::from_secs(45)));
        assert_eq!(left(100, 100, LOOK), Some(Duration::ZERO));
        // A run that was cut counts whole.
        assert_eq!(left(110, 100, LOOK), Some(Duration::ZERO));
    }

    #[test]
    fn minutes_are_minutes() {
        assert_eq!(words(Duration::from_millis(119_900)), "119 s");
        assert_eq!(words(Duration::from_secs(540)), "9 minutes");
    }
}
