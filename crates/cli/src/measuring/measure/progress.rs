//! How far a load is, on a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is drawn.
const STEP: Duration = Duration::from_millis(200);

/// What is shown until this is dropped.
pub(super) struct Shown {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Shows a load of this length, if someone sees it.
pub(super) fn show(title: &str, length: Duration) -> Shown {
    let over = Arc::new(AtomicBool::new(false));
    if crate::output::progress_columns().is_none() {
        return Shown { over, thread: None };
    }
    let (ended, title) = (Arc::clone(&over), title.to_owned());
    let thread =
        std::thread::Builder::new().name("progress".to_owned()).spawn(move || draw(title, length, &ended));
    Shown { over, thread: thread.ok() }
}

fn draw(title: String, length: Duration, over: &AtomicBool) {
    // The time left takes four columns.
    let room = crate::output::progress_columns().unwrap_or(0).saturating_sub(6);
    let title: String = title.chars().take(room).collect();
    let columns = title.chars().count() + 5;
    let bar = crate::output::progress_bar(length.as_millis() as u64, ("{msg}", "{eta}"), columns);
    bar.set_message(title);
    let began = Instant::now();
    while !over.load(Ordering::Relaxed) {
        bar.set_position((began.elapsed().as_millis() as u64).min(length.as_millis() as u64));
        std::thread::sleep(STEP);
    }
    bar.finish_and_clear();
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only draws.
            let _ = thread.join();
        }
    }
}
