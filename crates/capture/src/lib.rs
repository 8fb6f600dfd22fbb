#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "run"), allow(dead_code))]
//! Captures a script: runs it unmodified in a sandbox where `tc`, `iptables`, `ip` and the like are
//! ourselves.
//!
//! ```text
//! run_script ──▶ sandbox ──────▶ sh modem.sh ──▶ /sbin/tc qdisc add … (this executable: `shim`)
//!     ▲                                                  │ request: tool, words, input, directory
//!     └──────── Answer::answer(&Call) ◀── one at a time ─┘ reply: output, errors, code
//! ```
//! The parent answers in the order the calls come, so its model of the machine is always what the script
//! believes. [`Shell`] does the same for single lines, one after the other in one sandbox, for replays.
//!
//! ```no_run
//! use tidegate_capture::{CaptureOptions, run_script};
//! use tidegate_shims::{Call, Reply};
//!
//! // Every tool succeeds; the calls are printed.
//! let mut answer = |call: &Call| {
//!     println!("{} {}", call.tool, call.args.join(" "));
//!     Reply::ok()
//! };
//! let outcome = run_script("modem.sh".as_ref(), &[], &CaptureOptions::default(), &mut answer).unwrap();
//! assert!(outcome.success());
//! ```
//!
//! *Invariants.* The host's file system, links and processes stay as they are. Nothing of a run outlives it.
//! A script cannot make us wait longer than the time limit, nor keep more than the bounds stated in
//! [`CaptureOptions`].
//!
//! Without the feature `run`, which is on by default, there are only the types of what a run showed: for
//! programs that load policies where no script can run.

#[cfg(feature = "run")]
mod agree;
#[cfg(feature = "run")]
mod confined;
#[cfg(feature = "run")]
mod dialect;
mod echo;
#[cfg(feature = "run")]
mod effect;
mod error;
mod few;
#[cfg(feature = "run")]
mod given;
#[cfg(feature = "run")]
mod input;
#[cfg(feature = "run")]
mod lines;
#[cfg(feature = "run")]
mod missing_files;
mod options;
mod place;
#[cfg(feature = "run")]
mod run;
#[cfg(feature = "run")]
mod sandbox;
#[cfg(feature = "run")]
mod scan;
mod script_run;
#[cfg(feature = "run")]
mod serve;
#[cfg(feature = "run")]
mod shell;
#[cfg(feature = "run")]
mod shim;
mod stubs;
#[cfg(feature = "run")]
mod troubles;
pub mod usage;
#[cfg(feature = "run")]
mod values;
#[cfg(feature = "run")]
mod wire;
#[cfg(feature = "run")]
mod words;

#[cfg(feature = "run")]
pub use confined::ConfinedProgram;
pub use echo::{PrintFn, to_streams};
pub use error::{CaptureError, Trouble, TroubleKind};
pub use options::{CaptureOptions, DEFAULT_TIMEOUT, MAX_ANSWERS, Output};
pub use place::{CallFrame, SourceLine, SourceWord};
#[cfg(feature = "run")]
pub use run::{devices_of, run_in_turn, run_script};
#[cfg(feature = "run")]
pub use sandbox::{available, played_by};
#[cfg(feature = "run")]
pub use scan::check_program;
pub use script_run::{Exit, Recorded, ScriptRun, asks};
#[cfg(feature = "run")]
pub use shell::Shell;
#[cfg(feature = "run")]
pub use shim::dispatch;
pub use stubs::{StubbedCall, check_stub};
pub use tidegate_shims::TOOLS;

/// The examples of the README are run, too.
#[cfg(all(doctest, feature = "run"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// Reads what came over the socket as a request, and as a reply, for the fuzzer.
#[doc(hidden)]
#[cfg(feature = "run")]
pub fn fuzz_wire(bytes: &[u8]) {
    if let Ok(request) = wire::read_request(&mut &bytes[..]) {
        // What was read is written and read again as the same.
        let mut written = Vec::new();
        wire::write_request(&mut written, &request).expect("a vector takes everything");
        let again = wire::read_request(&mut &written[..]).expect("it was written just now");
        assert_eq!(again, request);
    }
    let _ = wire::read_reply(&mut &bytes[..]);
}
