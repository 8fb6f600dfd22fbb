//! Files that are lists: each line, or the file as a whole, as calls of the tools.

use super::traced::Traced;
use crate::format::{InputFormat, shown_name};
use crate::inside::refusals;
use crate::short::{self, tell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tidegate_capture::{Exit, Recorded, ScriptRun, SourceLine, SourceWord, Trouble, TroubleKind};
use tidegate_inspect::ClassNames;
use tidegate_policy::LinkDriver;
use tidegate_shims::{Answer, Call, run_in_namespace};
use tidegate_syntax::batch;
use tidegate_syntax::foreign::{ForeignCommand, ForeignPolicy};
use tidegate_syntax::short::{Compiled, CompiledCommand, Problem, Short, TreeReason};
use tidegate_syntax::{chaos_mesh, networkd, pod_bandwidth};
use tidegate_text::shell_word;

/// A call in a file.
pub(super) struct ListedCall {
    pub(super) call: Call,
    /// Which of the files it is in, where a list is in several.
    pub(super) file: usize,
    /// The line of the file, from 1; `None`: the file as a whole, and what was carried out knows its line.
    pub(super) line: Option<usize>,
    /// It fails where what it does has been done before.
    pub(super) may_fail: bool,
    /// The lines of the file that the lines of its standard input come from, where those are not the same.
    pub(super) inside: Vec<usize>,
    /// Where it fails, the calls behind it are not carried out, as in `tc -batch`.
    pub(super) ends_all: bool,
}

impl ListedCall {
    pub(super) fn new(call: Call, line: Option<usize>) -> ListedCall {
        ListedCall { call, file: 0, line, may_fail: false, inside: Vec::new(), ends_all: false }
    }
}

/// The devices that a file names.
pub(super) fn devices(format: InputFormat, name: &str, text: &str) -> Vec<String> {
    if short::is_short(format) {
        let policies = short::policies(format, name, text).unwrap_or_default();
        let devices =
            |short: Short| std::iter::once(short.device.value).chain(short.lan.map(|lan| lan.value));
        return policies.into_iter().flat_map(|(short, _)| devices(short)).collect();
    }
    if let Some(read) = reader(format) {
        return read(text).map(|policy| policy.devices).unwrap_or_default();
    }
    let markers: &[&str] = match format {
        InputFormat::Batch => &["dev"],
        InputFormat::IptablesSave(_) => &["-o", "-i", "--out-interface", "--in-interface"],
        InputFormat::Nft => &["oifname", "iifname", "oif", "iif"],
        // A script runs in the sandbox; a listing is read before; a short policy has keys for them.
        InputFormat::Script | InputFormat::Listing | InputFormat::TcJson => return Vec::new(),
        InputFormat::Short | InputFormat::Uci | InputFormat::SqmConf | InputFormat::FireQos => {
            return Vec::new();
        }
        InputFormat::Networkd | InputFormat::ChaosMesh | InputFormat::PodBandwidth => return Vec::new(),
    };
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| markers.contains(&pair[0])) {
            let name = pair[1].trim_matches(['"', '{', '}', ',']);
            let fits = !name.is_empty() && name.len() <= 15 && !name.contains(['+', '*', '$', '/', '!', '=']);
            if fits && found.len() < 64 && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// The devices of a short policy that lead to the modem and to the LAN; where a file becomes several
/// policies, none.
pub(super) fn ends(format: InputFormat, name: &str, text: &str) -> Option<(String, Option<String>)> {
    let policies = short::policies(format, name, text).ok().filter(|_| short::is_short(format))?;
    let [(short, _)] = <[_; 1]>::try_from(policies).ok()?;
    Some((short.device.value, short.lan.map(|lan| lan.value)))
}

/// What the classes of a short policy are called, and whether it leaves its queues open.
pub(super) fn class_names(
    format: InputFormat,
    name: &str,
    text: &str,
    without_cake: bool,
) -> (ClassNames, bool) {
    if !short::is_short(format) {
        return (ClassNames::new(), false);
    }
    let policies = policies(format, name, text, without_cake).unwrap_or_default();
    let is_open = |short: &Short| matches!(short.reason, TreeReason::NothingAsked | TreeReason::NoCake);
    let leaves_open = policies.iter().any(|(short, _)| is_open(short));
    let names = policies.into_iter().flat_map(|(short, _)| short.class_names());
    (names.map(|(dev, class, name)| ((dev, class), name)).collect(), leaves_open)
}

/// What is left out of another program's settings, or done otherwise, as they are read as a short policy: a
/// sentence each, first that they are.
pub(super) fn left_out(format: InputFormat, path: &Path, text: &str, without_cake: bool) -> Vec<String> {
    let name = path.to_string_lossy();
    if let Some(read) = reader(format) {
        let notes = read(text).map(|policy| policy.notes).unwrap_or_default();
        return notes.iter().map(|note| noted(&name, note)).collect();
    }
    if !short::is_short(format) || format == InputFormat::Short {
        return Vec::new();
    }
    let first = format!(
        "{name}: {} is read as a short policy, and what follows is about that, not about what the other program \
        would do (`tidegate policy show --print toml` shows it)",
        format.name()
    );
    let policies = policies(format, &name, text, without_cake).unwrap_or_default();
    let notes = policies.iter().flat_map(|(_, compiled)| &compiled.notes);
    let rest = notes.map(|note| noted(&name, note));
    std::iter::once(tidegate_text::line(&first).to_string()).chain(rest).collect()
}

/// What is to be known of a line, in a sentence.
fn noted(name: &str, note: &Problem) -> String {
    let sentence =
        format!("{name}:{}: {} ({})", note.span.line, note.what, note.remedy.trim_end_matches('.'));
    tidegate_text::line(&sentence).to_string()
}

/// The short policies of a file, for the kernel that is meant.
fn policies(
    format: InputFormat,
    name: &str,
    text: &str,
    without_cake: bool,
) -> Result<Vec<(Short, Compiled)>, Vec<Problem>> {
    let policies = short::policies(format, name, text)?;
    Ok(if without_cake { short::without_cake(policies) } else { policies })
}

/// The calls in a file.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn calls(
    format: InputFormat,
    path: &Path,
    text: &str,
    without_cake: bool,
) -> Result<Vec<ListedCall>, String> {
    if short::is_short(format) {
        return short_lines(format, path, text, without_cake);
    }
    if let Some(read) = reader(format) {
        return foreign_commands(format, path, text, read);
    }
    let whole = |tool: &str, args: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let stdin = Some(text.as_bytes().to_vec());
        ListedCall::new(Call { tool: tool.into(), args, stdin, cwd: PathBuf::from("/"), netns: None }, None)
    };
    match format {
        InputFormat::Batch => batch_lines(text),
        InputFormat::IptablesSave(false) => Ok(vec![whole("iptables-restore", &[])]),
        InputFormat::IptablesSave(true) => Ok(vec![whole("ip6tables-restore", &[])]),
        InputFormat::Nft => Ok(vec![whole("nft", &["-f", "-"])]),
        // A script is run, a listing has been read, others' settings and a short policy have been compiled.
        InputFormat::Script
        | InputFormat::Listing
        | InputFormat::TcJson
        | InputFormat::Short
        | InputFormat::Uci
        | InputFormat::SqmConf
        | InputFormat::FireQos
        | InputFormat::Networkd
        | InputFormat::ChaosMesh
        | InputFormat::PodBandwidth => {
            Err(format!("is {}, which is not a list of calls ({})", format.name(), path.display()))
        }
    }
}

/// How a list of problems with a file begins. What another program understands is no mistake in its
/// configuration.
fn what_is_wrong(format: InputFormat) -> String {
    match format {
        InputFormat::FireQos => format!(
            "is {}, and not all of it can be taken in. FireQOS itself can be run instead: `tidegate run \
            /usr/sbin/fireqos start FILE`, and so under `try`, and under `check` and `graph` with its \
            arguments behind `--`",
            format.name()
        ),
        InputFormat::Short => "has mistakes".to_owned(),
        _ if reader(format).is_some() => format!("is {}, and has mistakes", format.name()),
        _ => format!("is {}, and not all of it can be taken in", format.name()),
    }
}

/// A reader of another program's settings.
type Reader = fn(&str) -> Result<ForeignPolicy, Vec<Problem>>;

/// The reader of a format whose files come to commands, and are not read as short policies.
pub(super) fn reader(format: InputFormat) -> Option<Reader> {
    match format {
        InputFormat::Networkd => Some(networkd::read),
        InputFormat::ChaosMesh => Some(chaos_mesh::read),
        InputFormat::PodBandwidth => Some(pod_bandwidth::read),
        _ => None,
    }
}

/// What another program's settings come to.
fn foreign_commands(
    format: InputFormat,
    path: &Path,
    text: &str,
    read: Reader,
) -> Result<Vec<ListedCall>, String> {
    let policy = read(text)
        .map_err(|problems| format!("{}\n{}", what_is_wrong(format), tell(path, text, &problems)))?;
    let call_of = |command: ForeignCommand| {
        let (tool, args) = (command.tool.into(), command.words);
        let call = Call { tool, args, stdin: None, cwd: PathBuf::from("/"), netns: None };
        ListedCall::new(call, Some(command.line))
    };
    Ok(policy.commands.into_iter().map(call_of).collect())
}

/// What a short policy comes to.
fn short_lines(
    format: InputFormat,
    path: &Path,
    text: &str,
    without_cake: bool,
) -> Result<Vec<ListedCall>, String> {
    let policies = policies(format, &path.to_string_lossy(), text, without_cake)
        .map_err(|problems| format!("{}\n{}", what_is_wrong(format), tell(path, text, &problems)))?;
    let call_of = |line: CompiledCommand| ListedCall {
        call: Call {
            tool: line.tool.into(),
            args: line.words,
            stdin: line.stdin.map(String::into_bytes),
            cwd: PathBuf::from("/"),
            netns: None,
        },
        file: 0,
        line: Some(line.from.line),
        may_fail: line.may_fail,
        inside: line.inside.iter().map(|span| span.line).collect(),
        ends_all: false,
    };
    Ok(policies.into_iter().flat_map(|(_, compiled)| compiled.commands).map(call_of).collect())
}

/// Commands word by word: a text with a line for each, and the calls.
pub(super) fn of_commands(commands: &[Vec<String>]) -> (String, Vec<ListedCall>) {
    let call = |words: &[String]| {
        let (mut words, mut netns) = (words, None);
        while let [tool, args @ ..] = words
            && let Some((name, inside)) = run_in_namespace(tool, args)
        {
            (words, netns) = (inside, Some(name.to_owned()));
        }
        let [tool, args @ ..] = words else { return None };
        let (tool, args) = (tool.clone(), args.to_vec());
        Some(Call { tool, args, stdin: None, cwd: PathBuf::from("/"), netns })
    };
    let calls = commands.iter().enumerate();
    let list = calls.filter_map(|(at, words)| Some(ListedCall::new(call(words)?, Some(at + 1)))).collect();
    // A line break inside a word would shift the lines after it.
    let line = |words: &Vec<String>| {
        words.iter().map(|word| shell_word(word).replace('\n', " ")).collect::<Vec<_>>().join(" ") + "\n"
    };
    (commands.iter().map(line).collect(), list)
}

/// The ifb devices that commands name and do not make: a batch may leave that to others.
pub(super) fn taken_for_granted(commands: &[Vec<String>]) -> BTreeSet<String> {
    let makes = |words: &[String]| {
        words.first().is_some_and(|tool| tool == "ip") && words.iter().any(|word| word == "add")
    };
    let made: BTreeSet<&String> = commands.iter().filter(|words| makes(words)).flatten().collect();
    let named = commands.iter().flat_map(|words| words.windows(2)).filter(|pair| pair[0] == "dev");
    named
        .map(|pair| &pair[1])
        .filter(|name| LinkDriver::of_name(name) == LinkDriver::Ifb && !made.contains(name))
        .cloned()
        .collect()
}

/// A batch, line by line.
fn batch_lines(text: &str) -> Result<Vec<ListedCall>, String> {
    let mut calls = Vec::new();
    for line in batch::lines(text) {
        let line = line.map_err(|refusal| refusal.remedy.unwrap_or(refusal.stderr))?;
        let call =
            Call { tool: "tc".into(), args: line.args, stdin: None, cwd: PathBuf::from("/"), netns: None };
        calls.push(ListedCall { ends_all: true, ..ListedCall::new(call, Some(line.number)) });
    }
    Ok(calls)
}

/// Carries the calls out; `files` are those that they are in, each with its text.
pub(super) fn carry_out(
    (listed, batches_go_on): (&[ListedCall], bool),
    files: &[(&Path, &str)],
    devices: &[String],
    traced: &mut Traced<'_>,
) -> ScriptRun {
    traced.world(devices);
    let texts: Vec<(&Path, Vec<&str>)> =
        files.iter().map(|(path, text)| (*path, text.lines().collect())).collect();
    let mut calls = Vec::with_capacity(listed.len());
    let (mut troubles, mut notes) = (Vec::new(), Vec::new());
    for (number, ListedCall { call, file, line, may_fail, inside, ends_all }) in listed.iter().enumerate() {
        let Some((path, lines)) = texts.get(*file) else { continue };
        let mut reply = traced.answer(call);
        traced.relabel(inside);
        let at_fault = reply.blamed(&call.args);
        let ends_all = *ends_all && reply.code != 0 && !reply.is_ours();
        if ends_all {
            let failed = batch::failed(&path.to_string_lossy(), line.unwrap_or(1));
            reply.stderr.extend(failed.into_bytes());
        }
        let stderr = String::from_utf8_lossy(&reply.stderr).into_owned();
        let at = line.or_else(|| line_named(&stderr)).unwrap_or(1);
        let source = SourceLine {
            file: path.to_path_buf(),
            line: at,
            text: lines.get(at - 1).map(|line| (*line).to_owned()).unwrap_or_default(),
            columns: None,
            frames: Vec::new(),
            called_from: None,
        };
        if reply.code != 0 && !may_fail {
            troubles.push(trouble(&call.tool, &stderr, source.clone()));
        }
        let words: Vec<Option<SourceWord>> = Vec::new();
        calls.push(Recorded {
            call: Call { stdin: None, ..call.clone() },
            code: reply.code,
            stderr,
            silenced: *may_fail,
            source: Some(source),
            words,
            at_fault,
            input: None,
            answered: true,
        });
        let left = listed.len() - number - 1;
        if ends_all && left > 0 && !batches_go_on {
            let commands = if left == 1 {
                "command behind it was".to_owned()
            } else {
                format!("{left} commands behind it were")
            };
            notes.push(format!(
                "{}:{at}: tc stops at the first error of a batch, unless -force is given: the {commands} not \
                 carried out",
                shown_name(path)
            ));
            break;
        }
    }
    let code = u8::from(!troubles.is_empty());
    ScriptRun {
        exit: Exit::Code(code),
        calls,
        stdout: Vec::new(),
        stderr: Vec::new(),
        devices: devices.to_vec(),
        notes,
        troubles,
        unfinished: None,
        missing_arguments: None,
        missing_files: None,
        unanswered: None,
        stubbed: Vec::new(),
        not_run: None,
        namespaces: None,
        stand_in: None,
        remarks: Vec::new(),
        arguments: 0,
        question: None,
        cut_short: false,
    }
}

fn trouble(tool: &str, stderr: &str, place: SourceLine) -> Trouble {
    let prefix = format!("{tool}: ");
    // With -force a batch goes on: what it is told of is the first.
    let first = refusals(stderr).into_iter().next().unwrap_or_default();
    let mut lines = tidegate_syntax::tc::refusal_lines(&first);
    let reason = lines.next().unwrap_or("refused without a word");
    let remedy = lines.rev().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned);
    Trouble {
        place: Some(place),
        who: tool.to_owned(),
        reason: reason.strip_prefix(&prefix).unwrap_or(reason).to_owned(),
        remedy,
        kind: TroubleKind::Failed,
    }
}

/// The line that a complaint names: `line 3 failed`, `Error occurred at line: 3`, `file:3:5-9`.
fn line_named(complaint: &str) -> Option<usize> {
    let number = |text: &str| {
        let digits: String =
            text.trim_start_matches([':', ' ']).chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    complaint
        .match_indices("line")
        .find_map(|(at, word)| number(&complaint[at + word.len()..]))
        .or_else(|| complaint.split_once(':').and_then(|(_, rest)| number(rest)))
}

#[cfg(test)]
mod tests {
    use crate::{ReadOptions, read_text};

    /// As `tc -batch`, which ends at the first refused line; findings want what is behind it, too. What only
    /// tidegate cannot carry out ends nothing.
    #[test]
    fn a_batch_ends_where_tc_ends() {
        let batch = |second: &str| {
            format!(
                "qdisc add dev eth0 root handle 1: htb default 20\n{second}\n\
                 class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n\
                 class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n"
            )
        };
        let refused = batch("class add dev eth0 parent 1: classid 1:1 htb rate 10mbitt");
        let carried = |text: &str, batches_go_on| {
            let how = ReadOptions { batches_go_on, ..ReadOptions::default() };
            let loaded = read_text("a.batch", text, &how).expect("a batch");
            let notes = loaded.outcomes[0].notes.join("\n");
            (loaded.machine.log.len(), loaded.troubles().count(), notes)
        };
        let note = "a.batch:2: tc stops at the first error of a batch, unless -force is given: the 2 commands \
                    behind it were not carried out";
        assert_eq!(carried(&refused, false), (1, 1, note.to_owned()));
        assert_eq!(carried(&refused, true), (3, 1, String::new()));
        let unbuilt = batch("filter add dev eth0 parent 1: bpf obj x.o flowid 1:20");
        assert_eq!(carried(&unbuilt, false), (3, 1, String::new()));
    }

    /// Every command that others' settings come to is carried out, and what their reader should know is told.
    #[test]
    fn manifests_are_carried_out() {
        let experiment = "apiVersion: chaos-mesh.org/v1alpha1\nkind: NetworkChaos\nspec:\n  action: netem\n  mode: \
                          all\n  selector: {}\n  delay: {latency: 90ms, jitter: 5ms, correlation: '25'}\n  \
                          loss: {loss: '0.5'}\n  externalTargets: ['203.0.113.9:5432', example.org]\n";
        let limits = "kind: Pod\nmetadata:\n  annotations:\n    kubernetes.io/ingress-bandwidth: 100M\n    \
                      kubernetes.io/egress-bandwidth: 1M\n";
        let rows = [
            ("slow.yaml", experiment, ["prio", "sfq", "sfq", "sfq", "netem"].as_slice(), 11, 2),
            ("pod.yaml", limits, &["tbf", "ingress", "tbf"], 6, 2),
        ];
        for (name, text, kinds, commands, notes) in rows {
            let loaded = read_text(name, text, &ReadOptions::default()).expect(name);
            let troubles: Vec<String> = loaded.troubles().map(ToString::to_string).collect();
            assert_eq!((troubles, loaded.commands()), (Vec::new(), commands), "{name}");
            let installed = loaded.reading().qdiscs;
            let named = installed.iter().filter(|qdisc| !qdisc.handle.is_none());
            let mut found: Vec<&str> = named.map(|qdisc| qdisc.kind.name()).collect();
            let mut expected = kinds.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name}");
            assert_eq!(
                loaded.left_out().count(),
                notes,
                "{name}: {:?}",
                loaded.left_out().collect::<Vec<_>>()
            );
        }
    }
}
