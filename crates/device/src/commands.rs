//! tc's commands: lines of text in, listings and refusals out.

use crate::error::Error;
use crate::limits::{MAX_COMMANDS, MAX_OUTPUT};
use tidegate_packet::{Pool, RandomSource};
use tidegate_shims::{Machine, Reply};
use tidegate_syntax::{Refusal, batch};

/// What commands printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcOutput {
    /// What they list (`qdisc show`), one after the other.
    pub listing: String,
    /// Warnings, with the line that each is about: the kernel's, and what it accepts although it cannot work.
    pub warnings: Vec<String>,
}

/// Carries out the lines of a text on a machine whose only device has this name.
pub(crate) fn run(
    machine: &mut Machine,
    pool: &mut Pool,
    random: &mut dyn RandomSource,
    device: &str,
    text: &str,
) -> Result<TcOutput, Error> {
    if text.len() > MAX_COMMANDS {
        return Err(Error::Commands { bytes: text.len() });
    }
    let mut output = TcOutput::default();
    for line in batch::lines(text) {
        let line = line.map_err(|refusal| unterminated(text, &refusal))?;
        // Lines of a script and of a batch: `tc qdisc …` and `qdisc …`.
        let words = match line.args.split_first() {
            Some((tool, rest)) if tool == "tc" => rest,
            _ => &line.args[..],
        };
        let refuse = |reason: String, remedy: String| Error::Command {
            line: line.number,
            command: line.args.join(" "),
            reason,
            remedy,
        };
        if let Some((reason, remedy)) = out_of_place(words, device) {
            return Err(refuse(reason, remedy));
        }
        let reply = machine.shim(pool, random).tc(words, None);
        // Notes for those who print a policy again; here they would only grow.
        machine.log.clear();
        machine.carried.clear();
        machine.kernel_log.clear();
        let (message, remedy) = message(&reply);
        if reply.code != 0 {
            return Err(refuse(message, remedy));
        }
        if !message.is_empty() {
            output.warnings.push(format!("line {}: `{}`: {message}", line.number, line.args.join(" ")));
        }
        output.listing.push_str(&String::from_utf8_lossy(&reply.stdout));
        if output.listing.len() > MAX_OUTPUT {
            let reason = format!("the listings have more than {} MiB", MAX_OUTPUT >> 20);
            return Err(refuse(reason, "Ask for them in several calls.".into()));
        }
    }
    Ok(output)
}

/// The line with a quote that none ends: the last of the shortest text that is refused.
fn unterminated(text: &str, refusal: &Refusal) -> Error {
    let lines: Vec<&str> = text.lines().collect();
    let lengths: Vec<usize> = (1..=lines.len()).collect();
    let is_fine = |length: &usize| batch::lines(&lines[..*length].join("\n")).iter().all(Result::is_ok);
    let line = lengths.partition_point(is_fine) + 1;
    Error::Command {
        line,
        command: lines.get(line - 1).map_or("", |line| line.trim()).to_owned(),
        reason: refusal.stderr.trim_end().to_owned(),
        remedy: refusal.remedy.clone().unwrap_or_default(),
    }
}

/// What tc takes and one device's egress has no use for: reason and remedy.
fn out_of_place(words: &[String], device: &str) -> Option<(String, String)> {
    let refuse = |reason: String, remedy: String| Some((reason, remedy));
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let mut objects = words.iter().position(|word| !word.starts_with('-'));
    if words.iter().take_while(|word| word.starts_with('-')).any(|word| word.starts_with("-b")) {
        objects = None;
    }
    let Some(object) = objects else {
        return refuse(
            "no command: options alone, or a batch".into(),
            "Give the commands themselves, one on each line.".into(),
        );
    };
    if !word(object).is_empty() && "monitor".starts_with(word(object)) && word(object).len() > 1 {
        return refuse(
            "there is nothing to wait for".into(),
            "Drops are reported one by one; listings show counters.".into(),
        );
    }
    if ["ip", "iptables", "ip6tables", "nft", "ifconfig", "modprobe", "ethtool"].contains(&word(object)) {
        return refuse(
            format!("{} is not tc", word(object)),
            "Only tc's commands are carried out; mtu and queue length are in the configuration.".into(),
        );
    }
    let other = words.windows(2).find(|pair| pair[0] == "dev" && pair[1] != device);
    if let Some([_, other]) = other {
        return refuse(
            format!("there is no device {other}, only {device}"),
            format!("Write `dev {device}`, or configure the device with the name {other}."),
        );
    }
    let is_ingress = |word: &String| word == "ingress" || word == "ffff:";
    if "qdisc".starts_with(word(object)) && words.iter().any(is_ingress) && word(object + 1) != "show" {
        return refuse(
            "nothing arrives at this device: it only sends".into(),
            "Make a second device for the other direction, and give it these qdiscs as its root.".into(),
        );
    }
    None
}

/// What a reply says on standard error: tc's own words, and tidegate's explanation.
fn message(reply: &Reply) -> (String, String) {
    let text = String::from_utf8_lossy(&reply.stderr);
    let (own, explained): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| !line.starts_with("tc: "));
    let explained: Vec<&str> = explained.iter().map(|line| line.trim_start_matches("tc: ")).collect();
    (own.join("\n"), explained.join("\n"))
}
