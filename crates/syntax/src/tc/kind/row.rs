//! What a kind's file contains, as its row lists it.

use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::spelling::{ListedValue, Spelling};
use crate::tc::words::Words;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::spec::KindSpec;
use tidegate_policy::{ClassParams, Kind, QdiscParams};

/// How tc reads the options of a kind, and how it lists it.
pub(in crate::tc) trait Syntax: Sync {
    /// Reads the options of a qdisc. `None`: tc sends no parameters. Warnings of tc, which then continues,
    /// are added to `stderr`.
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        reader.options(words).map(|_| None)
    }

    /// Reads the options of a class, of kinds that have a table of them.
    fn class(&self, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
        reader.class_options(words).map(|_| ClassParams::None)
    }

    /// The parameters in force.
    fn show(&self, _dump: &QdiscDump, _flags: &ShowFlags, _entry: &mut Entry) {}

    /// What only this kind counts, in lines below the counters that all have.
    fn show_stats(&self, _dump: &QdiscDump, _flags: &ShowFlags, _entry: &mut Entry) {}

    /// The parameters of a class in force.
    fn show_class(&self, _dump: &ClassDump, _flags: &ShowFlags, _entry: &mut Entry) {}

    /// What only this kind's classes count.
    fn show_class_stats(&self, _dump: &ClassDump, _flags: &ShowFlags, _entry: &mut Entry) {}

    /// What its listings write otherwise than its commands do.
    fn spelling(&self) -> &'static Spelling {
        &Spelling::SAME
    }

    /// The words of a listing that a member of a listing in JSON is, where that is not the option of this
    /// name and its value; `_all` are the members beside it.
    fn member(
        &self,
        _key: &str,
        _value: &ListedValue,
        _all: &[(String, ListedValue)],
    ) -> Option<Vec<String>> {
        None
    }

    /// Finds the values of options that a listing shows rounded.
    fn settle(&self, _args: &mut Vec<String>) {}
}

/// The refusal of words after a name for which tc has no words.
pub(in crate::tc) fn unparsable(kind: &str, words: &Words<'_>) -> Result<(), Refusal> {
    let Some(option) = words.peek() else { return Ok(()) };
    let names: Vec<_> = KindSpec::all().map(|spec| spec.name).collect();
    let remedy = match crate::nearest(kind, names.iter().copied()) {
        _ if Kind::named(kind).is_some() => format!("{kind} has nothing to set: write it alone."),
        Some(name) => format!("There is no kind \"{kind}\"; did you mean {name}?"),
        None => format!("There is no kind \"{kind}\"; this version knows {}.", names.join(", ")),
    };
    Err(Refusal::new(1, format!("Unknown qdisc \"{kind}\", hence option \"{option}\" is unparsable"))
        .at(words.last())
        .remedy(remedy))
}
