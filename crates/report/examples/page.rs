//! The page of a trial that was kept as JSON: `cargo run -p tidegate-report --example page < trial.json >
//! trial.html`.

use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let trial = tidegate_analysis::trial::from_json(&text)?;
    std::io::stdout().write_all(tidegate_report::html(&trial).as_bytes())?;
    Ok(())
}
