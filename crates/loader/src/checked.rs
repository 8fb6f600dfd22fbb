//! What is wrong with a loaded policy: the findings about its commands, and what its scripts' shell could not
//! run.

use crate::{LoadedPolicy, NoSuchDevice};
use std::fmt;
use tidegate_capture::{Exit as Ended, ScriptRun, Trouble, TroubleKind};
use tidegate_inspect::checked::{Checked, concerns};
use tidegate_inspect::{Finding, Level, PolicyModel, Rule, SourceLocation, Witness};
use tidegate_policy::{Op, Verb};

/// Why nothing can be said of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// A script did not come to its end: what went wrong in it.
    NotEnded(Vec<String>),
    /// No command is about the device that was named.
    NoSuchDevice(NoSuchDevice),
    /// It has no traffic control.
    NothingFound {
        /// Why, in words.
        why: String,
        /// What went wrong in its scripts.
        troubles: Vec<String>,
    },
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::NotEnded(troubles) => write!(
                f,
                "the script did not come to its end, so nothing can be said of it\n{}",
                troubles.join("\n")
            ),
            CheckError::NoSuchDevice(error) => error.fmt(f),
            CheckError::NothingFound { why, troubles } => {
                f.write_str(why)?;
                troubles.iter().try_for_each(|trouble| write!(f, "\n{trouble}"))
            }
        }
    }
}

impl std::error::Error for CheckError {}

impl LoadedPolicy {
    /// The findings about a policy, those about one device if it is named.
    ///
    /// ```
    /// use tidegate_inspect::checked::to_json;
    /// use tidegate_loader::{ReadOptions, read_text};
    ///
    /// let batch = "qdisc add dev eth0 root handle 1: htb default 20\n\
    ///              class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n";
    /// let policy = read_text("home.batch", batch, &ReadOptions::default()).unwrap();
    /// let checked = policy.checked(None).unwrap();
    /// assert!(to_json(&checked).contains("\"rule\": \"R13\""));
    /// ```
    ///
    /// # Errors
    /// A script did not come to its end, no command is about the device, or there is no traffic control.
    pub fn checked(&self, dev: Option<&str>) -> Result<Checked, CheckError> {
        let troubles = || self.troubles().map(ToString::to_string).collect();
        if !self.ended() {
            return Err(CheckError::NotEnded(troubles()));
        }
        if let Some(dev) = dev {
            self.must_concern(dev).map_err(CheckError::NoSuchDevice)?;
        }
        let mut reading = self.reading();
        let mut findings = tidegate_inspect::check(&mut reading);
        let refused = findings.iter().any(is_cause);
        for outcome in &self.outcomes {
            let said = notes_its_end(&reading, outcome, &mut findings);
            let ended = ended_badly(&reading, outcome).filter(|_| !said && (outcome.cut_short || !refused));
            findings.extend(of_shell(&reading, outcome, ended.is_some()));
            findings.extend(ended);
        }
        if let Some(dev) = dev {
            findings.retain(|finding| concerns(&reading, finding, dev));
        }
        match self.nothing_found() {
            Some(why) => Err(CheckError::NothingFound { why, troubles: troubles() }),
            None => Ok(Checked { caveats: self.caveats().collect(), ..Checked::new(reading, findings) }),
        }
    }

    /// What is not in it because of how it was read: a sentence each.
    pub fn caveats(&self) -> impl Iterator<Item = String> {
        self.cut_off().chain(self.asks()).chain(self.left_out())
    }

    /// The questions that scripts ask which did not come to their end well: what failed may be for want of
    /// an answer.
    fn asks(&self) -> impl Iterator<Item = String> {
        let has_failed = |outcome: &&ScriptRun| outcome.unanswered.is_none() && !outcome.calls.is_empty();
        self.outcomes.iter().filter(has_failed).filter_map(|outcome| {
            let line = outcome.question.as_ref()?;
            let file = line.file.to_string_lossy();
            Some(format!("{}:{}: {}", tidegate_text::line(&file), line.line, tidegate_capture::asks(line)))
        })
    }

    /// What its scripts' ends cut off, arguments and files that they miss, that nothing is left of what they
    /// made, or that they make nothing: a sentence each.
    pub fn cut_off(&self) -> impl Iterator<Item = String> {
        let caveats = self.outcomes.iter().flat_map(ScriptRun::caveats).cloned();
        caveats.chain(self.nothing_left()).chain(self.only_deletes())
    }

    /// That all qdiscs that were made are gone at the end, as after `start` and `stop` in one script.
    fn nothing_left(&self) -> Option<String> {
        let makes = |op: &Op| matches!(op, Op::Qdisc(op) if !matches!(op.verb, Verb::Delete | Verb::Change));
        if !self.machine.log.iter().any(makes) {
            return None;
        }
        let is_left = self.reading().qdiscs.iter().any(|qdisc| !qdisc.handle.is_none());
        (!is_left).then(|| "at the end none of the qdiscs that were made is left".to_owned())
    }
}

/// Is it a refused command, and no failure that was expected?
fn is_cause(finding: &Finding) -> bool {
    finding.rule == Rule::Refused && finding.level != Level::Note
}

/// Says of the refused command with which a script ended early, that it did; whether there is one.
fn notes_its_end(reading: &PolicyModel, outcome: &ScriptRun, findings: &mut [Finding]) -> bool {
    let last = outcome.calls.last().filter(|call| call.code != 0);
    let (Some(call), Ended::Code(code @ 1..), true) = (last, &outcome.exit, outcome.cut_short) else {
        return false;
    };
    let Some(line) = &call.source else { return false };
    let name = line.file.display().to_string();
    let is_there = |place: &SourceLocation| {
        place.line == line.line && reading.sources.get(place.file).is_some_and(|source| source.name == name)
    };
    let is_it = |finding: &&mut Finding| is_cause(finding) && finding.place.as_ref().is_some_and(is_there);
    let Some(finding) = findings.iter_mut().find(is_it) else { return false };
    let ends =
        format!("; the script ends there, with code {code}: what its other lines would do is not checked");
    finding.because.push_str(&ends);
    true
}

/// What the shell could not run or read as it may be meant; `all_but_last`: the last trouble is reported as
/// what the script ended with.
fn of_shell(reading: &PolicyModel, outcome: &ScriptRun, all_but_last: bool) -> Vec<Finding> {
    let count = outcome.troubles.len().saturating_sub(usize::from(all_but_last));
    let of_trouble = |trouble: &Trouble| {
        let (level, effect) = match trouble.kind {
            // Where the policy is to run there may be such a tool.
            TroubleKind::NotRun => (Level::Note, "what that command would do is not known here"),
            TroubleKind::Dialect => (Level::Warning, "with bash the script may do something else"),
            TroubleKind::Failed | TroubleKind::Idle => return None,
        };
        Some(Finding {
            rule: Rule::Refused,
            level,
            place: place(reading, trouble),
            what: trouble.reason.clone(),
            because: format!("{effect}; {}", trouble.remedy.as_deref().unwrap_or("fix that line")),
            witness: None,
            fix: None,
        })
    };
    outcome.troubles.iter().take(count).chain(&outcome.remarks).filter_map(of_trouble).collect()
}

/// Where the files that were read have the line of a trouble.
fn place(reading: &PolicyModel, trouble: &Trouble) -> Option<SourceLocation> {
    let line = trouble.place.as_ref()?;
    let name = line.file.display().to_string();
    Some(SourceLocation {
        file: reading.sources.iter().position(|source| source.name == name)?,
        line: line.line,
        columns: line.columns.as_ref().map_or((0, 0), |at| (at.start, at.end)),
    })
}

/// A script that ended with an error of its own, although no command was refused.
fn ended_badly(reading: &PolicyModel, outcome: &ScriptRun) -> Option<Finding> {
    let code = match outcome.exit {
        Ended::Code(0) => return None,
        Ended::Code(code) => format!("code {code}"),
        Ended::Signal(signal) => format!("signal {signal}"),
        _ => return None,
    };
    // A clean-up of a machine that has nothing to clean ends so; where more should follow, it is an error.
    let deleted = outcome.calls.last().filter(|call| call.deletes_nothing() && !outcome.cut_short);
    if deleted.is_some_and(|call| outcome.exit == Ended::Code(call.code)) {
        return None;
    }
    let reason = outcome.troubles.last().map_or_else(|| code.clone(), Trouble::what_and_remedy);
    let place = outcome.troubles.last().and_then(|trouble| place(reading, trouble));
    Some(Finding {
        rule: Rule::Refused,
        level: Level::Error,
        place,
        what: format!("the script ends with {code}"),
        because: reason,
        witness: Some(Witness::Number(code)),
        fix: None,
    })
}
