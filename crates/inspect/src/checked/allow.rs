//! Comments that silence findings: `# tidegate: allow R4`, `# tidegate: allow-file quantum, R13`.

use super::path::CommandPath;
use crate::finding::{Finding, Rule};
use crate::reading::PolicyModel;
use std::collections::BTreeSet;

/// What comments allow.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    /// By file and line.
    lines: BTreeSet<(usize, usize, Rule)>,
    /// By file.
    files: BTreeSet<(usize, Rule)>,
}

impl Allowed {
    /// Reads the comments of all files.
    pub(super) fn read(reading: &PolicyModel) -> Allowed {
        let mut allowed = Allowed::default();
        for (file, source) in reading.sources.iter().enumerate() {
            for (line, text) in (1..).zip(&source.lines) {
                allowed.read_line(file, line, text);
            }
        }
        allowed
    }

    fn read_line(&mut self, file: usize, line: usize, text: &str) {
        let Some((before, comment)) = text.split_once("tidegate:") else { return };
        let Some(hash) = before.rfind('#') else { return };
        let Some(rest) = comment.trim_start().strip_prefix("allow") else { return };
        let (whole, rest) = match rest.strip_prefix("-file") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let words = rest.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        // Whatever follows the rules is the reason.
        for rule in words.map_while(rule) {
            if whole {
                self.files.insert((file, rule));
                continue;
            }
            self.lines.insert((file, line, rule));
            // A comment on a line of its own is about the next line.
            if before[..hash].trim().is_empty() {
                self.lines.insert((file, line + 1, rule));
            }
        }
    }

    /// Is this finding silenced, at its line or at one that its command passed through?
    pub(super) fn silences(&self, finding: &Finding, way: &CommandPath) -> bool {
        let Some(place) = &finding.place else {
            return self.files.iter().any(|(_, rule)| *rule == finding.rule);
        };
        let through = way.frames.iter().map(|frame| &frame.place);
        // Of several calls one that allows it does not speak for the others.
        let calls = way.called_from.iter().filter(|_| way.called_from.len() == 1);
        std::iter::once(place).chain(through).chain(calls).any(|place| {
            self.files.contains(&(place.file, finding.rule))
                || self.lines.contains(&(place.file, place.line, finding.rule))
        })
    }
}

/// A rule by its number or name.
fn rule(word: &str) -> Option<Rule> {
    Rule::ALL.iter().copied().find(|rule| rule.id().eq_ignore_ascii_case(word) || rule.name() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_name_rules_for_their_line_the_next_or_the_file() {
        let mut allowed = Allowed::default();
        let text = "tc x # tidegate: allow R4\n# tidegate: allow quantum, R3 because it is so\ntc y\n# \
        tidegate: allow-file units\ntidegate: allow R1";
        for (line, text) in (1..).zip(text.lines()) {
            allowed.read_line(0, line, text);
        }
        let lines: Vec<_> = allowed.lines.iter().map(|(_, line, rule)| (*line, rule.id())).collect();
        assert_eq!(lines, [(1, "R4"), (2, "R3"), (2, "R4"), (3, "R3"), (3, "R4")]);
        assert_eq!(allowed.files.iter().map(|(_, rule)| rule.id()).collect::<Vec<_>>(), ["R17"]);
    }
}
