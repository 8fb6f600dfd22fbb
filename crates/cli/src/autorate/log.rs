//! Events as lines of JSON, and the file that they are appended to.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_control::RateDirection;
use tidegate_sessions::autorate::{AutorateEvent, AutorateOptions, AutoratePlan, LeftBehind, PutBack};
use tidegate_sys::output_file;

/// The form of the lines: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;
/// Of a target: how many probes were sent, the shortest round trip, and whether it gives delays one way.
pub(super) type Tried = (u32, Option<Duration>, bool);

/// A log that is longer begins again, bytes; what it had is kept under its name and this.
const LONGEST: u64 = 16 << 20;
const ASIDE: &str = ".1";
/// The longest line that is looked at to see whether a file is a log, bytes.
const LONGEST_LINE: u64 = 1 << 16;

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn made(event: &str, more: Value) -> String {
    let mut line = Map::new();
    line.insert("tidegate_autorate".to_owned(), FORM.into());
    line.insert("at".to_owned(), now().into());
    line.insert("event".to_owned(), event.into());
    if let Value::Object(more) = more {
        line.extend(more);
    }
    format!("{}\n", Value::Object(line))
}

fn put_back(all: &[PutBack]) -> Value {
    let one = |(dev, done): &PutBack| match done {
        Ok(rate) => json!({"device": dev, "rate": rate, "why_not": null}),
        Err(why) => json!({"device": dev, "rate": null, "why_not": why}),
    };
    json!({"put_back": all.iter().map(one).collect::<Vec<_>>()})
}

/// The line of an event.
pub(super) fn line(event: &AutorateEvent) -> String {
    match event {
        AutorateEvent::Decision { direction, dev, rate, reason, delay_ms } => made(
            "decision",
            json!({
                "direction": direction.word(), "device": dev, "rate": rate, "reason": reason.id(),
                "words": reason.words(), "delay_ms": delay_ms,
            }),
        ),
        AutorateEvent::Begun(plan) => made("begun", json!({"shapers": shapers(plan)})),
        AutorateEvent::Idle => made("idle", Value::Null),
        AutorateEvent::Active => made("active", Value::Null),
        AutorateEvent::Blind => made("blind", Value::Null),
        AutorateEvent::Seen => made("seen", Value::Null),
        AutorateEvent::Gone(why) => made("gone", json!({"words": why})),
        AutorateEvent::Back(rates) => {
            made("back", json!({"found": {"upload": rates.up, "download": rates.down}}))
        }
        AutorateEvent::Ended(all) => made("ended", put_back(all)),
        AutorateEvent::Earlier(all) => made("earlier", put_back(all)),
        AutorateEvent::Limits(plan) => made("limits", json!({"shapers": shapers(plan)})),
        AutorateEvent::NotRemembered(why) => made("not-remembered", json!({"words": why})),
    }
}

fn shapers(plan: &AutoratePlan) -> Vec<Value> {
    let shaper = |direction: RateDirection| {
        plan.shapers[direction].as_ref().map(|shaper| {
            json!({
                "direction": direction.word(), "device": shaper.dev(), "shaper": shaper.words(),
                "found": shaper.found(), "min": plan.limits.least[direction],
                "base": plan.limits.base[direction], "max": plan.limits.most[direction],
                "learned": learned(direction, plan),
            })
        })
    };
    RateDirection::BOTH.into_iter().filter_map(shaper).collect()
}

/// What was found of a direction's limits.
fn learned(direction: RateDirection, plan: &AutoratePlan) -> Value {
    let (of, learns) = (plan.learned[direction], plan.learns);
    match learns.least[direction] || learns.most[direction] {
        true => json!({"seconds": of.seconds, "carried": of.high, "needed": of.low}),
        false => Value::Null,
    }
}

/// What --dry-run finds.
pub(super) fn plan_line(
    (plan, why_not): (&AutoratePlan, Option<&str>),
    left: &[(String, LeftBehind)],
    options: &AutorateOptions,
    replies: &[Tried],
) -> String {
    let left = left.iter().map(|(dev, left)| {
        let rate = if let LeftBehind::Rate(rate) = left { Some(*rate) } else { None };
        json!({"device": dev, "rate": rate})
    });
    let target = |(address, (probes, best, one_way)): (&IpAddr, &Tried)| {
        let ms = best.map(|best| best.as_secs_f64() * 1e3);
        json!({"address": address.to_string(), "probes": probes, "rtt_ms": ms, "one_way": one_way})
    };
    made(
        "plan",
        json!({
            "controller": options.controller.to_string(),
            "shapers": shapers(plan),
            "words": why_not,
            "left": left.collect::<Vec<_>>(),
            "targets": options.targets.iter().zip(replies).map(target).collect::<Vec<_>>(),
        }),
    )
}

/// A file that lines are appended to. A regular one is for this process alone, and begins again when it is
/// long: what it had is kept beside it, as `FILE.1`.
pub(super) struct LineLog {
    path: PathBuf,
    file: File,
    length: u64,
    /// A device (`/dev/null`) has no length.
    is_regular: bool,
}

impl LineLog {
    /// Opens it, or makes it.
    ///
    /// # Errors
    /// It cannot be written, or could hold up the controller (a pipe), or holds something else than lines of
    /// `tidegate autorate`: with what to do.
    pub(super) fn open(path: &Path) -> anyhow::Result<LineLog> {
        if crate::output::is_stdout(path) {
            bail!("--log {}: --json prints the same lines to standard output", path.display());
        }
        // A pipe is refused: if its reader stopped, the controller would stop, too.
        if path.metadata().is_ok_and(|found| found.file_type().is_char_device()) {
            let file = OpenOptions::new().append(true).open(path);
            let file = file.with_context(|| crate::output::cannot_write(path))?;
            return Ok(LineLog { path: path.to_owned(), file, length: 0, is_regular: false });
        }
        let mut file = regular(path)?;
        let begins = is_own(&mut file).with_context(|| path.display().to_string())?;
        // Behind a link it is the file itself that is renamed.
        let aside = path_aside(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let old = match File::open(&aside) {
            Ok(mut old) if old.metadata().is_ok_and(|found| found.is_file()) => is_own(&mut old)?,
            Ok(_) => false,
            Err(_) => true,
        };
        for (named, is_own) in [(path, begins), (&aside, old)] {
            if !is_own {
                bail!(
                    "--log {}: {} holds something else than lines of tidegate autorate, and was left as it \
                     is: name another file",
                    path.display(),
                    named.display()
                );
            }
        }
        let mut length = file.metadata().map_or(0, |known| known.len());
        // The program that wrote it may have been killed in the middle of a line.
        if length > 0 && !ends_a_line(&mut file).with_context(|| path.display().to_string())? {
            file.write_all(b"\n").with_context(|| crate::output::cannot_write(path))?;
            length += 1;
        }
        Ok(LineLog { path: path.to_owned(), file, length, is_regular: true })
    }

    /// Appends a line.
    ///
    /// # Errors
    /// The file does not take it; the error names it.
    pub(super) fn add(&mut self, line: &str) -> io::Result<()> {
        let named = |path: &Path, error: &io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", crate::output::cannot_write(path)))
        };
        let added = self.turn().and_then(|()| self.file.write_all(line.as_bytes()));
        added.map_err(|error| {
            crate::output::note_failure(&error);
            named(&self.path, &error)
        })?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Begins again if it is too long.
    fn turn(&mut self) -> io::Result<()> {
        if !self.is_regular || self.length <= LONGEST {
            return Ok(());
        }
        output_file::set_aside(&self.path, ASIDE)?;
        self.file = output_file::open_to_continue(&self.path)?;
        self.length = 0;
        Ok(())
    }
}

/// Whether the last byte of a file ends a line; it is not empty.
fn ends_a_line(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn path_aside(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(ASIDE);
    aside.into()
}

/// Opens a regular file, for this process alone.
fn regular(path: &Path) -> anyhow::Result<File> {
    match output_file::open_to_continue(path) {
        Ok(file) => Ok(file),
        // The words say what is refused; it is no permission of the system's that is missing.
        Err(error) if error.raw_os_error().is_none() => {
            bail!("--log {}: {error}", path.display())
        }
        Err(error) => Err(error).with_context(|| crate::output::cannot_write(path)),
    }
}

/// Whether a file is empty or begins with a line of this program's.
fn is_own(file: &mut File) -> io::Result<bool> {
    let mut first = Vec::new();
    file.take(LONGEST_LINE).read_to_end(&mut first)?;
    let Some(line) = first.split(|byte| *byte == b'\n').next().filter(|_| !first.is_empty()) else {
        return Ok(true);
    };
    let line: Option<Value> = serde_json::from_slice(line).ok();
    Ok(line.is_some_and(|line| line["tidegate_autorate"].is_u64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tidegate-log-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a directory");
            Folder(path)
        }

        fn text(&self, name: &str) -> String {
            std::fs::read_to_string(self.0.join(name)).expect("it is there")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const ONE: &str = "{\"at\":1.5,\"event\":\"idle\",\"tidegate_autorate\":1}\n";
    const TWO: &str = "{\"at\":2.5,\"event\":\"active\",\"tidegate_autorate\":1}\n";

    #[test]
    fn a_log_that_is_too_long_begins_again_and_what_it_had_is_kept() {
        let folder = Folder::new("long");
        let path = folder.0.join("a.log");
        let mut log = LineLog::open(&path).expect("a file");
        log.add(ONE).expect("room");
        log.length = LONGEST + 1;
        log.add(TWO).expect("room");
        assert_eq!((folder.text("a.log").as_str(), folder.text("a.log.1").as_str()), (TWO, ONE));
        // Two do not write the same one, and the next goes on with it.
        let second = LineLog::open(&path).err().expect("it is taken").to_string();
        assert!(second.contains("another process writes it now"), "{second}");
        drop(log);
        let mut again = LineLog::open(&path).expect("a file");
        again.add(ONE).expect("room");
        again.length = LONGEST + 1;
        again.add(TWO).expect("room");
        let both = TWO.to_owned() + ONE;
        assert_eq!((folder.text("a.log").as_str(), folder.text("a.log.1")), (TWO, both));
    }

    /// As one that was killed leaves it.
    #[test]
    fn half_a_line_is_ended_before_the_next() {
        let folder = Folder::new("half");
        let path = folder.0.join("a.log");
        std::fs::write(&path, format!("{ONE}{{\"tr")).expect("a file");
        LineLog::open(&path).expect("a file").add(TWO).expect("room");
        assert_eq!(folder.text("a.log"), format!("{ONE}{{\"tr\n{TWO}"));
    }

    #[test]
    fn what_is_no_log_of_tidegate_is_left_alone() {
        let folder = Folder::new("foreign");
        let path = folder.0.join("notes");
        let long = "x".repeat(1 + LONGEST as usize);
        for text in ["my notes\n", "{\"tidegate_gym\":1}\n", "\n", long.as_str()] {
            std::fs::write(&path, text).expect("a file");
            let why = LineLog::open(&path).err().expect("refused").to_string();
            assert!(why.contains("notes holds something else") && why.contains("name another file"), "{why}");
            assert!(folder.text("notes") == text);
        }
        // Nor is what stands where the long one would be kept.
        std::fs::write(&path, ONE).expect("a file");
        std::fs::write(folder.0.join("notes.1"), "my notes\n").expect("a file");
        let why = LineLog::open(&path).err().expect("refused").to_string();
        assert!(why.contains("notes.1 holds something else"), "{why}");
    }
}
