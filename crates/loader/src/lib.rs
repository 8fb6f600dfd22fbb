#![forbid(unsafe_code)]
//! Any policy, loaded: scripts run in a sandbox, batches, rules and short policies carried out line by line,
//! all on one machine.
//!
//! ```text
//! files ──▶ format ──▶ script: capture ──┐
//!                 └──▶ lists: calls ─────┴──▶ Traced (shims + what each call came to) ──▶ steps ──▶ inspect::PolicyModel
//! ```
//!
//! ```
//! use tidegate_loader::{ReadOptions, read_text};
//!
//! let batch = "qdisc add dev eth0 root handle 1: htb default 20\n\
//!              class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n";
//! let policy = read_text("home.batch", batch, &ReadOptions::default()).unwrap();
//! assert_eq!(policy.machine.log.len(), 2);
//! // What it means: each command with the place of every word.
//! let mut reading = policy.reading();
//! assert_eq!(reading.steps[1].after("rate").unwrap().text, "5mbit");
//! assert!(tidegate_inspect::check(&mut reading).iter().any(|finding| finding.rule.id() == "R13"));
//! ```

pub mod checked;
mod command_list;
mod comments;
pub mod distributions;
mod files;
mod foreign;
mod format;
mod inside;
mod line_words;
mod listings;
mod lists;
#[cfg(feature = "run")]
mod live;
mod machines;
mod nothing;
#[cfg(feature = "run")]
mod run_document;
#[cfg(feature = "run")]
pub mod runs;
pub mod short;
mod steps;
mod tcjson;
#[cfg(feature = "run")]
pub mod test_bed;
mod to_short;
mod traced;

use format::{BYTE_ORDER_MARK, shown_name};
pub use format::{FormatError, InputFormat, MAX_POLICY, sniff};
pub use inside::point_inside;
#[cfg(feature = "run")]
pub use live::{ListingsError, live_listings};
pub use nothing::nothing_found;
pub use tidegate_inspect::ClassNames;
pub use to_short::ShortPolicy;

use line_words::LineWords;
use listings::{Listings, Unread};
use lists::ListedCall;
use machines::Chosen;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_capture::{CaptureError, DEFAULT_TIMEOUT, Exit, Output, ScriptRun, Trouble};
use tidegate_gateway::DeviceSpec;
use tidegate_inspect::{CARRIED_OUT_AT, PolicyInput, PolicyModel, Source, Step, Word};
use tidegate_packet::{KernelModel, LinuxVersion, Pool, Seeded};
use tidegate_policy::{LinkDriver, LinkOp, Op};
use tidegate_shims::Machine;
use tidegate_syntax::TcVersion;
use traced::Traced;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// How scripts are run: how they are confined beyond what always holds, and what is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxOptions {
    /// How long a script may run in all.
    pub timeout: Duration,
    /// Home directories and the environment are hidden from it.
    pub private: bool,
    /// The network namespace of a script that is looked at; `None`: the one that it begins in, unless only
    /// others have traffic control.
    pub netns: Option<String>,
    /// The lines that a script reads from its standard input; without any that is empty.
    pub answers: Vec<String>,
    /// Programs that are not run: each of their calls succeeds and prints nothing.
    pub stubs: Vec<String>,
}

impl Default for SandboxOptions {
    fn default() -> SandboxOptions {
        SandboxOptions {
            timeout: DEFAULT_TIMEOUT,
            private: false,
            netns: None,
            answers: Vec::new(),
            stubs: Vec::new(),
        }
    }
}

/// How files are loaded.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Arguments for a script.
    pub args: Vec<String>,
    /// Devices that are there beside those the files name.
    pub devices: Vec<String>,
    /// The sandbox that scripts run in.
    pub sandbox: SandboxOptions,
    /// What happens to a script's output.
    pub output: Output,
    /// The kernel of the machine.
    pub kernel: KernelModel,
    /// Its tc.
    pub tc: TcVersion,
    /// A later release: a check also says what changes until then.
    pub until: Option<LinuxVersion>,
    /// And one of tc.
    pub tc_until: Option<TcVersion>,
    /// The seed of what is drawn meanwhile.
    pub seed: u64,
    /// The kernel that the policy is for has no cake: a short policy that leaves its queues open comes to an
    /// `fq_codel` instead.
    pub without_cake: bool,
    /// A batch that is given itself goes on after a refused line, as with `-force`: what is behind it is to
    /// be checked, too. Those that scripts give to tc end there.
    pub batches_go_on: bool,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            args: Vec::new(),
            devices: Vec::new(),
            sandbox: SandboxOptions::default(),
            output: Output::Collect,
            kernel: KernelModel::default(),
            tc: TcVersion::default(),
            until: None,
            tc_until: None,
            seed: 1,
            without_cake: false,
            batches_go_on: false,
        }
    }
}

/// What files came to.
pub struct LoadedPolicy {
    /// The machine they configured.
    pub machine: Machine,
    /// What each file is.
    pub formats: Vec<InputFormat>,
    /// How taking it in went, one for each file.
    pub outcomes: Vec<ScriptRun>,
    /// The device that leads to the modem, if a short policy names it.
    pub wan: Option<String>,
    /// And the one towards the LAN.
    pub lan: Option<String>,
    /// What the policy calls its classes: in a short policy, or in comments of a script or a batch.
    pub names: ClassNames,
    /// A short policy leaves its queues open: what they are depends on [`ReadOptions::without_cake`].
    pub leaves_queues_open: bool,
    /// The network namespace of a script that it is about, if it is not the one that the script begins in.
    pub netns: Option<String>,
    /// The user named a network namespace.
    is_netns_named: bool,
    /// Its listings have no qdisc but the kernel's defaults: a sentence.
    pub(crate) only_defaults: Option<String>,
    sources: Vec<Source>,
    steps: Vec<Step>,
    /// The devices that were there before.
    devices: Vec<String>,
    /// What is drawn while it is carried out.
    draws: Seeded,
    /// The words of the line (its file's number, its own) that was looked at last.
    line_words: Option<((usize, usize), LineWords)>,
    until: Option<LinuxVersion>,
    tc_until: Option<TcVersion>,
}

/// Why a file could not be taken in.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be read, or is nothing we know: the file, and why.
    File(PathBuf, String),
    /// A script could not be captured.
    Capture(CaptureError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::File(path, why) => write!(f, "{}: {why}", shown_name(path)),
            LoadError::Capture(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

/// No command of a policy is about the device that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchDevice {
    /// The device's name.
    pub dev: String,
    /// Those that commands are about.
    pub others: Vec<String>,
}

impl fmt::Display for NoSuchDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoSuchDevice { dev, others } = self;
        let others = others.join(", ");
        write!(f, "--dev {dev}: no command of the policy is about that device; they are about {others}")
    }
}

impl std::error::Error for NoSuchDevice {}

/// Half a policy, or one of several: see [`LoadedPolicy::must_be_whole`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HalfPolicy {
    /// A command of it failed, or its script did.
    Failed,
    /// It was not carried out to its end.
    Cut,
    /// It configures several network namespaces, or another than the one that it begins in, and the user
    /// named none: a sentence.
    Elsewhere(String),
}

impl fmt::Display for HalfPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HalfPolicy::Failed => f.write_str(
                "a command of the policy failed, or its script did, so this is half a policy; correct it, or \
                put `|| true` behind a command that may fail",
            ),
            HalfPolicy::Cut => f.write_str("the policy was not carried out to its end"),
            HalfPolicy::Elsewhere(sentence) => write!(
                f,
                "{sentence}; name the namespace whose policy it shall be with --netns, and run this command \
                where it is (--netns 1 is the namespace that the script begins in)"
            ),
        }
    }
}

impl std::error::Error for HalfPolicy {}

impl LoadedPolicy {
    /// What went wrong, of all files.
    pub fn troubles(&self) -> impl Iterator<Item = &Trouble> {
        self.outcomes.iter().flat_map(|outcome| &outcome.troubles)
    }

    /// What went wrong, of all files, what was cut off by their ends, and failures that a script ignores: for
    /// people. Commands that deleted what was not there are left out: the machine is as the script wants it.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.troubles()
            .filter(|trouble| !trouble.is_idle())
            .map(ToString::to_string)
            .chain(self.cut_off())
            .chain(self.left_out())
            .chain(self.ignored_failures())
    }

    /// What is left out of other programs' settings, or done otherwise, as they are read as short policies,
    /// what listings do not say, and what is not known of the kernel: a sentence each.
    pub fn left_out(&self) -> impl Iterator<Item = String> {
        let is_read = |format: InputFormat| {
            let is_listing = matches!(format, InputFormat::Listing | InputFormat::TcJson);
            short::is_short(format) || is_listing || lists::reader(format).is_some()
        };
        let read = self.outcomes.iter().zip(&self.formats).filter(move |(_, format)| is_read(**format));
        read.flat_map(|(outcome, _)| outcome.notes.iter().cloned()).chain(self.not_known_of_kernel())
    }

    /// What of the kernel's behaviour with the policy's qdiscs is not known.
    pub fn not_known_of_kernel(&self) -> Option<String> {
        let linux = self.machine.gateway.kernel().linux;
        tidegate_inspect::not_known(linux, &self.reading().qdiscs)
    }

    /// Refuses a device that the user named and no command is about.
    ///
    /// # Errors
    /// No operation names it; the error lists the devices that there are instead.
    pub fn must_concern(&self, dev: &str) -> Result<(), NoSuchDevice> {
        let mut named = BTreeSet::new();
        for op in &self.machine.log {
            op.clone().each_device(&mut |name| {
                named.insert(name.clone());
            });
        }
        if named.is_empty() || named.contains(dev) || self.wan.as_deref() == Some(dev) {
            return Ok(());
        }
        Err(NoSuchDevice { dev: dev.to_owned(), others: named.into_iter().collect() })
    }

    /// How many commands its scripts issued, the refused ones included.
    pub fn commands(&self) -> usize {
        self.outcomes.iter().map(|outcome| outcome.calls.len()).sum()
    }

    /// Did every file come to its end, well or with an error?
    pub fn ended(&self) -> bool {
        self.outcomes.iter().all(|outcome| matches!(outcome.exit, Exit::Code(_) | Exit::Signal(_)))
    }

    /// Refuses half a policy: a script was cut or ended with an error, or a command failed that may not.
    /// Applied, it may leave a device without its classes. One that is for another network namespace is
    /// refused, too, where the user named none.
    ///
    /// # Errors
    /// It is one, and what may help.
    pub fn must_be_whole(&self) -> Result<(), HalfPolicy> {
        let ended_well = |outcome: &ScriptRun| matches!(outcome.exit, Exit::Code(0));
        let is_whole = self.outcomes.iter().all(ended_well) && self.troubles().all(Trouble::is_idle);
        if !is_whole {
            return Err(if self.ended() { HalfPolicy::Failed } else { HalfPolicy::Cut });
        }
        let mut elsewhere = self.outcomes.iter().filter_map(|outcome| outcome.namespaces.as_ref());
        match elsewhere.next().filter(|_| !self.is_netns_named) {
            Some(sentence) => Err(HalfPolicy::Elsewhere(sentence.clone())),
            None => Ok(()),
        }
    }

    /// Refuses a policy whose scripts went wrong, so that nothing can be simulated. With `keep_going` only
    /// one that was cut short; what else went wrong is returned.
    ///
    /// # Errors
    /// A script that did not come to its end, or one that failed, in words.
    pub fn must_have_worked(&self, keep_going: bool) -> Result<Vec<&'static str>, String> {
        let went = self.outcomes.iter().map(|outcome| check_run(outcome, keep_going));
        went.filter_map(Result::transpose).collect()
    }

    /// Commands whose failure or its message the script ignores, a sentence each.
    fn ignored_failures(&self) -> Vec<String> {
        // A script's words and names must not look like tidegate's own lines.
        let escaped = |sentence: &String| tidegate_text::line(sentence).to_string();
        tidegate_inspect::ignored_failures(&self.reading()).iter().map(escaped).collect()
    }

    /// Why there is no result: the policy has no traffic control. `None`: it has.
    pub fn nothing_found(&self) -> Option<String> {
        let nothing = nothing_found(&self.outcomes, self.texts())?;
        Some(self.only_defaults.clone().unwrap_or(nothing))
    }

    /// Its files, each with its name and lines.
    fn texts(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.sources.iter().map(|source| (source.name.as_str(), &source.lines[..]))
    }

    /// That scripts only delete and list, a sentence each.
    fn only_deletes(&self) -> Vec<String> {
        if !self.formats.contains(&InputFormat::Script) || self.nothing_found().is_some() {
            return Vec::new();
        }
        nothing::only_deletes(&self.outcomes, &self.machine.log, self.texts())
    }

    /// The policy with its lines, for checks and explanations.
    pub fn reading(&self) -> PolicyModel {
        let mut reading = PolicyModel::new(PolicyInput {
            sources: self.sources.clone(),
            steps: self.steps.clone(),
            ops: self.machine.log.clone(),
            devices: devices_before(&self.machine),
            down: self.machine.host.down().map(str::to_owned).collect(),
            kernel: self.machine.gateway.kernel(),
            tc: self.machine.tc,
            kernel_log: self.machine.kernel_log.clone(),
            scripts: self.formats.contains(&InputFormat::Script),
        });
        reading.names.clone_from(&self.names);
        (reading.until, reading.tc_until) = (self.until, self.tc_until);
        if self.outcomes.iter().any(|outcome| outcome.cut_short) {
            reading.is_cut_short();
        }
        reading.arrived = self.machine.host.arrived().map(|(name, _)| name.to_owned()).collect();
        let ports = self.machine.host.ports();
        reading.ports = ports.map(|(port, bridge)| (port.to_owned(), bridge.to_owned())).collect();
        reading.compiled = self.formats.iter().copied().any(short::is_short);
        reading
    }
}

fn check_run(outcome: &ScriptRun, keep_going: bool) -> Result<Option<&'static str>, String> {
    let how = match &outcome.exit {
        Exit::Code(0) if outcome.troubles.iter().all(Trouble::is_idle) => return Ok(None),
        Exit::Code(0) => "a command in it failed",
        Exit::Code(_) | Exit::Signal(_) => "it ended with an error",
        // Half a policy is another policy: not even --keep-going simulates that.
        _ => return Err("it did not come to its end, so nothing was simulated".to_owned()),
    };
    if keep_going {
        return Ok(Some(how));
    }
    Err(format!("{how}, so nothing was simulated (--keep-going does it with what was understood)"))
}

/// The devices that were there before the first command, and those that came into being by being named.
fn devices_before(machine: &Machine) -> Vec<(String, DeviceSpec)> {
    let mut made = BTreeSet::new();
    let mut gone = BTreeSet::new();
    for op in &machine.log {
        match op {
            Op::Link(LinkOp::Add { name, kind }) => {
                // A veth is made with its other end.
                let peer = if let LinkDriver::Veth { peer } = kind { Some(peer) } else { None };
                made.extend(std::iter::once(name).chain(peer).filter(|name| !gone.contains(*name)).cloned());
            }
            Op::Link(LinkOp::Rename { to, name }) if made.contains(name) => drop(made.insert(to.clone())),
            Op::Link(LinkOp::Rename { to, name }) => {
                made.insert(to.clone());
                gone.insert(name.clone());
            }
            Op::Link(LinkOp::Delete { name }) if !made.contains(name) => drop(gone.insert(name.clone())),
            _ => {}
        }
    }
    let there = machine
        .gateway
        .devices()
        .map(|id| machine.gateway.name(id).to_owned())
        .filter(|name| !made.contains(name));
    let names: BTreeSet<String> = there.chain(gone.iter().cloned()).collect();
    // A link that another namespace had is as it came.
    let arrived: BTreeMap<&str, DeviceSpec> = machine.host.arrived().collect();
    let spec =
        |name: &str| arrived.get(name).copied().unwrap_or_else(|| DeviceSpec::of(&LinkDriver::of_name(name)));
    names.into_iter().map(|name| (name.clone(), spec(&name))).collect()
}

/// A file's text, and what it is.
type Text = (InputFormat, String);

/// Loads files that belong together, in their order, on one machine.
///
/// # Errors
/// A file cannot be read, has no known format, or cannot be run. Errors inside a script are in
/// [`LoadedPolicy::outcomes`].
pub fn read(files: &[PathBuf], options: &ReadOptions) -> Result<LoadedPolicy, LoadError> {
    let mut texts = Vec::new();
    for path in files {
        texts.push(text(path).map_err(|error| taken_for_a_file(error, files, &texts))?);
    }
    read_texts(files, texts, options)
}

/// A missing file that follows a script may be meant as the script's argument.
fn taken_for_a_file(error: LoadError, files: &[PathBuf], before: &[Text]) -> LoadError {
    match (error, before.last(), files) {
        (LoadError::File(path, why), Some((InputFormat::Script, _)), [script, ..]) if !path.exists() => {
            let why = format!(
                "{why}; a script's arguments come after `--`: {} -- {}",
                shown_name(script),
                shown_name(&path)
            );
            LoadError::File(path, why)
        }
        (error, ..) => error,
    }
}

/// Loads a text that is in no file; a script cannot be loaded so.
///
/// ```
/// use tidegate_loader::{LoadError, ReadOptions, read_text};
///
/// let unknown = read_text("notes.txt", "buy milk", &ReadOptions::default());
/// assert!(matches!(unknown, Err(LoadError::File(..))));
/// ```
///
/// # Errors
/// As for [`read`].
pub fn read_text(name: &str, text: &str, options: &ReadOptions) -> Result<LoadedPolicy, LoadError> {
    let path = PathBuf::from(name);
    let format =
        sniff(name, text.as_bytes()).map_err(|why| LoadError::File(path.clone(), why.to_string()))?;
    if format == InputFormat::Script {
        return Err(LoadError::File(
            path,
            "a script must be a file, because it is run; save it first".into(),
        ));
    }
    read_texts(&[path], vec![(format, text.to_owned())], options)
}

/// Loads commands as a daemon keeps them: their words, each with its tool first. Each is a line of its own;
/// devices that are taken for granted are those that they name and do not make.
///
/// ```
/// use tidegate_loader::{ReadOptions, read_commands};
///
/// let words = "tc qdisc add dev eth0 root fq_codel".split(' ').map(str::to_owned).collect();
/// let policy = read_commands("the daemon of eth0", &[words], &ReadOptions::default())?;
/// assert_eq!(policy.machine.log.len(), 1);
/// # Ok::<(), tidegate_loader::LoadError>(())
/// ```
///
/// # Errors
/// As for [`read`]; refused commands are in [`LoadedPolicy::outcomes`].
pub fn read_commands(
    name: &str,
    commands: &[Vec<String>],
    options: &ReadOptions,
) -> Result<LoadedPolicy, LoadError> {
    let (text, list) = lists::of_commands(commands);
    let devices = options.devices.iter().cloned().chain(lists::taken_for_granted(commands)).collect();
    let mut policy = LoadedPolicy::of_devices(devices, options);
    policy.carry_out(Path::new(name), InputFormat::Batch, &text, FileCalls::List(list), options)?;
    Ok(policy)
}

/// Loads a text of commands that need no shell, each with its tool first, as `tidegate run --print tc` writes
/// them; `None`: only a shell can read it.
///
/// ```
/// use tidegate_loader::{ReadOptions, read_command_list};
///
/// let list = "# home\ntc qdisc add dev eth0 root cake bandwidth 20mbit\n";
/// let policy = read_command_list("home.sh", list, &ReadOptions::default()).unwrap()?;
/// assert_eq!(policy.reading().steps[0].place.as_ref().unwrap().line, 2);
/// assert!(read_command_list("home.sh", "tc qdisc show dev $DEV", &ReadOptions::default()).is_none());
/// # Ok::<(), tidegate_loader::LoadError>(())
/// ```
///
/// # Errors
/// As for [`read`]; refused commands are in [`LoadedPolicy::outcomes`].
pub fn read_command_list(
    name: &str,
    text: &str,
    options: &ReadOptions,
) -> Option<Result<LoadedPolicy, LoadError>> {
    let list = command_list::commands(text)?;
    let words = |one: &ListedCall| [std::slice::from_ref(&one.call.tool), &one.call.args].concat();
    let commands: Vec<Vec<String>> = list.iter().map(words).collect();
    let named = lists::devices(InputFormat::Batch, name, text);
    let taken = lists::taken_for_granted(&commands);
    let is_made = |device: &String| LinkDriver::of_name(device) == LinkDriver::Ifb && !taken.contains(device);
    let devices = options.devices.iter().cloned().chain(named.into_iter().filter(|name| !is_made(name)));
    let mut policy = LoadedPolicy::of_devices(devices.chain(taken.iter().cloned()).collect(), options);
    let carried = policy.carry_out(Path::new(name), InputFormat::Batch, text, FileCalls::List(list), options);
    Some(carried.map(|()| policy))
}

/// The installed policy as a short policy, with what that leaves out or does otherwise.
pub fn to_short(reading: &PolicyModel) -> ShortPolicy {
    let load = |text: &str| match read_text("policy.toml", text, &ReadOptions::default()) {
        Ok(policy) => Ok(policy.reading()),
        Err(error) => Err(error.to_string()),
    };
    to_short::to_short(reading, &load)
}

/// Comments of a script that give classes these names when it is loaded, a line each. A name that no comment
/// can hold has none.
///
/// ```
/// use tidegate_loader::{ReadOptions, name_comments, read_text};
///
/// let batch = "qdisc add dev eth0 root handle 1: htb\n\
///              class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n";
/// let named = read_text("a.batch", &format!("# 1:20 web\n{batch}"), &ReadOptions::default()).unwrap();
/// assert_eq!(name_comments(&named.names), "# tidegate: class eth0 1:20 web\n");
/// ```
pub fn name_comments(names: &ClassNames) -> String {
    let lines = names.iter().filter_map(|((dev, class), name)| comments::comment_of(dev, *class, name));
    lines.map(|line| line + "\n").collect()
}

/// Loads a text of a known format, for the fuzzer.
///
/// # Errors
/// As for [`read`].
pub fn read_as(format: InputFormat, text: &str, options: &ReadOptions) -> Result<LoadedPolicy, LoadError> {
    read_texts(&[PathBuf::from("input")], vec![(format, text.to_owned())], options)
}

fn read_texts(files: &[PathBuf], texts: Vec<Text>, options: &ReadOptions) -> Result<LoadedPolicy, LoadError> {
    let (listings, inputs) = listings_apart(files, texts, options.devices.first().map(String::as_str))?;
    let mut devices = options.devices.clone();
    for input in &inputs {
        match input {
            FileInput::Listings => devices.extend(listings.iter().flat_map(Listings::devices)),
            FileInput::Other(path, (InputFormat::Script, _)) => {
                devices.extend(devices_of_script(path, &options.args)?);
            }
            FileInput::Other(path, (format, text)) => {
                devices.extend(lists::devices(*format, &path.to_string_lossy(), text));
            }
        }
    }
    let mut policy = LoadedPolicy::of_devices(devices, options);
    for input in &inputs {
        match (input, &listings) {
            (FileInput::Other(path, (InputFormat::Script, text)), _) => {
                policy.carry_out(path, InputFormat::Script, text, FileCalls::Script, options)?;
            }
            (FileInput::Other(path, (format, text)), _) => {
                let calls = lists::calls(*format, path, text, options.without_cake)
                    .map_err(|why| LoadError::File(path.clone(), why))?;
                policy.carry_out(path, *format, text, FileCalls::List(calls), options)?;
            }
            (FileInput::Listings, Some(listings)) => policy.carry_out_listings(listings, options)?,
            (FileInput::Listings, None) => {}
        }
    }
    Ok(policy)
}

/// A file, or all listings together in the place of the first of them.
enum FileInput {
    Listings,
    Other(PathBuf, Text),
}

/// Listings of qdiscs, classes and filters belong together, whatever file each is in.
fn listings_apart(
    files: &[PathBuf],
    texts: Vec<Text>,
    dev: Option<&str>,
) -> Result<(Option<Listings>, Vec<FileInput>), LoadError> {
    let (mut listed, mut inputs) = (Vec::new(), Vec::new());
    for (path, (format, text)) in files.iter().zip(texts) {
        if !matches!(format, InputFormat::Listing | InputFormat::TcJson) {
            inputs.push(FileInput::Other(path.clone(), (format, text)));
            continue;
        }
        if listed.is_empty() {
            inputs.push(FileInput::Listings);
        }
        listed.push((path.clone(), text, format == InputFormat::TcJson));
    }
    let listings = if listed.is_empty() { None } else { Some(Listings::of(listed, dev).map_err(unread)?) };
    Ok((listings, inputs))
}

/// Where the calls of a file come from.
enum FileCalls {
    /// The file is a script, which is run.
    Script,
    /// The file lists them.
    List(Vec<ListedCall>),
}

impl LoadedPolicy {
    /// A machine with these devices, and nothing configured on it.
    fn of_devices(mut devices: Vec<String>, options: &ReadOptions) -> LoadedPolicy {
        let mut seen = BTreeSet::new();
        devices.retain(|device| seen.insert(device.clone()));
        let mut machine = Machine::for_script(devices.iter().map(String::as_str));
        machine.distributions = distributions::installed();
        machine.now = CARRIED_OUT_AT;
        machine.gateway.set_kernel(options.kernel);
        machine.tc = options.tc;
        LoadedPolicy {
            machine,
            formats: Vec::new(),
            outcomes: Vec::new(),
            wan: None,
            lan: None,
            names: ClassNames::new(),
            leaves_queues_open: false,
            netns: None,
            is_netns_named: options.sandbox.netns.is_some(),
            only_defaults: None,
            sources: Vec::new(),
            steps: Vec::new(),
            devices,
            draws: Seeded::new(options.seed),
            line_words: None,
            until: options.until,
            tc_until: options.tc_until,
        }
    }

    /// Carries out the calls of a file, after those of the files before it.
    fn carry_out(
        &mut self,
        path: &Path,
        format: InputFormat,
        text: &str,
        calls: FileCalls,
        options: &ReadOptions,
    ) -> Result<(), LoadError> {
        let mut pool = Pool::new(0);
        let mut traced = Traced::new(self.machine.shim(&mut pool, &mut self.draws));
        let (mut outcome, list) = match calls {
            FileCalls::Script => (run_script(path, &self.devices, options, &mut traced)?, None),
            FileCalls::List(list) => {
                let goes_on = options.batches_go_on;
                (lists::carry_out((&list, goes_on), &[(path, text)], &self.devices, &mut traced), Some(list))
            }
        };
        let chosen = Chosen::of(traced, path, options.sandbox.netns.as_deref())
            .map_err(|why| LoadError::File(path.to_owned(), why))?;
        let came = chosen.leave([&mut outcome]);
        if let Some(netns) = chosen.netns {
            (self.machine, self.netns) = (netns.machine, Some(netns.name));
        }
        let begun = self.steps.len();
        self.note(path, text, &outcome, &came, list.as_deref());
        point_inside(&mut outcome);
        self.formats.push(format);
        outcome.notes.extend(lists::left_out(format, path, text, options.without_cake));
        if let Some((wan, lan)) = lists::ends(format, &path.to_string_lossy(), text) {
            (self.wan, self.lan) = (Some(wan), lan);
        }
        let (names, is_open) =
            lists::class_names(format, &path.to_string_lossy(), text, options.without_cake);
        self.names.extend(names);
        self.leaves_queues_open |= is_open;
        if matches!(format, InputFormat::Script | InputFormat::Batch) {
            let named = comments::class_names(&self.sources, &self.steps[begun..], &self.machine.log);
            self.names.extend(named);
        }
        self.outcomes.push(outcome);
        Ok(())
    }

    /// A word of JSON is another one in the command: what is found is in the object's line.
    fn unplace_words_of_json(&mut self, begun: usize, listings: &Listings) {
        let is_json = |file: usize| {
            let name = self.sources.get(file).map(|source| source.name.as_str());
            listings.files.iter().any(|(path, _, json)| *json && name == Some(&path.display().to_string()))
        };
        for step in &mut self.steps[begun..] {
            if step.place.as_ref().is_some_and(|place| is_json(place.file)) {
                step.words.iter_mut().for_each(|word| *word = Word::unplaced(word.text.clone()));
            }
        }
    }

    /// Makes what listings have, and refuses what is not there afterwards as they say.
    fn carry_out_listings(&mut self, listings: &Listings, options: &ReadOptions) -> Result<(), LoadError> {
        let mut pool = Pool::new(0);
        let files: Vec<(&Path, &str)> =
            listings.files.iter().map(|(path, text, _)| (path.as_path(), text.as_str())).collect();
        let list = listings.calls();
        let mut traced = Traced::new(self.machine.shim(&mut pool, &mut self.draws));
        let mut outcome =
            lists::carry_out((&list, options.batches_go_on), &files, &self.devices, &mut traced);
        let chosen = Chosen::of(traced, files[0].0, options.sandbox.netns.as_deref())
            .map_err(|why| LoadError::File(files[0].0.to_owned(), why))?;
        let came = chosen.leave([&mut outcome]);
        let caveats = listings.verify(&mut self.machine, &outcome, &mut self.draws).map_err(unread)?;
        for (path, text) in files {
            self.note_source(path, text);
        }
        let (path, text, _) = &listings.files[0];
        let begun = self.steps.len();
        self.note(path, text, &outcome, &came, Some(&list));
        self.unplace_words_of_json(begun, listings);
        outcome.notes.extend(caveats);
        self.formats.push(listings.format());
        self.only_defaults = listings.nothing();
        self.outcomes.push(outcome);
        Ok(())
    }
}

fn unread(Unread(path, why): Unread) -> LoadError {
    LoadError::File(path, why)
}

/// The devices that a script's text names.
#[cfg(feature = "run")]
fn devices_of_script(path: &Path, args: &[String]) -> Result<Vec<String>, LoadError> {
    tidegate_capture::devices_of(path, args).map_err(LoadError::Capture)
}

#[cfg(not(feature = "run"))]
fn devices_of_script(path: &Path, _: &[String]) -> Result<Vec<String>, LoadError> {
    Err(not_run(path))
}

/// Runs a script.
#[cfg(feature = "run")]
fn run_script(
    path: &Path,
    devices: &[String],
    options: &ReadOptions,
    traced: &mut Traced<'_>,
) -> Result<ScriptRun, LoadError> {
    let capture = tidegate_capture::CaptureOptions {
        timeout: options.sandbox.timeout,
        private: options.sandbox.private,
        answers: options.sandbox.answers.clone(),
        stubs: options.sandbox.stubs.clone(),
        output: options.output,
        devices: devices.to_vec(),
        ..tidegate_capture::CaptureOptions::default()
    };
    tidegate_capture::run_script(path, &options.args, &capture, traced).map_err(LoadError::Capture)
}

#[cfg(not(feature = "run"))]
fn run_script(
    path: &Path,
    _: &[String],
    _: &ReadOptions,
    _: &mut Traced<'_>,
) -> Result<ScriptRun, LoadError> {
    Err(not_run(path))
}

#[cfg(not(feature = "run"))]
fn not_run(path: &Path) -> LoadError {
    let why = "a script cannot be run here; paste what `tidegate run --print tc SCRIPT` prints";
    LoadError::File(path.to_owned(), why.to_owned())
}

/// A file's text, and what it is.
fn text(path: &Path) -> Result<Text, LoadError> {
    let file = |why: String| LoadError::File(path.to_owned(), why);
    let bytes = bytes(path).map_err(file)?;
    let name = path.to_string_lossy();
    let format = sniff(&name, &bytes).map_err(|why| file(why.to_string()))?;
    if files::is_handed_over(path) && format == InputFormat::Script {
        return Err(file("a script must be a file, because it is run; save it first".into()));
    }
    let text = match String::from_utf8(bytes) {
        // A shell takes it for a part of the first word.
        Ok(text) if format != InputFormat::Script => {
            text.strip_prefix(BYTE_ORDER_MARK).map_or_else(|| text.clone(), str::to_owned)
        }
        Ok(text) => text,
        // Comments in scripts may be in any encoding; elsewhere a wrong letter would become part of a name.
        Err(error) if format == InputFormat::Script => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
            return Err(file(format!(
                "line {line} is not UTF-8; convert the file (iconv -f iso-8859-1 -t utf-8), or fix the line"
            )));
        }
    };
    Ok((format, text))
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path, MAX_POLICY).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            "there is no such file; check the path (it is taken from the current directory)".to_owned()
        }
        ErrorKind::InvalidInput => error.to_string(),
        ErrorKind::FileTooLarge => format!("is longer than {} MB, which no policy is", MAX_POLICY >> 20),
        ErrorKind::PermissionDenied => format!("cannot be read: {error}; check its permissions with `ls -l`"),
        _ => format!("cannot be read: {error}"),
    })
}
