//! tc: its command line into operations, dumps into its words.

mod action;
mod actions;
mod basic;
mod build;
mod chain;
mod command;
mod conditions;
mod early;
mod ematch;
mod filter;
mod flower;
mod get;
mod kind;
mod listing;
mod options;
mod refuse;
mod show;
mod show_class;
mod show_filter;
mod show_qdisc;
mod size_table;
mod u32_filter;
mod words;

use crate::{Env, Refusal};
use command::Notes;
use tidegate_packet::Handle;
use tidegate_policy::Op;
use tidegate_policy::spec::{FILTERS, KindSpec};
use words::{Words, begins};

pub use action::show_actions;
pub use actions::ShowActions;
pub use chain::{ShowChains, show_chains};
pub use command::no_device_name;
pub use conditions::{Joined, conditions};
pub use get::{GetFilter, find_filter};
pub use listing::{Listed, NotListed, is_listing, read_listing};
pub use refuse::{action_not_found, refusal_lines, refusal_text};
pub use show_class::show_classes;
pub use show_filter::show_filters;
pub use show_qdisc::show_qdiscs;
pub(crate) use u32_filter::{parse_masked4, parse_prefix6};

/// What `tc -V` prints.
pub const VERSION: &str = "tc utility, iproute2-6.1.0, libbpf 1.1.2\n";

/// A command understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// What to do.
    pub command: TcCommand,
    /// How to show.
    pub flags: ShowFlags,
    /// What was accepted and means nothing here, for the reader of a script.
    pub notes: Vec<String>,
    /// What tc says on stderr before it goes on.
    pub stderr: String,
}

/// What a command line of tc asks.
#[derive(Clone, Debug, PartialEq)]
pub enum TcCommand {
    /// An operation on the machine.
    Apply(Op),
    /// To show something.
    Show(ShowWhat),
    /// To show one filter.
    GetFilter(GetFilter),
    /// To show chains of filters.
    ShowChains(ShowChains),
    /// To show some of the machine's actions.
    ShowActions(ShowActions),
    /// To print changes as they come, until it is ended.
    Monitor,
    /// `-batch FILE` (`-` = standard input): [`crate::batch`] reads it.
    Batch {
        /// The file's name.
        file: String,
        /// Go on after an error.
        force: bool,
    },
    /// A text about how to write commands, in our own words; tc prints it on stderr and exits with 0.
    Help(String),
    /// `-V`: print [`VERSION`].
    Version,
}

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Queueing disciplines.
    Qdisc,
    /// Classes.
    Class,
    /// Filters.
    Filter,
}

impl Object {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Object::Qdisc => "qdisc",
            Object::Class => "class",
            Object::Filter => "filter",
        }
    }
}

/// Which of them.
///
/// The printers select qdiscs and classes themselves. Of filters, give those of `parent`; without one, those of the device's root
/// qdisc. `tc class show` and `tc filter show` without a device print nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowWhat {
    /// What is shown.
    pub object: Object,
    /// Of this device only.
    pub dev: Option<String>,
    /// Under this parent only. For filters [`Handle::ROOT`] for `root`, [`Handle::INGRESS`] for `ingress`, and ffff:fff3 for `egress`.
    pub parent: Option<Handle>,
    /// The qdisc of this handle only; classes: those of this qdisc.
    pub handle: Option<Handle>,
    /// The class of this id only.
    pub classid: Option<Handle>,
    /// Show the qdiscs without a handle too.
    pub invisible: bool,
    /// Filters of this preference only.
    pub pref: Option<u16>,
    /// Filters of this protocol only.
    pub protocol: Option<u16>,
    /// Filters of this chain only.
    pub chain: Option<u32>,
    /// Those of this shared block instead of a device's; 0: of none.
    pub block: u32,
}

impl ShowWhat {
    /// All of these.
    pub fn of(object: Object) -> ShowWhat {
        ShowWhat {
            object,
            dev: None,
            parent: None,
            handle: None,
            classid: None,
            invisible: false,
            pref: None,
            protocol: None,
            chain: None,
            block: 0,
        }
    }

    /// All of these, of a device.
    pub fn on(object: Object, dev: &str) -> ShowWhat {
        ShowWhat { dev: Some(dev.into()), ..ShowWhat::of(object) }
    }
}

/// How to show: tc's options before the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShowFlags {
    /// `-s`: counters.
    pub stats: bool,
    /// `-d`: details.
    pub details: bool,
    /// `-r`: raw values too.
    pub raw: bool,
    /// `-p`: laid out.
    pub pretty: bool,
    /// `-j`: JSON.
    pub json: bool,
    /// `-o`: one line each.
    pub oneline: bool,
    /// `-g`: classes as a tree.
    pub graph: bool,
    /// `-iec`: rates in units of 1024.
    pub iec: bool,
    /// `-N`: numbers for names.
    pub numeric: bool,
}

impl ShowFlags {
    /// `-s -d`, as the recorded runs show their end.
    pub const FULL: ShowFlags = ShowFlags {
        stats: true,
        details: true,
        raw: false,
        pretty: false,
        json: false,
        oneline: false,
        graph: false,
        iec: false,
        numeric: false,
    };
}

/// Reads a command line of tc, without the program's name.
///
/// # Errors
/// What tc 6.1 says of it, its exit code and the argument at fault.
pub fn parse(args: &[String], env: &Env) -> Result<Parsed, Refusal> {
    let mut words = Words::new(args);
    let mut flags = ShowFlags::default();
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
            Some("-force") => force = true,
            Some("-batch") => match words.take() {
                Some(file) => batch = Some(file.to_string()),
                None => return Ok(done(help_of(None), flags, notes)),
            },
            Some("-netns") => {
                let name = words.need()?;
                let line = format!("Cannot open network namespace \"{name}\": No such file or directory");
                return Err(Refusal::new(255, line).at(place).remedy("tidegate has one namespace: leave -n out."));
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
    object(&mut words, flags, notes, env)
}

/// Reads a line of a batch file: an object and its words, no options before it.
///
/// # Errors
/// As for [`parse`].
pub fn parse_line(args: &[String], flags: ShowFlags, env: &Env) -> Result<Parsed, Refusal> {
    object(&mut Words::new(args), flags, Notes::default(), env)
}

fn object(words: &mut Words<'_>, flags: ShowFlags, mut notes: Notes, env: &Env) -> Result<Parsed, Refusal> {
    let Some(word) = words.take() else { return Ok(done(help_of(None), flags, notes)) };
    let object = [Object::Qdisc, Object::Class, Object::Filter].into_iter().find(|object| begins(word, object.name()));
    let Some(object) = object else {
        if begins(word, "actions") {
            let command = actions::parse(words, env).map_err(|refusal| after(words.said(), refusal))?;
            notes.stderr += &words.said();
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
            .remedy("The objects are qdisc, class, filter, chain, actions and monitor."));
    };
    let asked = command::verb(object, words)?;
    let command = match (asked, object) {
        (command::Asked::Help, _) => Ok(help_of(Some(object))),
        (command::Asked::Show, Object::Qdisc) => command::show_qdisc(words, env),
        (command::Asked::Show, Object::Class) => command::show_class(words, env),
        (command::Asked::Show, Object::Filter) => filter::show(words, env),
        (command::Asked::Get, _) => get::parse(words, env),
        (command::Asked::Do(verb), Object::Qdisc) => command::qdisc(verb, words, env, &mut notes),
        (command::Asked::Do(verb), Object::Class) => command::class(verb, words, env),
        (command::Asked::Do(verb), Object::Filter) => filter::filter(verb, words, env, &mut notes),
    };
    let command = command.map_err(|refusal| after(words.said(), refusal))?;
    notes.stderr += &words.said();
    Ok(done(command, flags, notes))
}

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
fn after(said: String, refusal: Refusal) -> Refusal {
    Refusal { stderr: said + &refusal.stderr, ..refusal }
}

fn done(command: TcCommand, flags: ShowFlags, notes: Notes) -> Parsed {
    Parsed { command, flags, notes: notes.aside, stderr: notes.stderr }
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

/// How to write commands for an object, or for tc as a whole: our own words.
pub(crate) fn help_of(object: Option<Object>) -> TcCommand {
    let kinds = KindSpec::all().map(|spec| spec.name).collect::<Vec<_>>().join(" ");
    let with_classes = KindSpec::all().filter(|spec| spec.class.is_some()).map(|spec| spec.name);
    let with_classes = with_classes.collect::<Vec<_>>().join(" ");
    let filters = FILTERS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(" ");
    TcCommand::Help(match object {
        None => format!(
            "tc [-s] [-d] [-j] [-p] [-r] [-o] [-iec] OBJECT VERB …   or   tc [-force] -batch FILE\n\
             objects: qdisc class filter chain actions; verbs: add change replace delete show\n\
             `tc OBJECT help` tells more.\nqdiscs: {kinds}\nfilters: {filters}\n"
        ),
        Some(Object::Qdisc) => format!(
            "tc qdisc add|change|replace|link|delete dev DEVICE root|parent CLASS [handle H:] [stab …] KIND [OPTION…]\n\
             tc qdisc show [dev DEVICE] [root|parent CLASS|handle H:] [invisible]\n\
             kinds: {kinds}; tc qdisc add dev DEVICE ingress|clsact for filters on what arrives\n`tc qdisc add KIND help` tells a kind's options.\n"
        ),
        Some(Object::Class) => format!(
            "tc class add|change|replace|delete dev DEVICE parent ID classid H:N KIND [OPTION…]\n\
             tc class show dev DEVICE [root|parent ID|classid ID|qdisc H:]\n\
             kinds: {with_classes}\n`tc class add htb help` tells a kind's options.\n"
        ),
        Some(Object::Filter) => format!(
            "tc filter add|change|replace|delete dev DEVICE [parent ID|root] [prio N] [protocol NAME] [handle ID] KIND [OPTION…]\n\
             tc filter show dev DEVICE [parent ID|root]\n\
             kinds: {filters}\n`tc filter add KIND help` tells a kind's options.\n"
        ),
    })
}

/// The help of a qdisc's or filter's kind.
pub fn help_kind(name: &str) -> Option<String> {
    KindSpec::find(name)
        .map(KindSpec::help)
        .or_else(|| FILTERS.iter().find(|spec| spec.name == name).map(|spec| spec.help()))
}
