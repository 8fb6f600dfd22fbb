//! `tidegate policy wizard`: five questions, their effect in simulation, a short policy, and, after a yes,
//! its apply with auto-revert.

use crate::exit::CliExit;
use anyhow::{Context, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use tidegate_loader::short as short_file;
use tidegate_sessions::routes;
use tidegate_syntax::short::{Rank, links::LINKS, presets::PRESETS, presets::Preset, presets::preset_named};
use tidegate_sys::{interrupt, link_monitor, poll};

/// How long a policy waits for its confirmation.
const CONFIRM: &str = "120s";
/// The longest line of an answer.
const LONGEST: usize = 4096;
/// The loopback device.
const LOOPBACK: &str = "lo";
/// How often the terminal is looked at.
const LOOK: Duration = Duration::from_secs(3600);

/// What to do without a terminal.
const WITHOUT_TERMINAL: &str = "\
the wizard asks questions, and needs a terminal. Without one:
  tidegate policy new home --dev eth0 --up 38mbit --down 95mbit --link 'vdsl2 pppoe' > home.toml
  tidegate try home.toml
  tidegate apply home.toml --confirm 60s
  tidegate confirm
tidegate policy list has the presets and kinds of links";

/// The answer for no preset.
const NEITHER: &str = "neither";

/// The class of a preset that waits for the others; without a preset, the one that the wizard makes.
fn last_class(preset: &str) -> Option<&'static str> {
    if preset == NEITHER {
        return Some("waiting");
    }
    let classes = preset_named(preset)?.classes;
    classes.iter().find(|class| class.rank == Rank::Last).map(|class| class.name)
}

/// Plays `tidegate policy wizard`.
pub(super) fn command(file: &Path) -> ExitCode {
    if !io::stdin().is_terminal() || !crate::output::stdout().is_terminal() {
        eprintln!("tidegate policy wizard: {WITHOUT_TERMINAL}");
        return CliExit::Input.into();
    }
    match run(file) {
        Ok(code) => code,
        Err(error) if error.is::<Ended>() => {
            eprintln!("\ntidegate policy wizard: ended; {error}");
            CliExit::Partial.into()
        }
        Err(error) => {
            eprintln!("tidegate policy wizard: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// Ctrl-C, or the end of input.
#[derive(Debug)]
struct Ended(&'static str);

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Ended {}

/// The person at the terminal.
struct Person {
    stop: OwnedFd,
    rest: Vec<u8>,
}

impl Person {
    /// The answer to a question, without blanks around it.
    ///
    /// # Errors
    /// Ctrl-C, SIGTERM, or the end of input.
    fn answer(&mut self, question: &str) -> anyhow::Result<String> {
        crate::output::next(&format!("{question} "))?;
        crate::output::stdout().flush()?;
        let stdin = io::stdin();
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
            let readable = poll::readable(&[stdin.as_fd(), self.stop.as_fd()], LOOK)?;
            let mut bytes = [0; 1024];
            if readable[1] {
                return Err(Ended("nothing was written or changed").into());
            }
            if readable[0] {
                // Without the buffer of `Stdin`, in which poll sees nothing.
                let count = File::from(stdin.as_fd().try_clone_to_owned()?).read(&mut bytes)?;
                if count == 0 || self.rest.len() > LONGEST {
                    return Err(Ended("nothing was written or changed").into());
                }
                self.rest.extend_from_slice(&bytes[..count]);
            }
        }
    }

    /// Asks until the answer is right; an empty one is the default. `about` is said once.
    fn ask<T>(
        &mut self,
        about: &str,
        prompt: &str,
        default: &str,
        right: impl Fn(&str) -> Result<T, String>,
    ) -> anyhow::Result<T> {
        let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        crate::output::report(&format!("{about}\n"));
        loop {
            let answer = self.answer(&format!("{prompt}{shown}:"))?;
            match right(if answer.is_empty() { default } else { &answer }) {
                Ok(value) => return Ok(value),
                Err(why) => crate::output::report(&format!("  {}\n", why.replace('\n', "\n  "))),
            }
        }
    }

    /// Yes or no; none is the default.
    fn agrees(&mut self, about: &str) -> anyhow::Result<bool> {
        self.ask(about, "yes or no", "", |answer| match answer {
            "yes" | "y" => Ok(true),
            "no" | "n" => Ok(false),
            _ => Err("Write yes or no.".to_owned()),
        })
    }

    /// Was Ctrl-C pressed meanwhile?
    fn has_stopped(&self) -> anyhow::Result<bool> {
        Ok(poll::readable(&[self.stop.as_fd()], Duration::ZERO)?[0])
    }
}

/// What is to become of the policy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// It is written and applied.
    Apply,
    /// It is written.
    Write,
    /// Neither.
    Nothing,
}

/// What was answered: lines of a short policy.
#[derive(Default)]
struct Answers {
    device: String,
    lan: Option<String>,
    rates: [String; 2],
    link: String,
    preset: String,
    hosts: Vec<String>,
}

impl Answers {
    /// The policy as a file.
    fn text(&self) -> String {
        let mut text =
            String::from("# Written by tidegate policy wizard; tidegate policy help explains the words.\n");
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{key} = {}", Value::from(value));
        };
        line("device", &self.device);
        self.lan.iter().for_each(|lan| line("lan", lan));
        line("link", &self.link);
        line("up", &self.rates[0]);
        line("down", &self.rates[1]);
        if self.preset == NEITHER {
            line("fair", "host");
        } else {
            line("preset", &self.preset);
            // What was chosen is its classes.
            line("kind", "classes");
        }
        if let Some(class) = last_class(&self.preset).filter(|_| !self.hosts.is_empty()) {
            let _ = writeln!(text, "\n[classes.{class}]\nhosts = {}", Value::from(self.hosts.clone()));
            if self.preset == NEITHER {
                text.push_str("last = true\n");
            }
        }
        text
    }

    /// With what is not answered yet replaced by what is right.
    fn check(&self) -> Result<(), String> {
        let or = |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
        let whole = Answers {
            device: or(&self.device, "eth0"),
            lan: self.lan.clone(),
            rates: [or(&self.rates[0], "1mbit"), or(&self.rates[1], "1mbit")],
            link: or(&self.link, "none"),
            preset: or(&self.preset, NEITHER),
            hosts: self.hosts.clone(),
        };
        short_file::understand(&whole.text()).map(drop).map_err(|problems| {
            let lines = problems.iter().map(|problem| format!("{}. {}", problem.what, problem.remedy));
            lines.collect::<Vec<_>>().join("\n")
        })
    }
}

fn run(file: &Path) -> anyhow::Result<ExitCode> {
    if file.exists() {
        bail!(
            "{}: there is a file of that name; name another one: tidegate policy wizard FILE",
            file.display()
        );
    }
    anyhow::ensure!(!crate::output::is_stdout(file), "the policy is applied from a file: name one");
    // A place that takes no file is found before the questions.
    crate::output::may_write([file])?;
    let mut person = Person { stop: interrupt::event_fd().context("Ctrl-C")?, rest: Vec::new() };
    let answers = questions(&mut person)?;
    let text = answers.text();
    crate::output::report(&format!(
        "\nThe policy:\n\n{text}\nWhat it changes, simulated on such a line:\n\n"
    ));
    let code = effect(file, &text)?;
    if person.has_stopped()? {
        return Err(Ended("nothing was written or changed").into());
    }
    if code != Some(0) {
        bail!("the policy cannot be tried; nothing was written or changed");
    }
    let about = format!(
        "Write it to {} and apply it to {} now, undone after {CONFIRM} unless confirmed? No only writes it, \
        neither leaves everything as it is",
        file.display(),
        answers.device
    );
    let wanted = person.ask(&about, "yes, no or neither", "", |answer| match answer {
        "yes" | "y" => Ok(Wanted::Apply),
        "no" | "n" => Ok(Wanted::Write),
        "neither" => Ok(Wanted::Nothing),
        _ => Err("Write yes, no or neither.".to_owned()),
    })?;
    if wanted == Wanted::Nothing {
        crate::output::report("Nothing was written or changed.\n");
        return Ok(CliExit::Yes.into());
    }
    write(file, &text)?;
    if wanted == Wanted::Write {
        crate::output::report(&format!(
            "{0} is written. tidegate apply {0} --confirm 60s applies it.\n",
            file.display()
        ));
        return Ok(CliExit::Yes.into());
    }
    apply(&mut person, file, &answers.device)
}

/// The classes of a preset, first ones first.
fn classes_of(preset: &Preset) -> String {
    let names: Vec<&str> = preset.classes.iter().map(|class| class.name).collect();
    format!("{}; the rest before the last of these", names.join(", then "))
}

/// The five questions.
fn questions(person: &mut Person) -> anyhow::Result<Answers> {
    let mut answers = Answers::default();
    // Nothing leads to a provider by the loopback device.
    let names = link_monitor::links()?.into_iter().map(|link| link.name);
    let known: Vec<String> = names.filter(|name| name != LOOPBACK).collect();
    anyhow::ensure!(!known.is_empty(), "this computer has no device but the loopback device, {LOOPBACK}");
    let usual = routes::defaults(&routes::all()).into_iter().next().unwrap_or_default();
    let right = |answer: &str| {
        let mut words = answer.split_whitespace().map(str::to_owned);
        let (device, lan) = (words.next().unwrap_or_default(), words.next());
        if let Some(missing) = std::iter::once(&device).chain(&lan).find(|name| !known.contains(name)) {
            let what = match missing.as_str() {
                LOOPBACK => format!("{LOOPBACK} leads to no other computer"),
                _ => format!("There is no device \"{missing}\""),
            };
            return Err(format!("{what}; there are {}.", known.join(", ")));
        }
        if words.next().is_some() {
            return Err("Name one device, or two: towards the provider, and towards the LAN.".to_owned());
        }
        let answers = Answers { device: device.clone(), lan: lan.clone(), ..Answers::default() };
        answers.check().map(|()| (device, lan))
    };
    let about =
        "1. The device that leads to the provider; on a router, behind it the one that leads to the LAN.";
    (answers.device, answers.lan) = person.ask(about, "device", &usual, right)?;
    loop {
        let right = |answer: &str| {
            let words: Vec<&str> = answer.split_whitespace().collect();
            match words[..] {
                ["measure"] => {
                    Err("Name the host to measure with: measure my-server (docs/measure.md).".to_owned())
                }
                ["measure", host] => Ok(Err(host.to_owned())),
                [up, down] => {
                    let rates = [up.to_owned(), down.to_owned()];
                    let answers = Answers { rates: rates.clone(), ..Answers::default() };
                    answers.check().map(|()| Ok(rates))
                }
                _ => Err("Write two rates, such as: 38mbit 95mbit; or measure HOST.".to_owned()),
            }
        };
        let about = "2. The line's rates, upload and download (38mbit 95mbit), as the modem reports them or \
            the contract has them; or measure HOST.";
        match person.ask(about, "rates", "", right)? {
            Ok(rates) => {
                answers.rates = rates;
                break;
            }
            // It prints what it finds; what to use is the person's decision.
            Err(host) => {
                let _ = tidegate()?.args(["quick", "--"]).arg(host).status().context("tidegate quick")?;
            }
        }
        if person.has_stopped()? {
            return Err(Ended("nothing was written or changed").into());
        }
    }
    let checked =
        |of: fn(&str) -> Answers| move |answer: &str| of(answer).check().map(|()| answer.to_owned());
    let links = LINKS.map(|link| if link.name == "docsis" { "docsis (cable)" } else { link.name }).join(", ");
    answers.link = person.ask(
        &format!("3. The kind of link: {links}."),
        "link",
        "ethernet",
        checked(|link| Answers { link: link.to_owned(), ..Answers::default() }),
    )?;
    let presets = PRESETS.map(|one| format!("\n  {}: {}", one.name, classes_of(&one))).concat();
    answers.preset = person.ask(
        &format!(
            "4. What is to be served before the rest:{presets}\n  {NEITHER}: nothing; one queue in each direction \
            shares between hosts and their connections, and keeps itself short"
        ),
        "preset",
        NEITHER,
        checked(|preset| Answers { preset: preset.to_owned(), ..Answers::default() }),
    )?;
    let preset = answers.preset.clone();
    answers.hosts = person.ask(
        "5. Addresses of computers that may wait for all others, such as a NAS.",
        "addresses",
        "none",
        |answer| {
            let hosts: Vec<String> = match answer {
                "none" => Vec::new(),
                _ => answer.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            };
            let answers = Answers { preset: preset.clone(), hosts: hosts.clone(), ..Answers::default() };
            answers.check().map(|()| hosts)
        },
    )?;
    Ok(answers)
}

/// This program.
fn tidegate() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe().context("this program is not found")?))
}

/// A directory that goes with this value.
struct Scratch(PathBuf);

impl Scratch {
    /// Makes one that is its owner's alone. It must not be there: someone else's directory is no place for a
    /// policy, and is not removed either.
    fn new() -> anyhow::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("tidegate-wizard-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("the directory {} could not be made", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Shows what `try` says of the policy; the exit code.
fn effect(file: &Path, text: &str) -> anyhow::Result<Option<i32>> {
    let scratch = Scratch::new()?;
    let name = file.file_name().context("the file has no name")?;
    crate::output::file(&scratch.0.join(name), text)?;
    let mut command = tidegate()?;
    command
        .args(["try", "--load", "both", "-o", "none"])
        .arg(name)
        .current_dir(&scratch.0)
        .stdin(Stdio::null());
    Ok(command.status().context("tidegate try")?.code())
}

/// Writes the file, which must not be there.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    anyhow::ensure!(!file.exists(), "{}: a file of that name came meanwhile", file.display());
    crate::output::file(file, text)
}

/// Applies the file with auto-revert, and asks for the confirmation.
fn apply(person: &mut Person, file: &Path, device: &str) -> anyhow::Result<ExitCode> {
    let applied =
        tidegate()?.arg("apply").arg(file).args(["--confirm", CONFIRM]).stdin(Stdio::null()).status();
    let status = applied.context("tidegate apply")?;
    if !status.success() && person.has_stopped()? {
        std::fs::remove_file(file).with_context(|| file.display().to_string())?;
        return Err(Ended("nothing is applied, and the file is removed").into());
    }
    if !status.success() {
        crate::output::report(&format!("{} is written; it is not applied.\n", file.display()));
        return Ok(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1).into());
    }
    let kept = person.agrees("Does the network work, and shall the policy stay? No undoes it");
    let command = if matches!(kept, Ok(true)) { "confirm" } else { "revert" };
    let done = tidegate()?
        .args([command, device])
        .stdin(Stdio::null())
        .status()
        .with_context(|| command.to_owned())?;
    if kept.is_err() {
        std::fs::remove_file(file).with_context(|| file.display().to_string())?;
        return Err(Ended("the policy is undone, and its file is removed").into());
    }
    Ok(u8::try_from(done.code().unwrap_or(1)).unwrap_or(1).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_syntax::short::Fair;

    #[test]
    fn answers_are_a_policy() {
        let answers = Answers {
            device: "eth0".into(),
            lan: Some("br-lan".into()),
            rates: ["38mbit".into(), "95mbit".into()],
            link: "vdsl2 pppoe".into(),
            preset: "home".into(),
            hosts: vec!["192.168.1.9".into()],
        };
        answers.check().expect("it is right");
        let (short, _) = short_file::understand(&answers.text()).expect("it is right");
        let bulk = short.classes.iter().find(|class| class.name.value == "bulk").expect("of the preset");
        assert_eq!((bulk.hosts.len(), bulk.apps.is_empty()), (1, false), "the preset's words stay");
        // Without a preset there are classes only where hosts are to wait.
        for (hosts, classes) in [(Vec::new(), 0), (vec!["192.168.1.9".to_owned()], 1)] {
            let neither = Answers { preset: NEITHER.into(), hosts, ..Answers::default() };
            neither.check().expect("it is right");
            let whole = Answers { device: "eth0".into(), rates: ["1mbit".into(), "1mbit".into()], ..neither };
            let text = Answers { link: "cable".into(), ..whole }.text();
            let (short, _) = short_file::understand(&text).expect("it is right");
            assert_eq!(
                (short.classes.len(), short.fair, short.link.overhead),
                (classes, Fair::Host, 18),
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_answers_have_a_reason() {
        let why = |answers: Answers| answers.check().expect_err("it is wrong");
        let rates = ["38".to_owned(), "95mbit".to_owned()];
        assert!(why(Answers { rates, ..Answers::default() }).contains("has no unit"));
        assert!(why(Answers { link: "dsl".into(), ..Answers::default() }).contains("dsl"));
        // Quotes in an answer are no way out of its line.
        assert!(!why(Answers { link: "\"\nup = \"1mbit".into(), ..Answers::default() }).is_empty());
        for preset in PRESETS {
            let hosts = vec!["10.0.0.1".to_owned()];
            Answers { preset: preset.name.into(), hosts, ..Answers::default() }
                .check()
                .expect("each has a last class");
            assert!(last_class(preset.name).is_some(), "{}", preset.name);
        }
    }
}
