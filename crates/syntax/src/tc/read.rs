//! A command line of tc: its options, its object, and the parser for the rest.

use super::command::Notes;
use super::command_line::{Object, ShowFlags, TcCommand, TcCommandLine};
use super::help::help_of;
use super::words::{Words, begins};
use super::{actions, build, chain, command, filter, get};
use crate::units::parse_rate;
use crate::{Env, Refusal, TcChange, nearest};

/// Reads a command line of tc, without the program's name.
///
/// # Errors
/// The message of tc 6.1, its exit code and the argument at fault.
pub fn parse(args: &[String], env: &Env) -> Result<TcCommandLine, Refusal> {
    let mut words = Words::new(args);
    let mut flags = ShowFlags { tc: env.tc, ..ShowFlags::default() };
    let notes = Notes::default();
    let mut batch = None;
    let mut force = false;
    while let Some(word) = words.peek().filter(|word| word.starts_with('-')) {
        words.skip();
        let place = words.last();
        match option(word) {
            Some("-graph") => flags.graph = true,
            Some("-help") => return Ok(done(help_of(None), flags, notes)),
            Some("-Version") => return Ok(done(TcCommand::Version, flags, notes)),
            Some("-iec") => flags.iec = true,
            Some("-stats" | "-statistics") => flags.stats = true,
            Some("-details") => flags.details = true,
            Some("-raw") => flags.raw = true,
            Some("-pretty") => flags.pretty = true,
            Some("-Numeric") => flags.numeric = true,
            Some("-json") => flags.json = true,
            Some("-oneline") => flags.oneline = true,
            Some("-brief") => flags.brief = true,
            Some("-force") => force = true,
            Some("-batch") => match words.take() {
                Some(file) => batch = Some(file.to_string()),
                None => return Ok(done(help_of(None), flags, notes)),
            },
            Some("-netns") => {
                let name = words.need()?;
                let line = format!("Cannot open network namespace \"{name}\": No such file or directory");
                return Err(Refusal::new(255, line)
                    .at(place)
                    .remedy("tidegate has one namespace: leave -n out."));
            }
            Some("-conf" | "-cf") => drop(words.need()?),
            Some(_) => {}
            None => {
                return Err(Refusal::new(255, format!("Option \"{word}\" is unknown, try \"tc -help\"."))
                    .at(place)
                    .remedy("The options are -s -d -r -p -j -o -g -iec -N -batch -force -V."));
            }
        }
    }
    if let Some(file) = batch {
        return Ok(done(TcCommand::Batch { file, force }, flags, notes));
    }
    object(&mut words, flags, notes, env).map_err(|refusal| below_zero(refusal, args, env))
}

/// Reads a line of a batch file: an object and its words, no options before it.
///
/// # Errors
/// As for [`parse`].
pub fn parse_line(args: &[String], flags: ShowFlags, env: &Env) -> Result<TcCommandLine, Refusal> {
    object(&mut Words::new(args), flags, Notes::default(), env)
        .map_err(|refusal| below_zero(refusal, args, env))
}

/// The refusal of a rate that tc 6.1 takes for an enormous one (`htb rate -5kbit` is 18446744 Tbit/s) in
/// tidegate's own name: no tool refuses it.
fn below_zero(refusal: Refusal, args: &[String], env: &Env) -> Refusal {
    let taken = !env.tc.has(TcChange::NumberBounds);
    let place = refusal.word.filter(|at| taken && *at > 0 && *at < args.len());
    let Some((option, text, at)) = place.map(|at| (args[at - 1].as_str(), &args[at], at)) else {
        return refusal;
    };
    let is_of = |kind: &str| args.iter().any(|word| word == kind);
    // Others have 32 bits, and tc sees that they do not fit.
    let of_64_bits = match option {
        "ceil" | "peakrate" => true,
        "rate" => !is_of("hfsc"),
        "bandwidth" => is_of("cake"),
        _ => false,
    };
    let magnitude = text.strip_prefix('-').and_then(parse_rate).filter(|rate| rate.0 > 0);
    if !of_64_bits || magnitude.is_none() {
        return refusal;
    }
    Refusal::new(1, format!("tidegate: a {option} below 0 is not supported: {text}"))
        .at(at)
        .remedy("Linux takes it for 18446744 Tbit/s, which limits nothing: look where the number comes from.")
}

fn object(
    words: &mut Words<'_>,
    flags: ShowFlags,
    mut notes: Notes,
    env: &Env,
) -> Result<TcCommandLine, Refusal> {
    let Some(word) = words.take() else { return Ok(done(help_of(None), flags, notes)) };
    let object =
        [Object::Qdisc, Object::Class, Object::Filter].into_iter().find(|object| begins(word, object.name()));
    let Some(object) = object else {
        if begins(word, "actions") {
            let command =
                actions::parse(words, env).map_err(|refusal| after(words.take_stderr(), refusal))?;
            notes.stderr += &words.take_stderr();
            return Ok(done(command, flags, notes));
        }
        if begins(word, "chain") {
            return Ok(done(chain::parse(words, env)?, flags, notes));
        }
        if begins(word, "monitor") {
            return Ok(done(monitor(words)?, flags, notes));
        }
        if begins(word, "exec") {
            return Err(build::later("object", word, words.last()));
        }
        if begins(word, "help") {
            return Ok(done(help_of(None), flags, notes));
        }
        return Err(Refusal::new(255, format!("Object \"{word}\" is unknown, try \"tc help\"."))
            .at(words.last())
            .remedy(match nearest(word, OBJECTS) {
                Some(name) => format!("Did you mean {name}?"),
                None => "The objects are qdisc, class, filter, chain, actions and monitor.".to_owned(),
            }));
    };
    let meaning = command::verb(object, words)?;
    let command = match (meaning, object) {
        (command::CommandVerb::Help, _) => Ok(help_of(Some(object))),
        (command::CommandVerb::Show, Object::Qdisc) => command::show_qdisc(words, env),
        (command::CommandVerb::Show, Object::Class) => command::show_class(words, env),
        (command::CommandVerb::Show, Object::Filter) => filter::show(words, env),
        (command::CommandVerb::Get, _) => get::parse(words, env),
        (command::CommandVerb::Do(verb), Object::Qdisc) => command::qdisc(verb, words, env, &mut notes),
        (command::CommandVerb::Do(verb), Object::Class) => command::class(verb, words, env),
        (command::CommandVerb::Do(verb), Object::Filter) => filter::filter(verb, words, env, &mut notes),
    };
    let command = command.map_err(|refusal| after(words.take_stderr(), refusal))?;
    notes.stderr += &words.take_stderr();
    Ok(done(command, flags, notes))
}

/// The objects of tc's commands that are known here.
const OBJECTS: [&str; 6] = ["qdisc", "class", "filter", "chain", "actions", "monitor"];

/// The words behind `monitor`.
fn monitor(words: &mut Words<'_>) -> Result<TcCommand, Refusal> {
    let Some(word) = words.take() else { return Ok(TcCommand::Monitor) };
    if begins(word, "file") {
        words.need()?;
        return Err(build::later("monitor option", word, words.last()));
    }
    if begins(word, "help") {
        return Err(Refusal::new(255, "tc monitor: prints changes as they come, until it is ended"));
    }
    Err(Refusal::new(255, format!("Argument \"{word}\" is unknown, try \"tc monitor help\"."))
        .at(words.last())
        .remedy("tc monitor takes no words."))
}

/// A refusal, after what tc printed before it.
fn after(text: String, refusal: Refusal) -> Refusal {
    Refusal { stderr: text + &refusal.stderr, ..refusal }
}

fn done(command: TcCommand, flags: ShowFlags, notes: Notes) -> TcCommandLine {
    TcCommandLine { command, flags, notes: notes.aside, stderr: notes.stderr }
}

/// The option that `word` is, or begins.
fn option(word: &str) -> Option<&'static str> {
    const OPTIONS: [&str; 22] = [
        "-graph",
        "-help",
        "-Version",
        "-iec",
        "-stats",
        "-statistics",
        "-details",
        "-raw",
        "-pretty",
        "-batch",
        "-netns",
        "-names",
        "-nm",
        "-cf",
        "-conf",
        "-timestamp",
        "-tshort",
        "-force",
        "-Numeric",
        "-color",
        "-json",
        "-oneline",
    ];
    if word.len() < 2 {
        return None;
    }
    // `-c` is colour, not a file of names; `-cf` is that.
    if begins(word, "-color") || word.starts_with("-color=") {
        return Some("-color");
    }
    if word == "-br" || (word.len() > 3 && begins(word, "-brief")) {
        return Some("-brief");
    }
    OPTIONS.into_iter().find(|name| begins(word, name))
}
