#![deny(unsafe_code)]
//! tidegate without a computer around it: a request as JSON in, the document of the command line out, for
//! pages that run in a browser.
//!
//! ```text
//! page ─▶ worker ─▶ abi (bytes in, bytes out) ─▶ answer ─▶ loader ─▶ trial · inspect · scenario ─▶ JSON
//! ```
//! What `try`, `check`, `explain` and `sim` give is, to the byte, what `tidegate … --json` prints for the
//! same input. There are no files: a request holds every text. A script cannot run, and the refusal says what
//! to paste instead. [`RequestLimits`] bounds what one request may ask for; beyond it memory and time are the
//! page's to bound, which runs this in a worker that it can end.
//!
//! ```
//! use tidegate_web::answer;
//!
//! let request = r#"{"do": "check", "name": "home.batch",
//!     "policy": "qdisc add dev eth0 root handle 1: htb default 20\n"}"#;
//! assert!(answer(request).unwrap().contains("\"findings\""));
//!
//! // A refusal is a document, too.
//! let refused = answer(r##"{"do": "check", "name": "home.sh", "policy": "#!/bin/sh\nreboot\n"}"##);
//! assert!(refused.unwrap_err().contains("tidegate run --print tc SCRIPT"));
//! ```

#[allow(unsafe_code)]
pub mod abi;
mod loaded;
mod refusal;
mod request;
mod simulated;
mod tried;

pub use request::{RequestLimits, answer};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
