#![forbid(unsafe_code)]
//! The native half of the Python package `tidegate`: the documents of the command line's `--json`, made by
//! the same libraries.
//!
//! ```text
//! tidegate/*.py ─▶ _native ─▶ watch (a thread without the interpreter's lock) ─▶ loader, scenario, sweep, trial
//!                    ▲                                                                  │
//!                    └── JSON, CSV, or tidegate.Error (place, remedy, exit code) ◀──────┘
//! ```
//! The Python half (`python/tidegate`) has what users see: arguments with their units, results, engines.

mod failure;
mod input;
mod policy;
mod scenario;
mod sweep;
mod trial;
mod watch;

use pyo3::prelude::*;

/// The native half of `tidegate`.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use crate::policy::{check, explain, run};
    #[pymodule_export]
    use crate::scenario::{experiment_html, simulate};
    #[pymodule_export]
    use crate::sweep::{columns, merge, plan, summary, sweep};
    #[pymodule_export]
    use crate::trial::{trial_html, try_};

    /// The version of tidegate that this is.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Names the program that confines scripts and plays their tools; without one says why they are refused.
    #[pyfunction]
    fn set_program(path: Option<std::path::PathBuf>, why: String) {
        tidegate_capture::played_by(path.ok_or(why));
    }
}
