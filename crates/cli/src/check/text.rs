//! Findings for people.

use super::fix::Fixed;
use std::fmt::Write as _;
use tidegate_inspect::checked::{Checked, CommandPath};
use tidegate_inspect::{Finding, Frame, Level, PolicyModel, Rule, SourceLocation, Witness};

/// All findings, and a summary.
pub(super) fn report(checked: &Checked, hidden: usize, fixed: Option<&Fixed>) -> String {
    let mut out = String::new();
    for finding in &checked.findings {
        out.push_str(&one(checked, finding));
        out.push('\n');
    }
    out.push_str(&summary(checked, hidden, fixed));
    out
}

/// One finding: where, what, the text underlined, why, what shows it, what fixes it.
fn one(checked: &Checked, finding: &Finding) -> String {
    let reading = &checked.reading;
    let mut out = String::new();
    let (level, rule) = (finding.level.name(), finding.rule);
    let tail = format!("{level}: {} [{} {}]", finding.what, rule.id(), rule.name());
    let Some(place) = &finding.place else {
        let name = reading.sources.first().map_or("", |source| source.name.as_str());
        let name = tidegate_text::line(name);
        let _ = writeln!(out, "{name}: {tail}");
        return out + &reasons(finding, "  ");
    };
    let source = &reading.sources[place.file];
    let (from, to) = place.columns;
    let column = if to > from { format!(":{}", from + 1) } else { String::new() };
    let _ = writeln!(out, "{}:{}{column}: {tail}", tidegate_text::line(&source.name), place.line);
    let number = place.line.to_string();
    let blank = " ".repeat(number.len());
    let text = source.lines.get(place.line - 1).map_or("", String::as_str);
    let columns = crate::output::columns().unwrap_or(usize::MAX);
    let room = columns.saturating_sub(blank.len() + "   | ".len());
    let (shown, from, to) = tidegate_text::excerpt(text, (from, to), room);
    let _ = writeln!(out, "  {number} | {shown}");
    if to > from {
        let _ = writeln!(out, "  {blank} | {}{}", " ".repeat(from), "^".repeat(to - from));
    }
    let indent = format!("  {blank} ");
    for sentence in ways(reading, finding) {
        let _ = writeln!(out, "{indent}= {sentence}");
    }
    out + &reasons(finding, &indent)
}

/// The most calls listed for a line inside a function.
const MOST_CALLS: usize = 4;

/// What led to a finding's line, `called from x.sh:9, x.sh:10`, or uses the variable it sets, and the
/// functions between it and the tool: `by way of lib.sh:7 (leaf), lib.sh:3 (do_tc)`.
fn ways(reading: &PolicyModel, finding: &Finding) -> Vec<String> {
    let CommandPath { called_from, used_in, frames } = CommandPath::of(reading, finding);
    let name = |place: &SourceLocation| {
        let name = reading.sources.get(place.file).map_or("", |source| source.name.as_str());
        format!("{}:{}", tidegate_text::line(name), place.line)
    };
    let mut lines = Vec::new();
    for (words, places) in [("used in", &used_in), ("called from", &called_from)] {
        let shown: Vec<String> = places.iter().take(MOST_CALLS).map(name).collect();
        let more = match places.len().saturating_sub(MOST_CALLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !places.is_empty() {
            lines.push(format!("{words} {}{more}", shown.join(", ")));
        }
    }
    if !frames.is_empty() {
        let frame =
            |frame: &Frame| format!("{} ({})", name(&frame.place), tidegate_text::line(&frame.function));
        lines.push(format!("by way of {}", frames.iter().map(frame).collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn reasons(finding: &Finding, indent: &str) -> String {
    let mut out = format!("{indent}= {}\n", finding.because);
    match &finding.witness {
        Some(Witness::Number(number)) => {
            let _ = writeln!(out, "{indent}= shown: {number}");
        }
        Some(Witness::Packet { packet, went }) => {
            let _ = writeln!(out, "{indent}= shown: `{packet}` goes to {went}");
        }
        None => {}
    }
    if let Some(fix) = &finding.fix {
        let _ =
            writeln!(out, "{indent}= {}: {}", if fix.edits.is_empty() { "help" } else { "fix" }, fix.what);
    }
    out
}

fn summary(checked: &Checked, hidden: usize, fixed: Option<&Fixed>) -> String {
    let count = |level: Level, one: &str, many: &str| {
        let number = checked.findings.iter().filter(|finding| finding.level == level).count();
        (number > 0).then(|| format!("{number} {}", if number == 1 { one } else { many }))
    };
    let counts: Vec<String> = [
        count(Level::Error, "error", "errors"),
        count(Level::Warning, "warning", "warnings"),
        count(Level::Note, "note", "notes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let found = match (counts.is_empty(), hidden) {
        (true, 0) => "nothing found".to_owned(),
        (true, _) => "nothing of this level found".to_owned(),
        (false, _) => counts.join(", "),
    };
    let commands = checked.reading.steps.len();
    let silenced = if checked.silenced > 0 {
        format!("; {} silenced by comments", checked.silenced)
    } else {
        String::new()
    };
    let hidden = if hidden > 0 { format!("; {hidden} below --min-level not shown") } else { String::new() };
    let mut out =
        format!("{found} in {commands} command{}{silenced}{hidden}\n", if commands == 1 { "" } else { "s" });
    if let Some(Fixed { findings, left, copies }) = fixed {
        let copies: Vec<String> = copies.iter().map(|path| path.display().to_string()).collect();
        let _ = writeln!(out, "{findings} fixed in {}", copies.join(", "));
        if *left > 0 {
            let _ = writeln!(
                out,
                "{left} more not made, because they touch what another changes: check the copy, with --fix again"
            );
        }
    } else if checked
        .findings
        .iter()
        .any(|finding| finding.fix.as_ref().is_some_and(|fix| !fix.edits.is_empty()))
    {
        out.push_str("--fix COPY writes a copy with each `fix:` carried out that touches no other\n");
    }
    out
}

/// The rules, one a line.
pub(super) fn rules() -> String {
    Rule::ALL.iter().map(|rule| format!("{:<4} {:<20} {}\n", rule.id(), rule.name(), rule.about())).collect()
}
