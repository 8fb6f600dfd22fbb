//! The room as a whole; what needs a sandbox is in `tests/capture.rs`.
