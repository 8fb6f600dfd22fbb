//! What has been found so far: counted, kept across runs in `state.json`, and told.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::compare::Difference;

/// A minimal case that is kept for its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Its folder.
    pub(crate) dir: String,
    /// The kinds of qdisc that it needs.
    pub(crate) kinds: Vec<String>,
    /// The case it came from.
    pub(crate) number: u64,
    /// Packets and commands left.
    pub(crate) rows: usize,
    /// Lines of script left.
    pub(crate) lines: usize,
}

/// All differences of one sort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// Cases whose first difference was of this sort.
    pub(crate) count: u64,
    /// Its minimal cases.
    pub(crate) kept: Vec<Kept>,
}

/// The count of a whole search, over several runs of this program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) seed: u64,
    /// The number of the next case.
    pub(crate) next: u64,
    /// Cases compared.
    pub(crate) cases: u64,
    /// Cases that the kernel did not answer.
    pub(crate) unanswered: u64,
    /// Cases whose script failed at the set-up (compared all the same).
    pub(crate) failed_scripts: u64,
    pub(crate) differing: u64,
    /// Seconds spent.
    pub(crate) seconds: f64,
    /// Compared cases with each kind.
    pub(crate) kinds: BTreeMap<String, u64>,
    pub(crate) groups: BTreeMap<String, Group>,
}

impl Tally {
    /// Counts a difference.
    pub(crate) fn count(&mut self, difference: &Difference) {
        self.groups.entry(difference.group()).or_default().count += 1;
    }

    /// Whether it deserves shrinking: fewer than `most` minimal cases explain it, and the group is not full.
    pub(crate) fn deserves(&self, difference: &Difference, kinds: &[String], most: usize) -> bool {
        let Some(group) = self.groups.get(&difference.group()) else { return true };
        // A minimal case made only of kinds that are here too is probably the same mistake.
        let explained =
            group.kept.iter().filter(|kept| kept.kinds.iter().all(|kind| kinds.contains(kind))).count();
        explained < most && group.kept.len() < most * 4
    }

    /// Adds a minimal case.
    pub(crate) fn keep(&mut self, difference: &Difference, kept: Kept) {
        self.groups.entry(difference.group()).or_default().kept.push(kept);
    }

    /// Reads what an earlier run left; none if there is nothing, or it was another search.
    pub(crate) fn read(path: &Path, seed: u64) -> Option<Self> {
        let value: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        (value["seed"].as_u64()? == seed).then(|| Self::from_json(&value))
    }

    /// Writes it whole, so that an interruption leaves the old or the new one.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let part = path.with_extension("part");
        fs::write(&part, format!("{:#}\n", self.to_json()))?;
        fs::rename(part, path)
    }

    /// One line for the screen.
    pub(crate) fn progress(&self) -> String {
        let per_minute = if self.seconds > 0.0 { self.cases as f64 * 60.0 / self.seconds } else { 0.0 };
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        format!(
            "{} cases, {per_minute:.0} a minute; {} differ in {} groups; {} unanswered, {} scripts failed; {}",
            self.cases,
            self.differing,
            self.groups.len(),
            self.unanswered,
            self.failed_scripts,
            kinds.join(" ")
        )
    }

    /// The end of a search, for people.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!(
            "oracle-fuzz: seed {}, {} cases in {:.2} h, {} differ, {} unanswered, {} with a failed script\n",
            self.seed,
            self.cases,
            self.seconds / 3600.0,
            self.differing,
            self.unanswered,
            self.failed_scripts
        );
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        for (name, group) in groups {
            text.push_str(&format!("{:6} × {name}\n", group.count));
            for kept in &group.kept {
                let kinds = kept.kinds.join(" ");
                text.push_str(&format!(
                    "         {} ({kinds}; {} lines, {} rows)\n",
                    kept.dir, kept.lines, kept.rows
                ));
            }
        }
        text
    }

    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let kept = |kept: &Kept| json!({"dir": kept.dir, "kinds": kept.kinds, "number": kept.number, "rows": kept.rows, "lines": kept.lines});
        let groups: BTreeMap<&String, Value> = self
            .groups
            .iter()
            .map(|(name, group)| {
                (name, json!({"count": group.count, "kept": group.kept.iter().map(kept).collect::<Vec<_>>()}))
            })
            .collect();
        json!({
            "seed": self.seed, "next": self.next, "cases": self.cases, "unanswered": self.unanswered,
            "failed_scripts": self.failed_scripts, "differing": self.differing, "seconds": self.seconds,
            "kinds": self.kinds, "groups": groups,
        })
    }

    fn from_json(value: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let kept = |value: &Value| Kept {
            dir: text(&value["dir"]),
            kinds: list(&value["kinds"]).iter().map(text).collect(),
            number: number(&value["number"]),
            rows: number(&value["rows"]) as usize,
            lines: number(&value["lines"]) as usize,
        };
        let group = |value: &Value| Group {
            count: number(&value["count"]),
            kept: list(&value["kept"]).iter().map(kept).collect(),
        };
        Self {
            seed: number(&value["seed"]),
            next: number(&value["next"]),
            cases: number(&value["cases"]),
            unanswered: number(&value["unanswered"]),
            failed_scripts: number(&value["failed_scripts"]),
            differing: number(&value["differing"]),
            seconds: value["seconds"].as_f64().unwrap_or(0.0),
            kinds: members(&value["kinds"])
                .iter()
                .map(|(name, value)| (name.clone(), number(value)))
                .collect(),
            groups: members(&value["groups"])
                .iter()
                .map(|(name, value)| (name.clone(), group(value)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference() -> Difference {
        Difference {
            file: "egress.csv".to_owned(),
            shape: "x".to_owned(),
            line: 2,
            theirs: "a".to_owned(),
            ours: "b".to_owned(),
        }
    }

    fn kept(kinds: &[&str]) -> Kept {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Kept { dir: "d".to_owned(), kinds, number: 3, rows: 4, lines: 5 }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut tally = Tally { seed: 9, next: 64, cases: 60, seconds: 1.5, ..Tally::default() };
        tally.kinds.insert("htb".to_owned(), 7);
        tally.count(&difference());
        tally.keep(&difference(), kept(&["htb"]));
        assert_eq!(Tally::from_json(&tally.to_json()), tally);
    }

    #[test]
    fn a_group_is_shrunk_until_it_is_explained() {
        let mut tally = Tally::default();
        let here = ["htb".to_owned(), "sfq".to_owned()];
        let mut shrunk = 0;
        for _ in 0..20 {
            if tally.deserves(&difference(), &here, 3) {
                tally.keep(&difference(), kept(&["sfq"]));
                shrunk += 1;
            }
        }
        assert_eq!(shrunk, 3);
        // Another kind alone is not explained by these.
        assert!(tally.deserves(&difference(), &["tbf".to_owned()], 3));
    }
}
