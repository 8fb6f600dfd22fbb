//! What a look at a computer came to ([`tidegate_measure::doctor::Diagnosis`]): text and JSON.

use crate::table::clean;
use std::fmt::Write as _;
use tidegate_measure::doctor::Diagnosis;

/// The terminal's view: plain text, no colour.
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    for finding in &diagnosis.findings {
        let _ = writeln!(out, "{} [{}] {}", finding.severity.name(), finding.id, clean(finding.what.clone()));
        let _ = writeln!(out, "  {}", clean(finding.remedy.clone()));
        for command in &finding.commands {
            let _ = writeln!(out, "    {}", clean(command.clone()));
        }
    }
    if diagnosis.findings.is_empty() {
        out.push_str("No problems found.\n");
    }
    out.push('\n');
    for line in &diagnosis.looked_at {
        let _ = writeln!(out, "Examined: {}", clean(line.clone()));
    }
    for caveat in &diagnosis.caveats {
        let _ = writeln!(out, "Note: {}", clean(caveat.clone()));
    }
    out
}
