//! Why a request has no document: reason, remedy, places.

use serde::Serialize;
use tidegate_capture::Trouble;
use tidegate_loader::LoadedPolicy;
use tidegate_scenario::tables::Diagnostic;
use tidegate_syntax::short::Problem;

/// The most places of one refusal.
const MAX_PLACES: usize = 50;

/// Why a request has no document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Refusal {
    /// What is wrong, for people.
    pub(crate) reason: String,
    /// What to do.
    pub(crate) remedy: Option<String>,
    /// Where in the text.
    pub(crate) places: Vec<RefusedPlace>,
}

/// What is wrong at one place of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RefusedPlace {
    /// The line, from 1.
    line: usize,
    /// The first column and the one behind the last, in characters from 0; none: the whole line.
    columns: Option<[usize; 2]>,
    /// What is wrong.
    reason: String,
    /// What to write instead.
    remedy: Option<String>,
}

impl Refusal {
    /// For a reason only.
    pub(crate) fn new(reason: impl Into<String>) -> Refusal {
        Refusal { reason: reason.into(), ..Refusal::default() }
    }

    /// For a reason, with what to do.
    pub(crate) fn with(reason: impl Into<String>, remedy: impl Into<String>) -> Refusal {
        Refusal { reason: reason.into(), remedy: Some(remedy.into()), places: Vec::new() }
    }

    /// Mistakes of a short policy.
    pub(crate) fn of_short(problems: &[Problem]) -> Refusal {
        let place = |problem: &Problem| RefusedPlace {
            line: problem.span.line,
            columns: Some([problem.span.from.saturating_sub(1), problem.span.to]),
            reason: problem.what.clone(),
            remedy: Some(problem.remedy.clone()),
        };
        let places: Vec<RefusedPlace> = problems.iter().take(MAX_PLACES).map(place).collect();
        let reason = match problems {
            [one] => one.what.clone(),
            several => format!("{} mistakes in the policy", several.len()),
        };
        Refusal { reason, remedy: None, places }
    }

    /// What went wrong in a policy's commands.
    pub(crate) fn of_troubles(reason: impl Into<String>, loaded: &LoadedPolicy) -> Refusal {
        let mut refusal = Refusal::new(reason);
        for trouble in loaded.troubles().filter(|trouble| !trouble.is_idle()).take(MAX_PLACES) {
            match &trouble.place {
                None => refusal.reason += &format!("; {}", tidegate_text::line(&trouble.what_and_remedy())),
                Some(place) => refusal.places.push(RefusedPlace {
                    line: place.line,
                    columns: place.columns.clone().map(|columns| [columns.start, columns.end]),
                    reason: said(trouble),
                    remedy: trouble.remedy.clone(),
                }),
            }
        }
        refusal
    }

    /// A mistake of a scenario's text.
    pub(crate) fn of_scenario(wrong: &Diagnostic, text: &str) -> Refusal {
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(wrong.at.start), floor(wrong.at.end));
        let begin = text[..start].rfind('\n').map_or(0, |found| found + 1);
        let letters = |to: usize| text[begin..to.max(begin)].chars().count();
        let line_end = text[start..].find('\n').map_or(text.len(), |found| start + found);
        let place = RefusedPlace {
            line: text[..start].matches('\n').count() + 1,
            columns: Some([letters(start), letters(end.clamp(start, line_end)).max(letters(start) + 1)]),
            reason: wrong.reason.clone(),
            remedy: Some(wrong.remedy.clone()),
        };
        Refusal { reason: wrong.reason.clone(), remedy: Some(wrong.remedy.clone()), places: vec![place] }
    }

    /// As a document.
    pub(crate) fn to_json(&self) -> String {
        let refused = serde_json::json!({ "refused": self });
        serde_json::to_string_pretty(&refused).unwrap_or_default() + "\n"
    }
}

fn said(trouble: &Trouble) -> String {
    format!("{}: {}", trouble.who, trouble.reason.trim_end())
}
