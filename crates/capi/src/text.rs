//! Texts that C reads.

use std::cell::RefCell;
use std::ffi::{CStr, CString};

thread_local! {
    /// What the last call of this thread has to say: an error, or warnings; empty otherwise.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// A text as C reads it: a NUL in it would end it early.
pub(crate) fn c_text(text: String) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Sets the message of this thread.
pub(crate) fn set_message(text: String) {
    let text = c_text(text);
    // Where the thread is about to end, it is not read.
    let _ = MESSAGE.try_with(|message| *message.borrow_mut() = text);
}

/// Shows the message of this thread, which stays as it is until the next call.
pub(crate) fn with_message<R>(show: impl FnOnce(&CStr) -> R) -> Option<R> {
    MESSAGE.try_with(|message| show(&message.borrow())).ok()
}
