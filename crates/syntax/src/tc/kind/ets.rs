//! ets.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::number::u32_in;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Take};
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::spec::OptionSpec;
use tidegate_policy::{ClassParams, EtsClassParams, EtsParams, MAX_BANDS, QdiscParams};

pub(super) struct Ets;

impl Syntax for Ets {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let mut given = EtsWords::default();
        reader.each(reader.table(), words, &mut given)?;
        complete(given, reader).map(|params| Some(QdiscParams::Ets(params)))
    }

    fn class(&self, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
        let mut quantum = Quantum::default();
        reader.each(reader.table(), words, &mut quantum)?;
        Ok(ClassParams::Ets(EtsClassParams { quantum: quantum.0 }))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Ets(params) = &dump.params {
            show(params, entry);
        }
    }

    fn show_class(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let ClassParams::Ets(EtsClassParams { quantum: Some(quantum) }) = &dump.params {
            entry.number("quantum", *quantum, &format!("quantum {quantum} "));
        }
    }
}

/// A list of numbers under way.
#[derive(Clone, Copy, Default, PartialEq)]
enum List {
    #[default]
    None,
    Quanta,
    Priomap,
}

/// The options read so far.
#[derive(Default)]
struct EtsWords {
    bands: Option<u32>,
    strict: Option<u32>,
    quanta: Vec<u32>,
    priomap: Vec<u8>,
    quanta_begun: bool,
    priomap_begun: bool,
    list: List,
}

impl Take for EtsWords {
    fn option(
        &mut self,
        _reader: &Reader<'_>,
        option: &'static OptionSpec,
        _word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        self.list = List::None;
        match option.key {
            "bands" => self.bands = Some(count("bands", self.bands, words)?),
            "strict" => self.strict = Some(count("strict", self.strict, words)?),
            "quanta" => {
                begin("quanta", &mut self.quanta_begun, words)?;
                self.list = List::Quanta;
            }
            _ => {
                begin("priomap", &mut self.priomap_begun, words)?;
                self.list = List::Priomap;
            }
        }
        Ok(())
    }

    fn element(&mut self, word: &str, words: &Words<'_>) -> Result<bool, Refusal> {
        let place = words.last();
        match self.list {
            List::None => return Ok(false),
            List::Quanta => self.quanta.push(quantum(word).map_err(|refusal| refusal.at(place))?),
            List::Priomap => {
                let band = priority(word, self.priomap.len()).map_err(|refusal| refusal.at(place))?;
                self.priomap.push(band);
            }
        }
        Ok(true)
    }
}

/// The options of a class.
#[derive(Default)]
struct Quantum(Option<u32>);

impl Take for Quantum {
    fn option(
        &mut self,
        _reader: &Reader<'_>,
        _option: &'static OptionSpec,
        _word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        let text = words.need()?;
        self.0 = Some(quantum(text).map_err(|refusal| refusal.at(words.last()))?);
        Ok(())
    }
}

/// A number of bands, given once.
fn count(name: &str, before: Option<u32>, words: &mut Words<'_>) -> Result<u32, Refusal> {
    if before.is_some_and(|count| count > 0) {
        return Err(Refusal::new(1, format!("Duplicate \"{name}\""))
            .at(words.last())
            .remedy(format!("Give {name} once.")));
    }
    let text = words.need()?;
    let count = u32_in(text, 10).ok_or_else(|| {
        Refusal::new(1, format!("Illegal \"{name}\""))
            .at(words.last())
            .remedy(format!("{name} takes a decimal number."))
    })?;
    if count as usize > MAX_BANDS {
        return Err(Refusal::new(1, format!("The number of \"{name}\" must be <= {MAX_BANDS}"))
            .at(words.last())
            .remedy("There can be 16 bands."));
    }
    Ok(count)
}

fn begin(name: &str, begun: &mut bool, words: &mut Words<'_>) -> Result<(), Refusal> {
    if core::mem::replace(begun, true) {
        return Err(Refusal::new(1, format!("Duplicate \"{name}\""))
            .at(words.last())
            .remedy(format!("Give {name} once.")));
    }
    match words.peek() {
        Some(_) => Ok(()),
        None => words.need().map(|_| ()),
    }
}

fn quantum(word: &str) -> Result<u32, Refusal> {
    match u32_in(word, 10) {
        Some(0) => {
            Err(Refusal::new(1, "\"quanta\" must be > 0")
                .remedy("A quantum is a number of bytes, at least 1."))
        }
        Some(bytes) => Ok(bytes),
        None => Err(Refusal::new(1, "Illegal \"quanta\" element")
            .remedy(format!("Quanta are decimal numbers of bytes; \"{word}\" is not one."))),
    }
}

fn priority(word: &str, before: usize) -> Result<u8, Refusal> {
    let Some(band) = u32_in(word, 10) else {
        return Err(Refusal::new(1, "Illegal \"priomap\" element")
            .remedy(format!("\"{word}\" is not a band: give numbers from 0.")));
    };
    if before > 15 {
        return Err(Refusal::new(1, "\"priomap\" index cannot be higher than 15")
            .remedy("There are 16 priorities: give 16 bands at most."));
    }
    u8::try_from(band).map_err(|_| out_of_bounds())
}

fn out_of_bounds() -> Refusal {
    Refusal::new(1, "\"priomap\" element is out of bounds")
        .remedy("Bands are numbered from 0 to one less than there are.")
}

fn complete(given: EtsWords, reader: &Reader<'_>) -> Result<EtsParams, Refusal> {
    let strict = given.strict.unwrap_or(0);
    let needed = strict as usize + given.quanta.len();
    let bands = given.bands.filter(|bands| *bands > 0).unwrap_or(needed as u32);
    if bands == 0 {
        return Err(Refusal::new(1, "One of \"bands\", \"quanta\" or \"strict\" needs to be specified")
            .then(&reader.usage())
            .remedy("Say how many bands there are: ets bands 4 strict 2"));
    }
    if (bands as usize) < needed {
        return Err(Refusal::new(1, "Not enough total bands to cover all the strict bands and quanta")
            .then(&reader.usage())
            .remedy(format!("strict and quanta together need {needed} bands.")));
    }
    if given.priomap.iter().any(|band| u32::from(*band) >= bands) {
        return Err(out_of_bounds());
    }
    Ok(EtsParams {
        bands: bands.min(255) as u8,
        strict: strict as u8,
        quanta: given.quanta,
        priomap: given.priomap,
    })
}

fn show(params: &EtsParams, entry: &mut Entry) {
    let EtsParams { bands, strict, quanta, priomap } = params;
    entry.number("bands", *bands, &format!("bands {bands} "));
    if *strict > 0 {
        entry.number("strict", *strict, &format!("strict {strict} "));
    }
    if !quanta.is_empty() {
        row("quanta", quanta.iter().copied(), entry);
    }
    row("priomap", priomap.iter().map(|band| u32::from(*band)), entry);
}

fn row(name: &'static str, numbers: impl Iterator<Item = u32> + Clone, entry: &mut Entry) {
    entry.say(&format!("{name} "));
    numbers.clone().for_each(|number| entry.say(&format!("{number} ")));
    entry.member(name, Json::Numbers(numbers.collect()));
}
