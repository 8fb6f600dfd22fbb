//! A short policy's file: TOML into the tree that `tidegate_syntax::short` reads.

use crate::format::{InputFormat, sniff};
use std::path::Path;
use tidegate_packet::Rate;
use tidegate_syntax::short::{
    Compiled, Entry, Imported, Problem, Short, Span, SpannedValue, TomlValue, compile, read, read_fireqos,
    read_iface_conf, read_uci,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads and compiles a short policy.
///
/// # Errors
/// All that is wrong with it, in the order of the file.
pub fn understand(text: &str) -> Result<(Short, Compiled), Vec<Problem>> {
    let short = read(&entries(text)?)?;
    let compiled = compile(&short);
    Ok((short, compiled))
}

/// The most problems of one file that are reported.
const MAX_PROBLEMS: usize = 100;

/// Problems in a compiler's style.
pub fn tell(path: &Path, text: &str, problems: &[Problem]) -> String {
    let name = path.display().to_string();
    let sentence: String =
        problems.iter().take(MAX_PROBLEMS).map(|problem| problem.tell(&name, text)).collect();
    match problems.len().saturating_sub(MAX_PROBLEMS) {
        0 => sentence,
        more => format!("{sentence}{name}: and {more} more\n"),
    }
}

/// Do files of this format come to short policies?
pub fn is_short(format: InputFormat) -> bool {
    matches!(format, InputFormat::Short | InputFormat::Uci | InputFormat::SqmConf | InputFormat::FireQos)
}

/// The short policies that a file comes to: it is one, or SQM's or FireQOS's settings for several interfaces.
///
/// # Errors
/// All that is wrong with it, in the order of the file.
pub fn policies(format: InputFormat, name: &str, text: &str) -> Result<Vec<(Short, Compiled)>, Vec<Problem>> {
    let imported = match format {
        InputFormat::Uci => read_uci(text)?,
        InputFormat::SqmConf => read_iface_conf(text, name)?,
        InputFormat::FireQos => read_fireqos(text)?,
        _ => return Ok(vec![understand(text)?]),
    };
    let policy = |Imported { entries, notes }: Imported| {
        let short = read(&entries)?;
        let mut compiled = compile(&short);
        compiled.notes.splice(0..0, notes);
        Ok((short, compiled))
    };
    imported.into_iter().map(policy).collect()
}

/// The rates, up and down, that a short policy names; none of another policy.
///
/// # Errors
/// In words: its mistakes.
pub fn rates_of(file: &Path, text: &str) -> Result<(Option<Rate>, Option<Rate>), String> {
    let name = file.to_string_lossy();
    let format = sniff(&name, text.as_bytes()).ok();
    let Some(format) = format.filter(|format| is_short(*format)) else { return Ok((None, None)) };
    let policies = policies(format, &name, text)
        .map_err(|problems| tell(file, text, &problems).trim_end().to_owned())?;
    // With several policies in a file, no one knows which link is meant.
    let [(policy, _)] = policies.as_slice() else { return Ok((None, None)) };
    let rate = |given: &Option<_>| {
        given.as_ref().map(|given: &tidegate_syntax::short::Spanned<u64>| Rate::bits(given.value))
    };
    Ok((rate(&policy.up), rate(&policy.down)))
}

/// The policies for a kernel that has no cake, where it is not the file that asks for one.
pub fn without_cake(policies: Vec<(Short, Compiled)>) -> Vec<(Short, Compiled)> {
    let again = |(short, compiled): (Short, Compiled)| {
        let kind = short.kind;
        let short = short.without_cake();
        let compiled = if short.kind == kind { compiled } else { compile(&short) };
        (short, compiled)
    };
    policies.into_iter().map(again).collect()
}

/// The values of a file of TOML, each with its place.
///
/// # Errors
/// Where it is no TOML.
pub fn entries(text: &str) -> Result<Vec<Entry>, Vec<Problem>> {
    let places = Places::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problem = |error: toml::de::Error| {
            let (what, remedy) = what_is_wrong(error.message().lines().next().unwrap_or_default());
            Problem { span: places.span(error.span().unwrap_or_default()), what, remedy: remedy.into() }
        };
        return Err(errors.into_iter().map(problem).collect());
    }
    Ok(table_of(table.into_inner(), &places))
}

/// What the TOML parser complains about, and what to do about it.
fn what_is_wrong(complaint: &str) -> (String, &'static str) {
    match complaint {
        "duplicate key" => {
            ("this key is here twice".to_owned(), "Keep one of the two; a key has one value in its section.")
        }
        said if said.contains("recurs") => (
            "lists or tables are nested too deep here".to_owned(),
            "A short policy nests them once; take the brackets out.",
        ),
        said => (
            format!("this is not TOML: {said}"),
            "Write key = value, texts in quotes, lists as [\"a\", \"b\"], a class as [classes.NAME].",
        ),
    }
}

/// Where the lines begin.
struct Places<'t> {
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> Places<'t> {
    fn new(text: &'t str) -> Places<'t> {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Places { text, begins: std::iter::once(0).chain(ends).collect() }
    }

    fn span(&self, range: std::ops::Range<usize>) -> Span {
        let line = self.begins.partition_point(|begin| *begin <= range.start).max(1);
        let begin = self.begins[line - 1];
        let end = self.begins.get(line).map_or(self.text.len(), |next| next - 1);
        let letters =
            |from: usize, to: usize| self.text.get(from..to.max(from)).map_or(0, |text| text.chars().count());
        let from = letters(begin, range.start.min(end)) + 1;
        let long = letters(range.start.min(end), range.end.min(end)).max(1);
        Span { line, from, to: from + long - 1 }
    }
}

fn table_of(table: DeTable<'_>, places: &Places<'_>) -> Vec<Entry> {
    let mut entries: Vec<(usize, Entry)> = table
        .into_iter()
        .map(|(key, value)| {
            let at = key.span().start;
            let span = places.span(key.span());
            (at, Entry { key: key.into_inner().into_owned(), span, node: node(value, places) })
        })
        .collect();
    // The parser sorts by name; the order of classes is their rank.
    entries.sort_by_key(|(at, _)| *at);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn node(value: Spanned<DeValue<'_>>, places: &Places<'_>) -> SpannedValue {
    let span = places.span(value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => TomlValue::Text(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => TomlValue::Whole(number),
            Err(_) => TomlValue::Other(number.as_str().to_owned()),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => TomlValue::Real(number),
            Err(_) => TomlValue::Other(number.as_str().to_owned()),
        },
        DeValue::Boolean(truth) => TomlValue::Truth(truth),
        DeValue::Datetime(date) => TomlValue::Other(date.to_string()),
        DeValue::Array(items) => TomlValue::List(items.into_iter().map(|item| node(item, places)).collect()),
        DeValue::Table(table) => TomlValue::Table(table_of(table, places)),
    };
    SpannedValue { span, value }
}
