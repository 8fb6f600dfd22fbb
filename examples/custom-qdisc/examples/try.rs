//! The verdict of `tidegate try`, of a policy whose leaf is `deadline`.
//!
//! `cargo run -p tidegate-custom-qdisc --example try`

#[path = "../tests/suite/common.rs"]
mod common;

use common::{Leaf, tried};
use tidegate_custom_qdisc::Deadline;
use tidegate_packet::Nanos;

fn main() {
    let kind = Deadline { limit: 1000, deadline: Nanos::millis(20) };
    for line in &tried(Leaf::Deadline(kind)).verdict {
        println!("{line:?}");
    }
}
