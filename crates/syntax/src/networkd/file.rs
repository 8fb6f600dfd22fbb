//! The lines of a file: sections and their settings (systemd.syntax(7)).

use crate::nft::Span;
use crate::short::Problem;

/// A section, one of several of its name perhaps.
#[derive(Debug)]
pub(super) struct FileSection<'t> {
    pub(super) name: &'t str,
    pub(super) heading: Span,
    pub(super) settings: Vec<Setting<'t>>,
}

/// A line `KEY=VALUE`.
#[derive(Debug)]
pub(super) struct Setting<'t> {
    pub(super) key: &'t str,
    pub(super) value: &'t str,
    pub(super) key_span: Span,
    pub(super) value_span: Span,
}

impl Setting<'_> {
    /// What is wrong with its value.
    pub(super) fn wrong(&self, what: &str, remedy: &str) -> Problem {
        Problem::new(
            self.value_span,
            format!("{}={} is {what}, so systemd-networkd leaves the line out", self.key, self.value),
            remedy,
        )
    }
}

/// The sections of a text, and lines that are none of any; what is wrong with a line matters in some only.
pub(super) fn sections(text: &str, matters: impl Fn(&str) -> bool) -> (Vec<FileSection<'_>>, Vec<Problem>) {
    let (mut sections, mut problems) = (Vec::<FileSection<'_>>::new(), Vec::new());
    for (line, raw) in (1..).zip(text.lines()) {
        let code = raw.trim();
        if code.is_empty() || code.starts_with(['#', ';']) {
            continue;
        }
        let begins = raw.len() - raw.trim_start().len();
        let span = span_of(raw, begins, code, line);
        let name = code.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(name) = name {
            sections.push(FileSection { name, heading: span, settings: Vec::new() });
        } else if let (Some(section), Some((key, value))) = (sections.last_mut(), code.split_once('=')) {
            let (key, value) = (key.trim_end(), value.trim_start());
            section.settings.push(Setting {
                key,
                value,
                key_span: span_of(raw, begins, key, line),
                value_span: span_of(raw, begins + code.len() - value.len(), value, line),
            });
            if matters(section.name) && value.ends_with('\\') {
                problems.push(Problem::new(span, "a line that goes on is not read", "write it in one line"));
            }
        } else if sections.last().is_none_or(|section| matters(section.name)) {
            let what = match sections.is_empty() {
                true => "it stands before any [Section]",
                false => "neither a [Section] nor KEY=VALUE",
            };
            problems.push(Problem::new(
                span,
                format!("{what}, so systemd-networkd leaves the line out"),
                "correct it, or begin it with # if it is a comment",
            ));
        }
    }
    (sections, problems)
}

/// The place of a part of a line that begins at a byte of it.
fn span_of(line: &str, begins: usize, part: &str, number: usize) -> Span {
    let from = line.get(..begins).map_or(0, |text| text.chars().count()) + 1;
    Span { line: number, from, to: from + part.chars().count().max(1) - 1 }
}
