//! The charts of a result as SVG and PNG, and its page: `cargo run -p tidegate-report --example experiment
//! RESULT.json DIR`.

use tidegate_analysis::experiment::{flent_files, from_json};
use tidegate_report::chart::{Theme, file, png};
use tidegate_report::experiment::{charts, page};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(result), Some(room)) = (words.next(), words.next()) else {
        return Err("RESULT.json DIR".into());
    };
    let experiment = from_json(&std::fs::read_to_string(result)?)?;
    for (name, drawing) in charts(&experiment) {
        std::fs::write(format!("{room}/{name}.svg"), file(&drawing, 760.0, Theme::Light))?;
        std::fs::write(format!("{room}/{name}.png"), png(&drawing, 760.0, 2.0, Theme::Light)?)?;
    }
    for (name, packed) in flent_files(&experiment)? {
        std::fs::write(format!("{room}/{name}"), packed)?;
    }
    std::fs::write(format!("{room}/page.html"), page(&experiment))?;
    Ok(())
}
