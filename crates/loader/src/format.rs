//! What a file is, from its first lines.

use super::{foreign, nothing::NOTHING_FOUND, tcjson};
use std::fmt;
use std::path::Path;
use tidegate_capture::TOOLS;
use tidegate_syntax::{chaos_mesh, networkd, pod_bandwidth, tc};

/// Bytes of the longest policy.
pub const MAX_POLICY: u64 = 16 << 20;

/// What a policy may be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputFormat {
    /// A shell script.
    Script,
    /// Commands for `tc -batch`.
    Batch,
    /// What `iptables-save` writes; `true`: with IPv6 addresses, so ip6tables'.
    IptablesSave(bool),
    /// Rules for `nft -f`.
    Nft,
    /// A short policy.
    Short,
    /// OpenWrt's `/etc/config/sqm`.
    Uci,
    /// SQM's `IF.iface.conf`.
    SqmConf,
    /// FireQOS.
    FireQos,
    /// A `.network` file of systemd-networkd.
    Networkd,
    /// Experiments of Chaos Mesh (`kind: NetworkChaos`).
    ChaosMesh,
    /// Pods with `kubernetes.io/ingress-bandwidth` or `egress-bandwidth`.
    PodBandwidth,
    /// What `tc … show` prints.
    Listing,
    /// What `tc -j … show` writes.
    TcJson,
}

impl InputFormat {
    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::Script => "a shell script",
            InputFormat::Batch => "a batch file for tc",
            InputFormat::IptablesSave(_) => "rules from iptables-save",
            InputFormat::Nft => "rules for nft",
            InputFormat::Short => "a short policy",
            InputFormat::Uci => "OpenWrt's settings for SQM",
            InputFormat::SqmConf => "SQM's settings for an interface",
            InputFormat::FireQos => "a configuration of FireQOS",
            InputFormat::Networkd => "a .network file of systemd-networkd",
            InputFormat::ChaosMesh => "an experiment of Chaos Mesh",
            InputFormat::PodBandwidth => "a Kubernetes manifest with bandwidth limits",
            InputFormat::Listing => "a listing of tc",
            InputFormat::TcJson => "a listing of tc -j",
        }
    }
}

/// Why a file is no policy: what it looks like instead, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// It is empty, but for comments.
    Empty,
    /// It is empty, but for commands behind `#`: comments, or the prompt of root.
    BehindHash,
    /// Its first bytes or its name are those of a file of another kind, or it is no text at all: what it is,
    /// and what to do.
    NotText(&'static str),
    /// It has a format that is recognised and not read: which, and what to do.
    Foreign(&'static str),
    /// JSON that no listing of tc is.
    ForeignJson,
    /// It begins as a listing of tc -j and is no JSON: where, and why.
    BrokenTcJson(String),
    /// Text of another kind: what it looks like, and what to do.
    LooksLike(&'static str),
    /// Nothing that is known: how it begins, at most [`FormatError::SHOWN`] characters.
    Unknown(String),
}

impl FormatError {
    /// The most characters of an unknown file that an error shows.
    pub const SHOWN: usize = 60;
}

/// What a policy may be written in, for those whose file is none of it.
const KNOWN: &str = "Known are shell scripts, tc batch files, iptables-save, nft rules, short policies \
(tidegate policy help), /etc/config/sqm, SQM's iface.conf, FireQOS, .network files of systemd-networkd, NetworkChaos \
of Chaos Mesh, Kubernetes manifests with bandwidth limits, listings of tc (with -j or without)";

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::Empty => {
                write!(
                    f,
                    "{NOTHING_FOUND}: the file is empty (comments aside); name the file that holds the policy"
                )
            }
            FormatError::BehindHash => write!(
                f,
                "{NOTHING_FOUND}: all commands stand behind `#`, as comments or behind root's prompt (`# tc …`); save \
                 them without it"
            ),
            FormatError::NotText(what) | FormatError::Foreign(what) => f.write_str(what),
            FormatError::ForeignJson => f.write_str(
                "is JSON, but not what `tc -j qdisc show`, `tc -j class show` or `tc -j filter show` writes",
            ),
            FormatError::BrokenTcJson(why) => write!(
                f,
                "begins as a listing of tc -j and is no JSON: {why}; correct that place, or save what tc prints \
                 without -j instead"
            ),
            FormatError::LooksLike(what) => write!(f, "{what}\n{KNOWN}"),
            FormatError::Unknown(begins) => {
                write!(f, "is nothing that tidegate knows; it begins: {begins}\n{KNOWN}")
            }
        }
    }
}

impl std::error::Error for FormatError {}

/// What editors of Windows put before UTF-8.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The objects of tc, as a line of a batch begins.
const OBJECTS: [&str; 5] = ["qdisc", "class", "filter", "action", "chain"];
/// The verbs behind them.
const VERBS: [&str; 9] = ["add", "del", "delete", "change", "chg", "replace", "link", "show", "list"];
/// Does a command of tc stand behind `#` in a line?
fn is_behind_hash(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix('#') else { return false };
    let words: Vec<&str> = rest.split_whitespace().take(3).collect();
    matches!(words[..], ["tc", object, verb] if OBJECTS.contains(&object) && VERBS.contains(&verb))
}

/// Words of the shell that begin a line, and nothing else we know.
const SHELL: [&str; 9] = [".", "source", "set", "for", "while", "case", "exec", "echo", "trap"];
/// How rules for nft begin.
const NFT: [&str; 8] = ["table", "flush", "define", "include", "add", "create", "delete", "chain"];

/// What this file is.
///
/// # Errors
/// What it looks like instead, and what to do.
pub fn sniff(name: &str, bytes: &[u8]) -> Result<InputFormat, FormatError> {
    if let Some(other) = not_a_text(bytes) {
        return Err(FormatError::NotText(other));
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    if let Some(shebang) = text.lines().next().filter(|line| line.starts_with("#!")) {
        return Ok(if shebang.contains("nft") { InputFormat::Nft } else { InputFormat::Script });
    }
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let Some(first) = lines.first() else {
        return Err(if text.lines().any(is_behind_hash) {
            FormatError::BehindHash
        } else {
            FormatError::Empty
        });
    };
    let has_extension = |extension: &str| name.ends_with(extension);
    // A shebang comes before the name: an article's commands are no script until they stand in a file alone.
    if [".md", ".markdown"].into_iter().any(has_extension) {
        return Err(FormatError::NotText("is Markdown; save the commands in it as a file of their own"));
    }
    if tcjson::begins_as_json(text) {
        let documents = tcjson::without_headings(text);
        match why_no_json(&documents) {
            None => return json(&documents),
            Some(why) if begins_as_objects(&documents) && names_kinds(text) => {
                return Err(FormatError::BrokenTcJson(why));
            }
            Some(_) => {}
        }
    }
    if is_deep(text) {
        return Err(FormatError::NotText(
            "nests its brackets so deep that no program's listing or policy would",
        ));
    }
    if first.starts_with('*') && lines.contains(&"COMMIT") {
        return Ok(InputFormat::IptablesSave(
            lines.iter().any(|line| line.contains("::") || line.contains("ipv6-icmp")),
        ));
    }
    if has_extension(".toml") {
        return Ok(InputFormat::Short);
    }
    if lines.iter().any(|line| line.starts_with("config queue") || line.starts_with("config sqm")) {
        return Ok(InputFormat::Uci);
    }
    if tc::is_listing(text) {
        return Ok(InputFormat::Listing);
    }
    if lines.iter().any(|line| networkd::is_section(line)) {
        return Ok(InputFormat::Networkd);
    }
    if let Some(format) = yaml(first, &lines).filter(|_| !has_extension(".sh")) {
        return Ok(format);
    }
    if let Some(what) = foreign::recognised(name, &lines).filter(|_| !has_extension(".sh")) {
        return Err(FormatError::Foreign(what));
    }
    if has_prompt(first) {
        return Err(FormatError::NotText(
            "has a terminal's prompts before its commands (`$ tc …`); save the commands without them, or a listing \
             of tc without commands that change it",
        ));
    }
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let begins = words(first);
    if is_batch_line(&begins) {
        return Ok(InputFormat::Batch);
    }
    if lines.iter().any(|line| is_interface(&words(line))) {
        return Ok(InputFormat::FireQos);
    }
    if has_extension(".nft") || NFT.contains(&begins[0].as_str()) && is_nft(&begins) {
        return Ok(InputFormat::Nft);
    }
    let is_rate = |line: &&str| ["UPLINK", "DOWNLINK"].map(Some).contains(&setting(line));
    if lines.iter().all(|line| setting(line).is_some()) && lines.iter().any(is_rate) {
        return Ok(InputFormat::SqmConf);
    }
    let shell = lines.iter().any(|line| SHELL.contains(&line.split(' ').next().unwrap_or("")));
    if has_extension(".sh") || shell || lines.iter().any(|line| calls_tool(line)) {
        return Ok(InputFormat::Script);
    }
    if is_toml(first) && lines.iter().any(|line| line.contains(" = ") || line.starts_with('[')) {
        return Ok(InputFormat::Short);
    }
    Err(looks_like(first))
}

/// YAML that is read; a script with a manifest behind `<<EOF` does not begin as one.
fn yaml(first: &str, lines: &[&str]) -> Option<InputFormat> {
    let begins = first.split([':', ' ']).next().unwrap_or_default();
    let is_key = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric());
    // `{{`: a template of Helm's, which its reader refuses by name.
    let begins_so = ["---", "{{"].iter().any(|begin| first.starts_with(begin));
    if !(begins_so || first.contains(':') && (is_key(begins) || first.starts_with("- "))) {
        return None;
    }
    if chaos_mesh::is_experiment(lines) {
        return Some(InputFormat::ChaosMesh);
    }
    pod_bandwidth::is_manifest(lines).then_some(InputFormat::PodBandwidth)
}

/// A file that is no text at all.
fn not_a_text(bytes: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 10] = [
        (
            &[0xd4, 0xc3, 0xb2, 0xa1],
            "is a capture of packets (pcap); `tidegate explain POLICY --pcap FILE` takes it",
        ),
        (
            &[0xa1, 0xb2, 0xc3, 0xd4],
            "is a capture of packets (pcap); `tidegate explain POLICY --pcap FILE` takes it",
        ),
        (
            &[0x4d, 0x3c, 0xb2, 0xa1],
            "is a capture of packets (pcap); `tidegate explain POLICY --pcap FILE` takes it",
        ),
        (
            &[0xa1, 0xb2, 0x3c, 0x4d],
            "is a capture of packets (pcap); `tidegate explain POLICY --pcap FILE` takes it",
        ),
        (
            &[0x0a, 0x0d, 0x0d, 0x0a],
            "is a capture of packets (pcapng); `tidegate explain POLICY --pcap FILE` takes it",
        ),
        (&[0x1f, 0x8b], "is compressed with gzip; unpack it first (gunzip)"),
        (b"PK\x03\x04", "is a zip archive; unpack it first (unzip)"),
        (b"\x7fELF", "is a program; name the script that configures the link"),
        (&[0xff, 0xfe], "is text in UTF-16; convert it: iconv -f utf-16 -t utf-8"),
        (&[0xfe, 0xff], "is text in UTF-16; convert it: iconv -f utf-16 -t utf-8"),
    ];
    let known = magics.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, what)| *what);
    known.or_else(|| {
        let binary = is_binary(bytes);
        binary.then_some("is not text; name the script or file that holds the policy")
    })
}

/// Is it data for programs? A text has no zero bytes, and hardly any control characters.
fn is_binary(bytes: &[u8]) -> bool {
    let begins = &bytes[..bytes.len().min(4096)];
    let is_control = |byte: &&u8| **byte < b' ' && !b"\t\n\r\x0b\x0c\x08\x1b".contains(byte);
    begins.contains(&0) || begins.iter().filter(is_control).count() * 20 > begins.len()
}

/// Why a text is not JSON, one document or several, one after another. `None`: it is.
fn why_no_json(text: &str) -> Option<String> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    documents.find_map(|document| document.err().map(|error| error.to_string()))
}

/// Does a text begin as a list of objects, or an object?
fn begins_as_objects(text: &str) -> bool {
    let text = text.trim_start();
    let inside = text.strip_prefix('[').unwrap_or(text).trim_start();
    inside.strip_prefix('{').is_some_and(|object| object.trim_start().starts_with('"'))
}

/// Objects of tc's have a kind, or older classes a class.
fn names_kinds(text: &str) -> bool {
    ["\"kind\"", "\"class\""].iter().any(|key| text.contains(key))
}

/// The most brackets within one another at the beginning of a file that could be anything that is known.
const MAX_DEPTH: usize = 64;

/// Does a file begin with nothing but brackets, too many?
fn is_deep(text: &str) -> bool {
    let begins = |letter: &char| matches!(letter, '[' | '{') || letter.is_whitespace();
    text.chars().take_while(begins).filter(|letter| !letter.is_whitespace()).nth(MAX_DEPTH).is_some()
}

/// JSON: tc's listings are lists of objects with a kind, or with a class.
fn json(text: &str) -> Result<InputFormat, FormatError> {
    // Manifests are written in JSON, too, which is YAML.
    let lines: Vec<&str> = text.split(['\n', ',', '{', '}']).map(str::trim).collect();
    let is_chaos =
        |line: &&str| line.strip_prefix("\"kind\":").is_some_and(|kind| kind.trim() == "\"NetworkChaos\"");
    if lines.iter().any(is_chaos) {
        return Ok(InputFormat::ChaosMesh);
    }
    if pod_bandwidth::is_manifest(&lines) {
        return Ok(InputFormat::PodBandwidth);
    }
    if names_kinds(text) || text.trim() == "[]" {
        return Ok(InputFormat::TcJson);
    }
    Err(FormatError::ForeignJson)
}

/// A line of a batch: an object and a verb, either of them shortened perhaps.
fn is_batch_line(words: &[String]) -> bool {
    let object =
        words.first().is_some_and(|word| OBJECTS.iter().any(|object| object.starts_with(word.as_str())));
    object && words.get(1).is_some_and(|word| VERBS.iter().any(|verb| verb.starts_with(word.as_str())))
}

/// `interface eth0 world input rate 10Mbit`, as FireQOS has it.
fn is_interface(words: &[String]) -> bool {
    let [keyword, _, _, way, ..] = words else { return false };
    keyword.starts_with("interface") && ["input", "output", "bidirectional"].contains(&way.as_str())
}

/// A command as a terminal shows it, behind its prompt.
fn has_prompt(line: &str) -> bool {
    tc::listing_heading(line).is_some_and(|heading| heading.is_command)
}

fn is_nft(words: &[String]) -> bool {
    let about =
        ["table", "chain", "rule", "ruleset", "set", "map", "inet", "ip", "ip6", "bridge", "netdev", "arp"];
    words[0] == "define"
        || words[0] == "include"
        || words.get(1).is_some_and(|word| about.contains(&word.as_str()))
}

/// `NAME=value` as a shell takes it.
fn setting(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (is_plain && !name.is_empty()).then_some(name)
}

/// A line that calls a tool we play, by name or by a variable of its name.
fn calls_tool(line: &str) -> bool {
    line.split(|letter: char| letter.is_whitespace() || ";&|(){}`\"'".contains(letter)).any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word).trim_start_matches('$');
        TOOLS.iter().any(|tool| *tool == name || tool.eq_ignore_ascii_case(name) && word.starts_with('$'))
    })
}

/// `key = "value"`, `[section]`.
fn is_toml(line: &str) -> bool {
    if line.starts_with('[') {
        return line.trim_end_matches(|letter| letter != ']').ends_with(']');
    }
    let Some((key, value)) = line.split_once('=') else { return false };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-. \"".contains(letter);
    let value = value.trim_start();
    key.chars().all(plain)
        && (value.starts_with(['"', '\'', '[', '{'])
            || value.starts_with(|c: char| c.is_ascii_digit())
            || value == "true"
            || value == "false")
}

/// What something else looks like.
fn looks_like(first: &str) -> FormatError {
    if first.starts_with('<') {
        FormatError::LooksLike(
            "looks like HTML or XML, perhaps a page that shows the script: save the script itself",
        )
    } else if first.starts_with("Chain ") {
        FormatError::LooksLike(
            "looks like what `iptables -L` prints for people; save what `iptables-save` prints instead",
        )
    } else {
        FormatError::Unknown(first.chars().take(FormatError::SHOWN).collect())
    }
}

/// A file's name, in one line.
pub(super) fn shown_name(path: &Path) -> String {
    tidegate_text::line(&path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_their_content() {
        let table = [
            ("a", "#!/bin/sh\necho", Ok(InputFormat::Script)),
            ("a", "#!/usr/sbin/nft -f\n", Ok(InputFormat::Nft)),
            ("a", "DEV=eth0\n/sbin/tc qdisc add dev $DEV root pfifo\n", Ok(InputFormat::Script)),
            ("a", "$TC qdisc add dev eth0 root pfifo\n", Ok(InputFormat::Script)),
            ("a", "# x\nqdisc add dev eth0 root pfifo\n", Ok(InputFormat::Batch)),
            ("a", "q a dev eth0 root pfifo\n", Ok(InputFormat::Batch)),
            ("a", "*mangle\n-A OUTPUT -j MARK --set-mark 1\nCOMMIT\n", Ok(InputFormat::IptablesSave(false))),
            (
                "a",
                "*mangle\n-A OUTPUT -s fe80::1 -j MARK --set-mark 1\nCOMMIT\n",
                Ok(InputFormat::IptablesSave(true)),
            ),
            ("a", "table inet q {\n}\n", Ok(InputFormat::Nft)),
            ("a", "flush ruleset\n", Ok(InputFormat::Nft)),
            ("a", "config queue 'eth0'\n option enabled 1\n", Ok(InputFormat::Uci)),
            ("a", "UPLINK=800\nDOWNLINK=9000\n", Ok(InputFormat::SqmConf)),
            // A kernel's configuration.
            (
                ".config",
                "CONFIG_NET_SCHED=y\nCONFIG_NETLINK=y\n",
                Err(FormatError::Unknown("CONFIG_NET_SCHED=y".into())),
            ),
            ("a", "interface eth0 world output rate 1Mbit\n class voip\n", Ok(InputFormat::FireQos)),
            ("a", "[Match]\nName=eth0\n\n[CAKE]\nBandwidth=9M\n", Ok(InputFormat::Networkd)),
            (
                "a.yaml",
                "# slow\n---\napiVersion: chaos-mesh.org/v1alpha1\nkind: NetworkChaos\n",
                Ok(InputFormat::ChaosMesh),
            ),
            (
                "a",
                "kind: Workflow\napiVersion: chaos-mesh.org/v1alpha1\nspec:\n  - networkChaos: {}\n",
                Ok(InputFormat::ChaosMesh),
            ),
            (
                "a",
                "kind: Pod\nmetadata:\n  annotations:\n    \"kubernetes.io/egress-bandwidth\": 1M\n",
                Ok(InputFormat::PodBandwidth),
            ),
            (
                "a",
                "{\"kind\": \"Pod\", \"metadata\": {\"annotations\": {\"kubernetes.io/egress-bandwidth\": \"1M\"}}}",
                Ok(InputFormat::PodBandwidth),
            ),
            ("a.sh", "kubectl apply -f - <<EOF\nkind: NetworkChaos\nEOF\n", Ok(InputFormat::Script)),
            ("a", "device = \"eth0\"\n", Ok(InputFormat::Short)),
            ("a", "[link]\nup = \"1mbit\"\n", Ok(InputFormat::Short)),
            ("a.toml", "x\n", Ok(InputFormat::Short)),
            ("a", ". ./lib.sh\nstart\n", Ok(InputFormat::Script)),
            ("a", "qdisc htb 1: root refcnt 2 r2q 10\n", Ok(InputFormat::Listing)),
            ("a", "root@gw:~# tc qdisc\nqdisc htb 1: root refcnt 2 r2q 10\n", Ok(InputFormat::Listing)),
            ("a", "[{\"kind\":\"htb\"}]\n[]\n", Ok(InputFormat::TcJson)),
            ("a", "# dev eth0\n[{\"kind\":\"htb\"}]\n$ tc -j class\n[]\n", Ok(InputFormat::TcJson)),
            ("a", "# a comment\n[link]\nup = \"1mbit\"\n", Ok(InputFormat::Short)),
            ("a", "$TC qdisc add dev eth0 root fq\n", Ok(InputFormat::Script)),
            (
                "a",
                "[{\"protocol\":\"ip\",\"kind\":\"fw\",\"options\":{handle 0xa classid 1:10 }}]",
                Err(FormatError::BrokenTcJson("key must be a string at line 1 column 42".to_owned())),
            ),
        ];
        for (name, text, expected) in table {
            assert_eq!(sniff(name, text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn unknown_formats_are_reported_with_their_likely_one() {
        let text_of = |bytes: &[u8]| {
            sniff("a", bytes).expect_err("is none").to_string().lines().next().unwrap_or_default().to_owned()
        };
        assert!(text_of(&[0xd4, 0xc3, 0xb2, 0xa1, 0]).contains("pcap"));
        assert!(text_of(b"Chain OUTPUT (policy ACCEPT)\n").contains("iptables-save"));
        assert!(text_of(b"<html>").contains("HTML"));
        for line in ["$ tc qdisc add dev eth0 root fq\n", "ann@gw:~$ sudo tc qdisc add dev eth0 root fq\n"] {
            assert!(text_of(line.as_bytes()).contains("prompts"), "{line}");
        }
        let markdown = sniff("policy.md", b"# Shape\n\ntc qdisc add dev eth0 root sfq\n");
        assert!(markdown.expect_err("no script").to_string().contains("Markdown"));
        let script = sniff("policy.md", b"#!/bin/sh\ntc qdisc add dev eth0 root sfq\n");
        assert_eq!(script, Ok(InputFormat::Script));
        assert!(text_of(b"\x00\x01\x02").contains("not text"));
        assert!(text_of(b"\n# only this\n").contains("empty"));
        assert!(text_of(b"# tc qdisc add dev eth0 root fq\n").contains("behind `#`"));
        assert!(text_of(b"# tc qdisc is a tool\n").contains("empty"));
        assert!(text_of(b"{\"a\": 1}").contains("JSON"));
        assert!(text_of("dear diary".as_bytes()).contains("dear diary"));
    }
}
