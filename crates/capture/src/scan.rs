//! What a script's text shows before it runs: its interpreter, the files it reads in, the devices and paths
//! it names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::CaptureError;
use super::values::{Values, Variables, resolve};
use super::words::{self, Command};
use tidegate_shims::TOOLS;

/// The longest script that is read, in bytes.
const MAX_SCRIPT: u64 = 8 << 20;
/// The most files that a script reads in which are looked at.
const MAX_SOURCED: usize = 32;
/// The most names in a script's text that are looked for among the host's files.
const MAX_NAMED: usize = 4096;
/// The most devices that are created for a script.
const MAX_DEVICES: usize = 64;
/// The most directories that a script's text can name as those of tools.
const MAX_TOOL_DIRS: usize = 256;
/// Directories where scripts look for tools.
const TOOL_DIRS: [&str; 6] = ["/sbin", "/usr/sbin", "/bin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];

/// A script as read.
#[derive(Debug)]
pub(super) struct Script {
    /// The script and the files it reads in, the script first, as the user would name them.
    pub(super) files: Vec<(PathBuf, String)>,
    /// That another shell than its first line's runs it, in a sentence.
    pub(super) stand_in: Option<String>,
    /// The script's absolute path.
    pub(super) path: PathBuf,
    /// Interpreter and its option, from the `#!` line; `sh` without one.
    pub(super) interpreter: Vec<OsString>,
}

impl Script {
    /// Reads a script and what it sources with a literal path.
    ///
    /// # Errors
    /// Not there, not readable, not a text, its interpreter missing.
    pub(super) fn read(path: &Path) -> Result<Self, CaptureError> {
        let bytes = read_bounded(path)?;
        if is_binary(&bytes) {
            return Err(CaptureError::NotAScript(path.to_owned()));
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // A line or two of a here-document may end so on purpose; the first line, or most, may not.
        let ends: Vec<bool> =
            text.lines().zip(text.split('\n')).map(|(_, line)| line.ends_with('\r')).collect();
        if ends.first() == Some(&true) || ends.iter().filter(|end| **end).count() * 2 > ends.len() {
            let first = ends.iter().position(|end| *end).unwrap_or(0);
            return Err(CaptureError::CarriageReturns(path.to_owned(), first + 1));
        }
        let interpreter = interpreter(path, &text)?;
        let absolute = fs::canonicalize(path).map_err(|error| CaptureError::read(path, &error))?;
        let stand_in = stand_in(&text, &interpreter);
        let mut script = Self { files: vec![(path.to_owned(), text)], stand_in, path: absolute, interpreter };
        script.read_sourced();
        Ok(script)
    }

    /// The program to start, with the script's arguments.
    pub(super) fn program(&self, args: &[String]) -> Vec<OsString> {
        let mut program = self.interpreter.clone();
        program.push(self.path.clone().into());
        program.extend(args.iter().map(OsString::from));
        program
    }

    /// Devices the text names, in order of appearance.
    pub(super) fn devices(&self, args: &[String]) -> Vec<String> {
        let mut commands = Vec::new();
        for (_, text) in &self.files {
            commands.extend(words::commands(text));
            // A script may write another, and run that.
            let written = words::here_documents(text);
            let written = written.iter().map(|text| words::commands(text));
            commands.extend(written.filter(|commands| commands.iter().any(calls_tc)).flatten());
        }
        devices(&commands, args)
    }

    /// Directories where this script or any other may look for tools: absolute, without symbolic links.
    pub(super) fn tool_dirs(&self) -> Vec<PathBuf> {
        let usual: BTreeSet<PathBuf> = usual_tool_dirs().into_iter().collect();
        // `/sbin/tc/tc` in a comment takes the tool away from no command.
        let within_tool =
            |dir: &Path| usual.iter().any(|usual| TOOLS.iter().any(|tool| dir.starts_with(usual.join(tool))));
        let mut dirs = usual.clone();
        for (_, text) in &self.files {
            let ends = |letter: char| !(letter.is_ascii_alphanumeric() || "/._-+".contains(letter));
            let values = values(text);
            let pieces = text.split(ends).chain(values.values().map(String::as_str));
            for piece in pieces.filter(|piece| piece.starts_with('/')) {
                let path = Path::new(piece);
                let named = path.file_name().and_then(|name| name.to_str());
                if let (Some(name), Some(dir)) = (named, path.parent())
                    && TOOLS.contains(&name)
                    && dir.components().count() <= 16
                    && !piece.contains("..")
                {
                    let dir = real(dir);
                    if dirs.len() < usual.len() + MAX_TOOL_DIRS && (dir.is_dir() || !within_tool(&dir)) {
                        dirs.insert(dir);
                    }
                }
            }
        }
        may_contain_tools(dirs)
    }

    /// Notes the host's files that the script may read when it runs: those that its text or its arguments
    /// name, from the working directory or beside the script. No result is written over them.
    pub(super) fn note_named(&self, cwd: &Path, turns: &[Vec<String>]) {
        let dirs = [cwd, self.path.parent().unwrap_or(Path::new("/"))];
        let mut pieces: BTreeSet<&str> = self.files.iter().flat_map(|(_, text)| file_names(text)).collect();
        while pieces.len() > MAX_NAMED {
            pieces.pop_last();
        }
        for name in turns.iter().flatten().map(String::as_str).chain(pieces) {
            for dir in dirs {
                tidegate_sys::input_file::note(&dir.join(name));
            }
        }
    }

    fn read_sourced(&mut self) {
        let dir = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        let mut at = 0;
        while at < self.files.len() && self.files.len() < MAX_SOURCED {
            let commands = words::commands(&self.files[at].1);
            let variables = Variables::of(&commands, &[]).of_script();
            for command in commands {
                let [verb, file, ..] = &command.words[..] else {
                    continue;
                };
                if verb.text != "." && verb.text != "source" {
                    continue;
                }
                for found in sourced(&file.raw, &variables, &dir) {
                    let named = as_given(&found, &dir, &self.files[0].0);
                    let known = self.files.iter().any(|(path, _)| *path == named);
                    if !known
                        && !is_new_inside(&named)
                        && self.files.len() < MAX_SOURCED
                        && let Ok(bytes) = read_bounded(&named)
                    {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        self.files.push((named, text));
                    }
                }
            }
            at += 1;
        }
    }
}

/// Possible names of files in a script's text, without its comments; of `$DIR/name` and `$(command)/name`
/// also the part behind the first slash.
fn file_names(text: &str) -> impl Iterator<Item = &str> {
    let ends = |letter: char| !(letter.is_alphanumeric() || "/._-+,@:${}".contains(letter));
    let pieces = text.lines().flat_map(move |line| without_comment(line).split(ends));
    let behind = |piece: &'_ str| piece.starts_with(['/', '$']);
    pieces
        .flat_map(move |piece| {
            let rest = piece.split_once('/').filter(|_| behind(piece)).map(|(_, rest)| rest);
            [Some(piece).filter(|piece| !piece.contains(['$', '{', '}'])), rest]
        })
        .flatten()
        .filter(|piece| piece.contains(char::is_alphanumeric))
}

/// A line up to its comment.
fn without_comment(line: &str) -> &str {
    let begins = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    line.match_indices('#').find(|(at, _)| begins(*at)).map_or(line, |(at, _)| &line[..at])
}

/// Where a `. FILE` may point: as written, from a variable, or beside the script.
fn sourced(raw: &str, variables: &Values, dir: &Path) -> Vec<PathBuf> {
    let bare = raw.trim_matches(['"', '\'']);
    let mut names = resolve(raw, variables);
    // `. "$(dirname "$0")/lib.sh"`, `. $DIR/lib.sh`: the last part beside the script.
    if names.is_empty()
        && let Some((_, last)) = bare.rsplit_once('/')
        && !last.contains(['$', '`', ')'])
    {
        names.push(format!("./{last}"));
    }
    names
        .into_iter()
        .flat_map(|name| [dir.join(&name), PathBuf::from(name)])
        .filter(|path| path.is_file())
        .take(1)
        .collect()
}

/// The most variables that are looked at, and the longest value.
const MAX_VALUES: usize = 256;
const MAX_VALUE: usize = 1024;

/// What lines give to variables: `D=/opt/x`, and `TC=$D/tc/tc` behind it, whose value begins with another's.
fn values(text: &str) -> BTreeMap<&str, String> {
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=').filter(|(name, _)| super::words::is_name(name)) else {
            continue;
        };
        let value = value.trim_start_matches(['"', '\'']);
        let value = &value[..value.find([' ', '\t', ';', '"', '\'']).unwrap_or(value.len())];
        let whole = match value.strip_prefix('$') {
            None => value.to_owned(),
            Some(rest) => {
                let bare = rest.trim_start_matches('{');
                let end = bare.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                let (other, rest) = bare.split_at(end.unwrap_or(bare.len()));
                let Some(before) = values.get(other) else { continue };
                format!("{before}{}", rest.trim_start_matches('}'))
            }
        };
        if values.len() < MAX_VALUES && whole.len() <= MAX_VALUE && !whole.contains('$') {
            values.insert(name, whole);
        }
    }
    values
}

/// A file's name as the user would write it beside `script`, which is in `dir`.
fn as_given(file: &Path, dir: &Path, script: &Path) -> PathBuf {
    let given = script.parent().unwrap_or(Path::new(""));
    let name = file.strip_prefix(dir).map_or_else(|_| file.to_owned(), |inside| given.join(inside));
    // Without `./` inside.
    let plain: PathBuf = name.components().filter(|part| *part != std::path::Component::CurDir).collect();
    if plain.as_os_str().is_empty() { name } else { plain }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, CaptureError> {
    let wrong = |error: std::io::Error| CaptureError::read(path, &error);
    if tidegate_sys::input_file::metadata(path).map_err(wrong)?.is_dir() {
        return Err(CaptureError::IsDirectory(path.to_owned()));
    }
    let mut bytes = Vec::new();
    let file = tidegate_sys::input_file::open(path).map_err(wrong)?;
    file.take(MAX_SCRIPT + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > MAX_SCRIPT {
        return Err(CaptureError::TooLong(path.to_owned(), MAX_SCRIPT));
    }
    Ok(bytes)
}

/// Is it data for programs? A text has no zero bytes at its beginning, and hardly any control characters.
fn is_binary(bytes: &[u8]) -> bool {
    let begins = &bytes[..bytes.len().min(512)];
    let is_control = |byte: &&u8| **byte < b' ' && !b"\t\n\r\x0b\x0c\x08\x1b".contains(byte);
    begins.contains(&0) || begins.iter().filter(is_control).count() * 20 > begins.len()
}

/// Whether a script without a `#!` line shows in another way that it is for bash. A bash that is asked to run
/// such a file runs it itself.
fn is_for_bash(text: &str) -> bool {
    const WORDS: [&str; 8] =
        ["[[ ", "if [[ ", "while [[ ", "for ((", "function ", "declare ", "source ", "#!/bin/bash"];
    // POSIX allows no hyphen in a function's name; `&>` runs the command in the background there.
    let has_hyphen = |line: &str| {
        let name = line.split_once("()").map_or("", |(name, _)| name.trim_end());
        name.contains('-')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
    };
    text.lines().map(str::trim_start).filter(|line| !line.starts_with('#') || line.starts_with("#!")).any(
        |line| {
            WORDS.iter().any(|word| line.starts_with(word))
                || has_hyphen(line)
                || line.contains("&>")
                || line.contains("<<<")
        },
    )
}

/// The words of the `#!` line; the kernel gives everything behind the first blank as one word.
fn interpreter(path: &Path, text: &str) -> Result<Vec<OsString>, CaptureError> {
    let first = text.lines().next().unwrap_or("");
    let Some(line) = first.strip_prefix("#!") else {
        let bash = Path::new("/bin/bash");
        return Ok(vec![if is_for_bash(text) && bash.exists() { bash.into() } else { "sh".into() }]);
    };
    let line = line.trim();
    if line.is_empty() {
        return Ok(vec!["sh".into()]);
    }
    let (program, option) = words_of(line);
    if is_busybox_shell(program, option) {
        return Ok(ash(None));
    }
    if let Some(missing) = missing_interpreter(line) {
        if is_ash(missing) {
            return Ok(ash(option.filter(|option| option.starts_with('-'))));
        }
        return Err(CaptureError::NoInterpreter { script: path.to_owned(), interpreter: missing.to_owned() });
    }
    // `#!/bin/sh /etc/rc.common`: that file runs the script, which only defines what it calls.
    if let Some(missing) = option.filter(|option| option.starts_with('/') && !Path::new(option).exists()) {
        return Err(CaptureError::NoInterpreter { script: path.to_owned(), interpreter: missing.to_owned() });
    }
    let mut words: Vec<OsString> = vec![program.into()];
    words.extend(option.filter(|option| !option.is_empty()).map(OsString::from));
    Ok(words)
}

/// The shell of BusyBox, of which routers' scripts are.
const ASH: &str = "ash";

fn is_ash(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == ASH)
}

/// `#!/bin/busybox sh`: its own tc and ip would run instead of those that are emulated.
fn is_busybox_shell(program: &str, option: Option<&str>) -> bool {
    let is_shell = |applet: &str| matches!(applet, "sh" | ASH);
    Path::new(program).file_name().is_some_and(|name| name == "busybox")
        && option.and_then(|words| words.split_whitespace().next()).is_some_and(is_shell)
}

/// What runs a script for ash where none is installed by that name: bash, which knows ash's words, else the
/// system's sh. Not BusyBox itself: its shell may prefer a tc and an ip of its own.
fn ash(option: Option<&str>) -> Vec<OsString> {
    let bash = Path::new("/bin/bash");
    let program = if bash.exists() { bash.into() } else { OsString::from("sh") };
    [program].into_iter().chain(option.map(OsString::from)).collect()
}

/// What to say where another shell runs a script for ash.
fn stand_in(text: &str, interpreter: &[OsString]) -> Option<String> {
    let wanted = text.lines().next()?.strip_prefix("#!")?.trim();
    let (program, option) = words_of(wanted);
    let is_for_ash = is_busybox_shell(program, option) || missing_interpreter(wanted).is_some_and(is_ash);
    let program = interpreter.first().filter(|_| is_for_ash)?.to_string_lossy();
    Some(format!(
        "the script is for BusyBox's ash, and {program} runs it here: what ash does not read as bash does (`$[…]`, \
         `{{1..5}}`, arrays) is not found"
    ))
}

/// The most of a file that the kernel looks at for a `#!` line, bytes.
const FIRST_LINE: u64 = 256;

/// Whether a program can be run by its path, as far as its first line shows: the interpreter of its `#!` line
/// is there.
///
/// # Errors
/// It is not, with its name; the file cannot be read; its lines end in CR LF.
pub fn check_program(path: &Path) -> Result<(), CaptureError> {
    let mut first = Vec::new();
    let file = File::open(path).map_err(|error| CaptureError::read(path, &error))?;
    file.take(FIRST_LINE).read_to_end(&mut first).map_err(|error| CaptureError::read(path, &error))?;
    let first = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(line) = first.strip_prefix(b"#!") else { return Ok(()) };
    if line.ends_with(b"\r") {
        return Err(CaptureError::CarriageReturns(path.to_owned(), 1));
    }
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    // The kernel searches no path for it, and it is started in `/`.
    let (program, _) = words_of(line);
    let missing = match Path::new("/").join(program).exists() {
        false => Some(program),
        true => missing_interpreter(line),
    };
    match missing {
        Some(missing) => {
            Err(CaptureError::NoInterpreter { script: path.to_owned(), interpreter: missing.to_owned() })
        }
        None => Ok(()),
    }
}

/// The program of a `#!` line, and what stands behind it.
fn words_of(line: &str) -> (&str, Option<&str>) {
    match line.split_once([' ', '\t']) {
        Some((program, option)) => (program, Some(option.trim())),
        None => (line, None),
    }
}

/// The interpreter that a `#!` line wants, if it is not there.
fn missing_interpreter(line: &str) -> Option<&str> {
    let (program, option) = words_of(line);
    let env = program.ends_with("/env");
    let wanted = if env {
        option
            .and_then(|words| words.split_whitespace().find(|word| !word.starts_with('-')))
            .unwrap_or(program)
    } else {
        program
    };
    let found = if wanted.contains('/') {
        Path::new(wanted).exists()
    } else {
        let dirs = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&dirs).any(|dir| dir.join(wanted).exists())
    };
    (!found).then_some(wanted)
}

/// Whether a command is one of tc's, by its name.
fn calls_tc(command: &Command) -> bool {
    let name = command.words.iter().find(|word| !Command::leads(word));
    name.is_some_and(|name| name.text.rsplit('/').next() == Some("tc"))
}

fn devices(commands: &[Command], args: &[String]) -> Vec<String> {
    const BEFORE: [&str; 6] = ["dev", "--out-interface", "--in-interface", "oif", "iif", "master"];
    // Other tools have other meanings for these.
    const BEFORE_IN_RULES: [&str; 2] = ["-o", "-i"];
    const RULE_WORDS: [&str; 6] = ["-A", "-I", "-D", "-C", "-j", "-g"];
    let variables = Variables::of(commands, args);
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        // `vtun+` means any vtun: one of them will do.
        let name = name.strip_suffix('+').map_or(name.to_owned(), |stem| format!("{stem}0"));
        // `eth0:1` is an address of eth0.
        let name = name.split(':').next().unwrap_or_default().to_owned();
        if is_device(&name) && found.len() < MAX_DEVICES && !found.contains(&name) {
            found.push(name);
        }
    };
    // The variable of a loop may be called `dev`.
    let is_loop = |command: &&Command| command.words.first().is_some_and(|word| word.text == "for");
    for command in commands.iter().filter(|command| !is_loop(command)) {
        let words = &command.words;
        let rule = words.iter().any(|word| RULE_WORDS.contains(&word.text.as_str()));
        for pair in words.windows(2) {
            let first = pair[0].text.as_str();
            // `flow hash keys iif` names none.
            let hashes = words.iter().any(|word| word.text == "keys");
            let named = BEFORE.contains(&first) && !(hashes && matches!(first, "iif" | "oif"))
                || rule && BEFORE_IN_RULES.contains(&first);
            // `ip link set eth0 …`, with or without `dev` between.
            let set = first == "set" && words.iter().any(|word| word.text == "link");
            if named || set || first.ends_with("ifconfig") {
                for name in variables.resolve(&pair[1].raw, command) {
                    add(&name);
                }
            }
        }
        for word in words {
            if let Some(rest) = word.raw.split("/sys/class/net/").nth(1) {
                let name = rest.split('/').next().unwrap_or("");
                for name in variables.resolve(name, command) {
                    add(&name);
                }
            }
        }
    }
    for (name, values) in variables.named() {
        if names_a_device(name) {
            // A command in a variable names others.
            let is_command =
                |value: &str| TOOLS.iter().any(|tool| value.split_whitespace().next() == Some(*tool));
            let values = values.iter().filter(|value| !is_command(value));
            values.flat_map(|value| value.split_whitespace()).for_each(&mut add);
        }
    }
    // What the script makes itself is not there before.
    let made = made(commands, &variables);
    found.retain(|name| !made.contains(name));
    // Beside ifbs a machine has a device that leads out.
    if !found.is_empty() && found.iter().all(|name| name.starts_with("ifb")) {
        found.push("eth0".to_owned());
    }
    found
}

/// The devices that the commands make: `ip link add NAME type …`, `ip tunnel add NAME …`, `modprobe ifb`.
fn made(commands: &[Command], variables: &Variables) -> Vec<String> {
    let (mut made, mut cables) = (Vec::new(), 0);
    for command in commands {
        let texts: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        if texts.contains(&"modprobe") && texts.contains(&"ifb") {
            let count =
                texts.iter().find_map(|text| text.strip_prefix("numifbs=")?.parse().ok()).unwrap_or(2);
            made.extend((0..count.min(MAX_DEVICES)).map(|number| format!("ifb{number}")));
        }
        let object = texts.iter().position(|text| ["link", "l", "tunnel", "tun", "tuntap"].contains(text));
        let Some(at) = object.filter(|at| matches!(texts.get(at + 1), Some(&("add" | "a")))) else {
            continue;
        };
        let words = &command.words[at + 2..];
        // The link itself, and behind its type the other end of a cable: `link add A type veth peer name B`.
        let typed = words.iter().position(|word| word.text == "type").unwrap_or(words.len());
        let (own, of_type) = words.split_at(typed);
        // Without a name the kernel gives one: the next that is free.
        if own.is_empty() && of_type.get(1).is_some_and(|word| word.text == "veth") {
            cables += 1;
            made.extend((2 * cables - 2..2 * cables).map(|number| format!("veth{number}")));
        }
        let mut names: Vec<&words::Word> = of_type
            .windows(3)
            .filter(|three| three[0].text == "peer")
            .map(|three| if three[1].text == "name" { &three[2] } else { &three[1] })
            .collect();
        if let [.., peer, name] = of_type
            && peer.text == "peer"
        {
            names.push(name);
        }
        // `link add link eth0 name eth0.5 type vlan`: the name has a word before it, or comes first or behind
        // the link beneath.
        let named = own.iter().position(|word| word.text == "name" || word.text == "dev");
        let beneath = own.first().is_some_and(|word| word.text == "link");
        names.extend(named.map_or(own.get(if beneath { 2 } else { 0 }), |at| own.get(at + 1)));
        made.extend(names.iter().flat_map(|word| variables.resolve(&word.raw, command)));
    }
    made
}

/// True for the names that scripts give to a variable that holds a device.
fn names_a_device(variable: &str) -> bool {
    let upper = variable.to_ascii_uppercase();
    let exact = ["IF", "DEV", "NIC", "WAN", "LAN", "EXT", "INT", "UPLINK", "DNLINK"];
    exact.contains(&upper.as_str())
        || ["IFACE", "INTERFACE", "DEVICE"].iter().any(|part| upper.contains(part))
        || ["_IF", "_DEV", "_NIC"].iter().any(|end| upper.ends_with(end))
        || ["IF_", "DEV_"].iter().any(|begin| upper.starts_with(begin))
}

/// Words that stand where a device could, and are none; the last are what scripts are asked to do, as their
/// first argument.
const NO_DEVICES: [&str; 23] = [
    "lo", "all", "default", "dev", "null", "root", "up", "down", "in", "true", "false", "yes", "no", "none",
    "auto", "start", "stop", "restart", "reload", "status", "show", "apply", "clear",
];

fn is_device(name: &str) -> bool {
    let mut letters = name.chars();
    (2..=15).contains(&name.len())
        && letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "._-@".contains(letter))
        && !NO_DEVICES.contains(&name)
}

/// The directory with its symbolic links resolved, as far as it exists.
fn real(dir: &Path) -> PathBuf {
    for ancestor in dir.ancestors() {
        if let Ok(found) = fs::canonicalize(ancestor) {
            return match dir.strip_prefix(ancestor) {
                Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
                _ => found,
            };
        }
    }
    dir.to_owned()
}

/// The directories where tools are usually found, and those of the search path that hold one.
pub(super) fn usual_tool_dirs() -> Vec<PathBuf> {
    let mut dirs: BTreeSet<PathBuf> = TOOL_DIRS.iter().map(|dir| real(Path::new(dir))).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let holds_tools = |dir: &PathBuf| TOOLS.iter().any(|tool| dir.join(tool).exists());
    dirs.extend(
        std::env::split_paths(&path)
            .filter(|dir| dir.is_absolute() && holds_tools(dir))
            .map(|dir| real(&dir)),
    );
    may_contain_tools(dirs)
}

/// All but those that are new inside a sandbox.
fn may_contain_tools(dirs: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    dirs.into_iter().filter(|dir| dir != Path::new("/") && !is_new_inside(dir)).collect()
}

/// Is it where the sandbox has files of its own? What the host has there belongs to no script.
pub(super) fn is_new_inside(path: &Path) -> bool {
    ["/proc", "/sys", "/dev", "/run"].iter().any(|own| path.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sourced_file_is_named_as_its_script_is() {
        let named = |file: &str, script: &str| -> PathBuf {
            as_given(Path::new(file), Path::new("/home/a"), Path::new(script))
        };
        assert_eq!(named("/home/a/./lib.sh", "x.sh"), Path::new("lib.sh"));
        assert_eq!(named("/home/a/lib/b.sh", "../a/x.sh"), Path::new("../a/lib/b.sh"));
        assert_eq!(named("/etc/./b.conf", "x.sh"), Path::new("/etc/b.conf"));
    }

    #[test]
    fn names_of_files_are_found_in_words_redirections_and_behind_variables() {
        let names = |text: &str| file_names(text).map(str::to_owned).collect::<Vec<_>>().join(" ");
        assert_eq!(names("while read a; do tc $a; done < hosts.txt"), "while read a do tc done hosts.txt");
        assert_eq!(names("cat \"$DIR/lists/hosts\" /etc/x.conf"), "cat lists/hosts /etc/x.conf etc/x.conf");
        assert_eq!(names("cat ${DIR}/hosts # not notes.txt"), "cat hosts");
        assert_eq!(names("# tidegate graph x.sh -o x.svg\na#b"), "a b");
    }

    #[test]
    fn devices_are_found_wherever_scripts_name_them() {
        let cases = [
            ("tc qdisc add dev eth1 root pfifo", "eth1"),
            ("IF=eth0\ntc qdisc add dev $IF root pfifo 2>/dev/null", "eth0"),
            ("iptables -A OUTPUT -o ppp0 -j ACCEPT; iptables -i vtun+ -j X", "ppp0 vtun0"),
            ("WAN_IF=\"wan0\"; [ -d /sys/class/net/br-lan ]", "br-lan wan0"),
            ("D=${1:-eth3}; tc qdisc show dev $D", "eth7"),
            ("for d in eth0 eth1 lo; do tc qdisc del dev $d root; done", "eth0 eth1"),
            ("ifconfig eth0 txqueuelen 1; echo dev null", "eth0"),
            ("ip link set eth0 up; ip link set dev eth1 up; set -e; set up", "eth0 eth1"),
            ("tc qdisc show dev $(ip route | head -1)", ""),
            ("ip -o link show; grep -i error log", ""),
            (
                "I=ifb4eth0; ip link add name $I type ifb; tc qdisc add dev $I root pfifo; tc qdisc show \
                dev eth0",
                "eth0",
            ),
            ("ip link add dev up0 type ifb; tc qdisc add dev up0 root pfifo", ""),
            ("ip link add type veth; tc qdisc add dev veth1 root pfifo; tc qdisc show dev veth2", "veth2"),
            ("ip link set eth1 master br-lan; ip link set eth1 nomaster", "eth1 br-lan"),
            // The variable of a loop, what a program is asked for, and a word that decides are none.
            ("for dev in $(ls /sys/class/net | grep -v lo); do tc qdisc add dev $dev root pfifo; done", ""),
            ("for d in $(cut -d: -f1 x | grep eth); do tc qdisc add dev $d root pfifo; done", ""),
            ("USE_IFACE=true; IFACE=$(get_iface); DEV_CMD='tc qdisc add'", ""),
            // A function's arguments are its callers', through others, too.
            ("f() { tc qdisc add dev $1 root pfifo; }\nf $(ip route | awk '{print $5}')", ""),
            ("f() { local i=$2; tc qdisc add dev $i root pfifo; }\ng() { f x \"$1\"; }\ng eth4", "eth4"),
            ("f() { tc qdisc add dev $1 root pfifo; }\nf \"$@\"", "eth7"),
            ("ip link add a0 type veth peer name b0; ip link set b0 up; tc qdisc show dev a0", ""),
            ("ip link add a0 type veth peer b0; ip link set b0 up; tc qdisc show dev a0", ""),
            ("ip link add link eth0 v0 type vlan id 4; tc qdisc show dev v0; tc qdisc show dev eth0", "eth0"),
            (
                "modprobe ifb numifbs=1; tc qdisc add dev ifb0 root pfifo; ip link set dev ifb1 up",
                "ifb1 eth0",
            ),
        ];
        for (script, expected) in cases {
            let found = devices(&words::commands(script), &["eth7".to_owned()]);
            assert_eq!(found.join(" "), expected, "{script}");
        }
        // What a script is asked to do is no device, wherever it is passed on to.
        let script = words::commands("f() { tc class show dev \"$1\"; }\nf \"$@\"; tc qdisc show dev eth0");
        assert_eq!(devices(&script, &["start".to_owned()]), ["eth0"]);
    }

    #[test]
    fn the_first_line_names_the_interpreter() {
        let of = |text: &str| {
            interpreter(Path::new("x.sh"), text)
                .map(|words| {
                    words.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join("|")
                })
                .map_err(|error| error.to_string())
        };
        assert_eq!(of("tc qdisc show").unwrap(), "sh");
        if Path::new("/bin/bash").exists() {
            assert_eq!(of("# for tc\n#!/bin/bash\n").unwrap(), "/bin/bash");
            assert_eq!(of("if [[ -n $1 ]]; then\n").unwrap(), "/bin/bash");
            assert_eq!(of("tc-clean() {\n").unwrap(), "/bin/bash");
            assert_eq!(of("tc qdisc del dev eth0 root &>/dev/null\n").unwrap(), "/bin/bash");
            assert_eq!(of("# all-of() &> it\nclean() { tc-x a-b; }\n").unwrap(), "sh");
        }
        assert_eq!(of("#!/bin/sh -e -u\n").unwrap(), "/bin/sh|-e -u");
        assert_eq!(of("#! /usr/bin/env sh\n").unwrap(), "/usr/bin/env|sh");
        if !Path::new("/bin/ash").exists() {
            let stands_in = of("#!/bin/ash -e\n").unwrap();
            assert!(["/bin/bash|-e", "sh|-e"].contains(&&*stands_in), "{stands_in}");
        }
        assert!(["/bin/bash", "sh"].contains(&&*of("#!/bin/busybox ash\n").unwrap()));
        let missing = of("#!/bin/sh /etc/rc.common\n").unwrap_err();
        assert!(missing.contains("write a call of `start` as its last line"), "{missing}");
        let missing = of("#!/no/such/shell\n").unwrap_err();
        assert!(missing.starts_with("x.sh:1: "), "{missing}");
    }
}
