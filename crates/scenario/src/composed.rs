//! Traces as they are taken: parts of recordings, scaled, begun elsewhere, several times, one after the
//! other; and how that is written on a command line.
//!
//! ```text
//! drive.csv:column=DL_bitrate:skip=30s:length=2min + city.csv:scale=0.5:loop=3
//! ```

use crate::presets::PresetDirection;
use crate::quantities;
use crate::recorded::{BadRecording, Taken, cut, delays, read};
use tidegate_packet::Nanos;
use tidegate_sim::Trace;

/// The most recordings that are joined.
pub(crate) const MAX_PARTS: usize = 64;
/// The most times that a recording is repeated.
pub(crate) const MAX_LOOPS: u64 = 10_000;
/// The seed of a preset whose seed is not given.
pub(crate) const USUAL_SEED: u64 = 1;
/// The factors by which rates may be multiplied.
pub(crate) const SCALES: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// What is made of a recording after it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shaping {
    /// No more than this of it.
    pub(crate) length: Option<Nanos>,
    /// It begins here, and what is before follows at its end.
    pub(crate) offset: Nanos,
    /// It is repeated so many times; 0: once.
    pub(crate) loops: u32,
    /// It does not begin again.
    pub(crate) is_lasting: bool,
}

impl Shaping {
    /// Shapes a trace.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) fn of(&self, trace: Trace) -> Result<Trace, String> {
        let mut trace = trace;
        if self.length.is_some() {
            trace = trace.part(Nanos(0), self.length)?;
        }
        if self.offset > Nanos(0) {
            trace = trace.begun_at(self.offset)?;
        }
        if self.loops > 1 {
            trace = trace.repeated(self.loops)?;
        }
        if self.is_lasting { trace.lasting() } else { Ok(trace) }
    }
}

/// A trace with the delays of LeoReplayer, as long as it is itself.
///
/// # Errors
/// What is wrong with the file of delays; it has delays already.
pub(crate) fn with_delays(trace: Trace, text: &str) -> Result<Trace, BadRecording> {
    if trace.has_delays() {
        return Err(BadRecording::new(1, "the recording has delays already", "leave `delays` out"));
    }
    let steps = delays(text)?;
    let how = "cut the file";
    trace.with_delays(steps).map_err(|(_, why)| BadRecording::new(1, why, how))
}

/// A file of a recording, or a direction of a preset, and how it is taken.
#[derive(Clone, Debug)]
struct SpecPart {
    file: String,
    /// It is no file: this is generated, from the seed.
    preset: Option<PresetDirection>,
    seed: Option<u64>,
    delays: Option<String>,
    taken: Taken,
    shaping: Shaping,
    /// The options as they were written.
    options: Vec<(String, String)>,
}

/// A trace as a command line names it: a file or a direction of a preset, or several joined by `+`, each with
/// options behind it, such as `lte.csv:skip=30s:scale=0.5+lte/down:seed=2`.
#[derive(Clone, Debug)]
pub struct TraceSpec {
    parts: Vec<SpecPart>,
}

/// The options of a file or a preset: those that a link's `trace` in a scenario has.
const KEYS: [&str; 8] = ["column", "scale", "skip", "length", "offset", "loop", "delays", "seed"];

/// Names separated by a letter. One with a backslash before it is a letter of a name.
///
/// ```
/// use tidegate_scenario::split_names;
///
/// assert_eq!(split_names(r"a.csv,b\,c.csv,", ','), ["a.csv", "b,c.csv", ""]);
/// ```
pub fn split_names(text: &str, separator: char) -> Vec<String> {
    let (mut names, mut name) = (Vec::new(), String::new());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&separator) => name.extend(letters.next()),
            _ if letter == separator => names.push(std::mem::take(&mut name)),
            _ => name.push(letter),
        }
    }
    names.push(name);
    names
}

/// The reverse of [`split_names`].
pub fn joined_names<'n>(names: impl IntoIterator<Item = &'n str>, separator: char) -> String {
    let escaped = names.into_iter().map(|name| name.replace(separator, &format!("\\{separator}")));
    escaped.collect::<Vec<_>>().join(separator.encode_utf8(&mut [0; 4]))
}

impl TraceSpec {
    /// Reads it. `exists` says whether there is a file of a name: names may contain what separates others.
    ///
    /// # Errors
    /// What is wrong with an option, and what to write instead.
    pub fn parse(text: &str, exists: &dyn Fn(&str) -> bool) -> Result<TraceSpec, String> {
        let (name, options) = split_options(text);
        let is_one = || exists(name) && options.iter().all(|(_, value)| !value.contains('+'));
        let texts = if exists(text) || is_one() { vec![text.to_owned()] } else { split_names(text, '+') };
        if texts.len() > MAX_PARTS {
            return Err(format!("more than {MAX_PARTS} recordings are joined"));
        }
        let last = texts.len() - 1;
        let parts = texts.into_iter().enumerate().map(|(at, text)| {
            let (file, options) = if exists(&text) { (&*text, vec![]) } else { split_options(&text) };
            let part = SpecPart::of(file, &options, exists(file))?;
            if let Some((_, last)) = part.file.rsplit_once(':')
                && let Some((key, _)) = last.split_once('=')
                && !exists(&part.file)
            {
                return Err(format!(
                    "{text}: `{key}` is no option of a recording; there are {}",
                    KEYS.join(", ")
                ));
            }
            match part.shaping.is_lasting && at < last {
                true => Err("loop=false is of the last recording: it is what holds at the end".to_owned()),
                false => Ok(part),
            }
        });
        Ok(TraceSpec { parts: parts.collect::<Result<_, _>>()? })
    }

    /// The files that it names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.parts
            .iter()
            .flat_map(|part| [Some(&part.file).filter(|_| part.preset.is_none()), part.delays.as_ref()])
            .flatten()
            .map(String::as_str)
    }

    /// Does it name one file and nothing more?
    pub fn is_plain(&self) -> bool {
        matches!(&self.parts[..], [part] if part.options.is_empty() && part.preset.is_none())
    }

    /// The trace; `text` reads a file.
    ///
    /// # Errors
    /// The file, its line, what is wrong there and what to do; what `text` says.
    pub fn read(&self, text: &dyn Fn(&str) -> Result<String, String>) -> Result<Trace, String> {
        let mut traces = Vec::with_capacity(self.parts.len());
        let mut is_lasting = false;
        for part in &self.parts {
            is_lasting |= part.shaping.is_lasting;
            traces.push(part.read(text)?);
        }
        let joined = match <[Trace; 1]>::try_from(traces) {
            Ok([one]) => one,
            Err(traces) => Trace::joined(&traces).map_err(|(at, why)| {
                format!("{}: {why}; join recordings of the same", self.parts[at].file)
            })?,
        };
        if is_lasting { joined.lasting() } else { Ok(joined) }
    }

    /// As the value of a link's `trace` in a scenario; `path` is where a file is found from there.
    ///
    /// # Errors
    /// What `path` says.
    pub fn to_toml<E>(&self, path: &dyn Fn(&str) -> Result<String, E>) -> Result<String, E> {
        let mut parts = Vec::new();
        for part in &self.parts {
            parts.push(part.to_toml(path, self.parts.len() > 1)?);
        }
        Ok(match &parts[..] {
            [one] => one.clone(),
            _ => {
                let lasting = self.parts.iter().any(|part| part.shaping.is_lasting);
                let end = if lasting { ", loop = false" } else { "" };
                format!("{{ join = [{}]{end} }}", parts.join(", "))
            }
        })
    }
}

/// A name, and the options behind it: from the right, as long as they are known.
fn split_options(text: &str) -> (&str, Vec<(&str, &str)>) {
    let (mut name, mut options) = (text, Vec::new());
    while let Some((before, last)) = name.rsplit_once(':')
        && let Some((key, value)) = last.split_once('=')
        && KEYS.contains(&key)
    {
        options.insert(0, (key, value));
        name = before;
    }
    (name, options)
}

impl SpecPart {
    fn of(file: &str, options: &[(&str, &str)], exists: bool) -> Result<SpecPart, String> {
        if file.is_empty() {
            return Err("a recording has no name: write FILE, or FILE+FILE".into());
        }
        let mut part = SpecPart {
            file: file.to_owned(),
            preset: if exists { None } else { PresetDirection::named(file) },
            seed: None,
            delays: None,
            taken: Taken::default(),
            shaping: Shaping::default(),
            options: options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        for (at, (key, value)) in options.iter().enumerate() {
            if options[..at].iter().any(|(other, _)| other == key) {
                return Err(format!("{file}: {key} is given twice"));
            }
            part.set(key, value).map_err(|why| format!("{file}: {key}={value}: {why}"))?;
        }
        if part.preset.is_some() && (part.delays.is_some() || part.taken.column.is_some()) {
            return Err(format!("{file}: a preset has one rate and its delays: leave out column and delays"));
        }
        if part.preset.is_none() && part.seed.is_some() {
            return Err(format!("{file}: seed is of a preset, such as lte/down"));
        }
        Ok(part)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "column" => self.taken.column = Some(value.to_owned()),
            "delays" => self.delays = Some(value.to_owned()),
            "skip" => self.taken.skip = quantities::span(value)?,
            "length" => self.shaping.length = Some(quantities::span(value)?),
            "offset" => self.shaping.offset = quantities::span(value)?,
            "scale" => {
                let factor = value.parse::<f64>().ok().filter(|factor| SCALES.contains(factor));
                self.taken.scale = factor.ok_or("write a factor from 0.000001 to 1000000, such as 0.5")?;
            }
            "seed" => {
                let seed = value.parse::<u64>().ok().filter(|seed| *seed <= i64::MAX as u64);
                self.seed = Some(seed.ok_or("write a whole number from 0 on")?);
            }
            _ if value == "false" => self.shaping.is_lasting = true,
            // As without it.
            _ if value == "true" => {}
            _ => {
                let times = value.parse::<u64>().ok().filter(|times| (1..=MAX_LOOPS).contains(times));
                let times = times
                    .ok_or_else(|| format!("write how many times, 1 to {MAX_LOOPS}, or true or false"))?;
                self.shaping.loops = times as u32;
            }
        }
        Ok(())
    }

    fn read(&self, text: &dyn Fn(&str) -> Result<String, String>) -> Result<Trace, String> {
        let place = |file: &str, wrong: BadRecording| {
            format!("{file}:{}: {}; {}", wrong.line, wrong.why, wrong.remedy)
        };
        let failed = |why: String| format!("{}: {why}", self.file);
        let mut trace = match self.preset {
            Some(preset) => {
                let whole = preset.trace(self.seed.unwrap_or(USUAL_SEED));
                cut(whole, self.taken.skip, self.taken.scale).map_err(failed)?
            }
            None => read(&text(&self.file)?, &self.taken).map_err(|wrong| place(&self.file, wrong))?,
        };
        if let Some(file) = &self.delays {
            trace = with_delays(trace, &text(file)?).map_err(|wrong| place(file, wrong))?;
        }
        // Of several joined ones only the whole lasts.
        let shaping = Shaping { is_lasting: false, ..self.shaping };
        shaping.of(trace).map_err(failed)
    }

    fn to_toml<E>(&self, path: &dyn Fn(&str) -> Result<String, E>, is_joined: bool) -> Result<String, E> {
        let mut keys = match self.preset {
            Some(_) => vec![format!("preset = {}", toml_text(&self.file))],
            None if self.options.is_empty() => return Ok(toml_text(&path(&self.file)?)),
            None => vec![format!("file = {}", toml_text(&path(&self.file)?))],
        };
        for (key, value) in &self.options {
            keys.push(match key.as_str() {
                "scale" | "seed" => format!("{key} = {value}"),
                "loop" if value == "false" && is_joined => continue,
                "loop" => format!("loop = {value}"),
                "delays" => format!("delays = {}", toml_text(&path(value)?)),
                _ => format!("{key} = {}", toml_text(value)),
            });
        }
        Ok(format!("{{ {} }}", keys.join(", ")))
    }
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::LinePreset;

    fn files(name: &str) -> Result<String, String> {
        match name {
            "a.csv" => Ok("time,rate_mbit\n0,1\n1,2\n2,3\n".into()),
            "b+c.csv" => Ok("time,up_mbit,down_mbit\n0,1,8\n1,1,16\n".into()),
            "bw.txt" => Ok("1\n2\n3\n4\n".into()),
            "delay.txt" => Ok("24\n18\n".into()),
            "wrong.txt" => Ok("24\nx\n".into()),
            "lossy.csv" => Ok("time,rate_mbit,delay_ms,loss_percent\n0,1,5,3\n1,2,6,0\n".into()),
            "out.csv" => Ok("time,rate_mbit,delay_ms\n0,1,5\n1,2,6\n".into()),
            _ => Err(format!("{name}: there is no such file")),
        }
    }

    fn spec(text: &str) -> Result<TraceSpec, String> {
        TraceSpec::parse(text, &|name| files(name).is_ok())
    }

    fn trace(text: &str) -> Result<Trace, String> {
        spec(text)?.read(&files)
    }

    /// Mbit/s of each second.
    fn seconds(text: &str, count: u64) -> Result<Vec<u64>, String> {
        let trace = trace(text)?;
        let carried = |n| trace.carries(Nanos::secs(n), Nanos::secs(n + 1)).unwrap_or(0) / 125_000;
        Ok((0..count).map(carried).collect())
    }

    #[test]
    fn a_trace_is_taken_as_its_options_say() {
        for (text, expected) in [
            ("a.csv", [1, 2, 3, 1, 2, 3]),
            ("a.csv:skip=1s", [2, 3, 2, 3, 2, 3]),
            ("a.csv:length=2s", [1, 2, 1, 2, 1, 2]),
            ("a.csv:skip=1s:length=1s:loop=3", [2; 6]),
            ("a.csv:scale=2:offset=1s", [4, 6, 2, 4, 6, 2]),
            ("a.csv:loop=false", [1, 2, 3, 3, 3, 3]),
            ("a.csv:loop=true", [1, 2, 3, 1, 2, 3]),
            (r"a.csv:length=1s+b\+c.csv:column=up_mbit:loop=true", [1, 1, 1, 1, 1, 1]),
            ("b+c.csv:column=down_mbit", [8, 16, 8, 16, 8, 16]),
            ("a.csv:length=1s+a.csv:skip=2s:loop=2", [1, 3, 3, 1, 3, 3]),
            ("a.csv:length=1s+a.csv:skip=2s:loop=2:loop=false", [0; 6]),
            ("a.csv:length=1s+a.csv:skip=2s:loop=false", [1, 3, 3, 3, 3, 3]),
        ] {
            match seconds(text, 6) {
                Ok(found) => assert_eq!(found, expected, "{text}"),
                Err(why) => assert_eq!(why, "a.csv: loop is given twice", "{text}"),
            }
        }
        let leo = trace("bw.txt:delays=delay.txt").expect("a trace");
        assert_eq!((leo.mean_rate(), leo.mean_delay()), (Some(12_000_000), Some(Nanos::millis(21))));
        let half = trace("bw.txt:scale=0.5").expect("a trace");
        assert_eq!(half.mean_rate(), Some(6_000_000));
    }

    /// A direction of a preset stands beside files; one file has losses, and the preset none.
    #[test]
    fn presets_are_parts() {
        let lte = LinePreset::named("lte").expect("a preset");
        let whole = |text: &str| trace(text).expect(text);
        assert_eq!(whole("lte/up"), lte.line(1).up);
        assert_eq!(whole("lte/down:seed=2"), lte.line(2).down);
        let joined = whole("lossy.csv+lte/down:seed=3:length=2s:scale=0.5");
        assert_eq!(joined.length(), Nanos::secs(4));
        let part = lte.line(3).down.part(Nanos(0), Some(Nanos::secs(2))).and_then(|part| part.scaled(0.5));
        let part = part.expect("a part");
        for at in [0, 500, 1500] {
            let [from, to] = [at, at + 100].map(Nanos::millis);
            let carried = |trace: &Trace, by: Nanos| trace.carries(Nanos(from.0 + by.0), Nanos(to.0 + by.0));
            assert_eq!(carried(&joined, Nanos::secs(2)), carried(&part, Nanos(0)), "{at}");
        }
        assert!(joined.has_losses() && !part.has_losses());
        // A file of such a name comes first.
        let spec = TraceSpec::parse("lte/up", &|name| name == "lte/up").expect("a file");
        assert!(spec.is_plain() && spec.files().eq(["lte/up"]));
        assert_eq!(joined_names(["a,b", "c"], ','), r"a\,b,c");
    }

    #[test]
    fn what_is_wrong_has_its_file() {
        for (text, expected) in [
            ("none.csv", "none.csv: there is no such file"),
            ("a.csv+none.csv", "none.csv: there is no such file"),
            ("a.csv+", "a recording has no name: write FILE, or FILE+FILE"),
            ("a.csv:scale=0", "a.csv: scale=0: write a factor from 0.000001 to 1000000, such as 0.5"),
            ("a.csv:skip=3s", "a.csv:1: `skip` leaves nothing of the recording; it is 3 s long: skip less"),
            ("a.csv:skip=x", "a.csv: skip=x: "),
            (
                "a.csv:skp=1s",
                "a.csv:skp=1s: `skp` is no option of a recording; there are column, scale, skip, length",
            ),
            ("a.csv:loop=0", "a.csv: loop=0: write how many times, 1 to 10000, or true or false"),
            ("lte/up:column=x", "lte/up: a preset has one rate and its delays: leave out column and delays"),
            ("lte/up:seed=-1", "lte/up: seed=-1: write a whole number from 0 on"),
            ("a.csv:seed=2", "a.csv: seed is of a preset, such as lte/down"),
            ("lte/sideways", "lte/sideways: there is no such file"),
            ("a.csv:scale=2:scale=2", "a.csv: scale is given twice"),
            ("bw.txt:delays=wrong.txt", "wrong.txt:2: `x` is no delay; one delay in milliseconds per line"),
            ("out.csv:delays=delay.txt", "delay.txt:1: the recording has delays already; leave `delays` out"),
            ("a.csv+out.csv", "out.csv: it has delays, and the first has none; join recordings of the same"),
            ("b+c.csv", "b+c.csv:1: several columns are rates; say which: `column = \"NAME\"`"),
            ("a.csv:loop=false+a.csv", "loop=false is of the last recording"),
            ("a.csv:loop=10000:length=1ms", ""),
        ] {
            let found = trace(text).err().unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found}");
        }
        let many = vec!["a.csv"; 65].join("+");
        assert_eq!(trace(&many).err(), Some("more than 64 recordings are joined".into()));
    }

    #[test]
    fn a_scenario_has_the_same() {
        let toml = |text: &str| {
            spec(text)
                .map(|spec| spec.to_toml(&|file| Ok::<_, String>(format!("/d/{file}"))).unwrap_or_default())
        };
        assert_eq!(toml("a.csv"), Ok("\"/d/a.csv\"".into()));
        assert_eq!(
            toml("a.csv:length=1s+bw.txt:scale=0.5:delays=delay.txt:loop=false"),
            Ok("{ join = [{ file = \"/d/a.csv\", length = \"1s\" }, { file = \"/d/bw.txt\", scale = 0.5, delays = \
                \"/d/delay.txt\" }], loop = false }"
                .into())
        );
        assert_eq!(toml_text("a \"b\"\\\n\u{7f}é"), "\"a \\\"b\\\"\\\\\\u000a\\u007fé\"");
        assert_eq!(toml("lte/up"), Ok("{ preset = \"lte/up\" }".into()));
        assert_eq!(
            toml("lte/up:seed=2:skip=1s+a.csv"),
            Ok("{ join = [{ preset = \"lte/up\", seed = 2, skip = \"1s\" }, \"/d/a.csv\"] }".into())
        );
        assert_eq!(toml("a.csv:loop=false"), Ok("{ file = \"/d/a.csv\", loop = false }".into()));
        assert_eq!(
            spec("a.csv:delays=b").map(|spec| spec.files().collect::<Vec<_>>().join(" ")),
            Ok("a.csv b".into())
        );
        assert!(
            spec("a.csv").is_ok_and(|spec| spec.is_plain())
                && spec("a.csv:loop=2").is_ok_and(|spec| !spec.is_plain())
        );
    }
}
