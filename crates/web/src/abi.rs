//! The functions that a page calls, the only file of the crate with code that the compiler cannot check: a
//! function's name that other modules see must be unique among all that are linked. What is behind the names
//! is checked: the buffers belong to this module, and their addresses are only given away.
//!
//! A page asks for a buffer ([`tidegate_input`]), writes a request into it as UTF-8, calls
//! [`tidegate_answer`], and reads the document ([`tidegate_output`], [`tidegate_output_length`]) before the
//! next call.

use crate::request::{RequestLimits, answer};
use std::sync::{Mutex, Once};

/// The request, and the document that answers it.
static BUFFERS: Mutex<(Vec<u8>, String)> = Mutex::new((Vec::new(), String::new()));

/// What the last panic said, for the page.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// The request was answered with a document.
const DONE: u32 = 0;
/// It was refused; the document says why.
const REFUSED: u32 = 1;

/// The address of a buffer of this many bytes for the next request; 0: too many.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_input(length: usize) -> *mut u8 {
    // In a page a panic ends the module; what it said is kept.
    static HOOK: Once = Once::new();
    #[cfg(target_family = "wasm")]
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| keep(&panic.to_string()))));
    #[cfg(not(target_family = "wasm"))]
    HOOK.call_once(|| keep(""));
    let Ok(mut buffers) = BUFFERS.lock() else { return std::ptr::null_mut() };
    if length > RequestLimits::REQUEST {
        return std::ptr::null_mut();
    }
    buffers.0 = vec![0; length];
    buffers.0.as_mut_ptr()
}

/// Answers the request in the buffer: 0 with a document, 1 with a refusal.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_answer() -> u32 {
    let Ok(mut buffers) = BUFFERS.lock() else { return REFUSED };
    let request = std::mem::take(&mut buffers.0);
    let (code, document) = match answer(&String::from_utf8_lossy(&request)) {
        Ok(document) => (DONE, document),
        Err(refusal) => (REFUSED, refusal),
    };
    buffers.1 = document;
    code
}

/// The address of the last document.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_output() -> *const u8 {
    BUFFERS.lock().map_or(std::ptr::null(), |buffers| buffers.1.as_ptr())
}

/// Its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_output_length() -> usize {
    BUFFERS.lock().map_or(0, |buffers| buffers.1.len())
}

/// The address of what the last panic said.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_panic() -> *const u8 {
    PANIC.lock().map_or(std::ptr::null(), |said| said.as_ptr())
}

/// Its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_panic_length() -> usize {
    PANIC.lock().map_or(0, |said| said.len())
}

fn keep(said: &str) {
    if let Ok(mut kept) = PANIC.lock() {
        *kept = said.to_owned();
    }
}
