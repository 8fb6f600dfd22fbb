//! Commands, and what happens at its time.

use super::super::scenario::{At, Command, Happening, Line};
use super::lines;
use super::network::{Network, strings};
use crate::tables::{Keys, Value, Wrong, list, span, text};
use std::ops::Range;
use std::path::Path;
use tidegate_capture::TOOLS;
use tidegate_packet::Span;
use toml::de::DeValue;

/// What only a shell understands.
const SHELL: [char; 9] = ['$', '|', '>', '<', ';', '&', '`', '*', '('];

/// A command that stands in the file.
pub(super) fn command(line: &str, at: Range<usize>) -> Result<Command, Wrong> {
    match parse_command(line) {
        Ok(words) => Ok(Command { words, at }),
        Err((reason, remedy)) => Err(Wrong::new(at, reason, remedy)),
    }
}

/// The words of a command.
///
/// # Errors
/// Why it is none that can be carried out, and what to do.
pub(crate) fn parse_command(line: &str) -> Result<Vec<String>, (String, String)> {
    let mut words = words(line).ok_or_else(|| ("a quote is not closed".to_owned(), "close it".to_owned()))?;
    if words.first().is_some_and(|first| first == "sudo") {
        words.remove(0);
    }
    let Some(first) = words.first() else {
        return Err(("an empty command".into(), "write `tc …`, `ip …`, `iptables …`, `ethtool …`".into()));
    };
    let tool = first.rsplit('/').next().unwrap_or(first);
    if !TOOLS.contains(&tool) {
        let known = "write tc, ip, iptables, ip6tables, nft, ifconfig, ethtool, modprobe or sysctl; a shell script goes into a file";
        return Err((format!("`{tool}` is no tool that a machine has here"), known.into()));
    }
    if line.contains(SHELL) {
        let remedy = "put it into a file: `gateway = \"policy.sh\"`".to_owned();
        return Err(("only a shell understands this".into(), remedy));
    }
    let tool = tool.to_owned();
    words[0] = tool;
    Ok(words)
}

/// Splits at blanks, but not in quotes, which go.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut open, mut inside) = (None, false);
    for c in line.chars() {
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) => words.last_mut()?.push(c),
            None if c.is_whitespace() => inside = false,
            None => {
                if !std::mem::replace(&mut inside, true) {
                    words.push(String::new());
                }
                if c == '"' || c == '\'' {
                    open = Some(c);
                } else {
                    words.last_mut()?.push(c);
                }
            }
        }
    }
    open.is_none().then_some(words)
}

/// `[[at]]`; `usual` is the machine that is meant where none is named and there are several.
pub(super) fn read(value: Value<'_>, network: &Network, usual: Option<usize>, beside: &Path) -> Result<Vec<At>, Wrong> {
    let mut all = Vec::new();
    for entry in list(value)? {
        let mut keys = Keys::of(entry)?;
        let time = span(keys.need("time", "when? `time = \"30s\"`, from the beginning of the run")?)?;
        let link = keys.get("link");
        if link.is_none() {
            all.extend(told(&mut keys, time, (network, usual), beside)?);
        } else if let Some(link) = link {
            let cable = network.known_link(text(link)?, link.span())?;
            let (up, down) = lines::both(&mut keys, beside)?;
            fixed(&up, link)?;
            fixed(&down, link)?;
            all.push(At { time, what: Happening::Link { cable, lines: Box::new([up, down]) } });
        }
        keys.finish()?;
    }
    all.sort_by_key(|at| at.time);
    Ok(all)
}

/// What a machine is told.
fn told(
    keys: &mut Keys<'_>,
    time: Span,
    (network, usual): (&Network, Option<usize>),
    beside: &Path,
) -> Result<Vec<At>, Wrong> {
    let machine = match keys.get("on") {
        Some(on) => network.known_machine(text(on)?, on.span())?,
        None => match usual {
            Some(machine) => machine,
            None => network.only_machine(keys.place())?,
        },
    };
    let pace = keys.read("pace", span)?.unwrap_or_default();
    if let Some(script) = keys.get("script") {
        let path = beside.join(text(script)?);
        if !path.exists() {
            let why = format!("there is no file {}", path.display());
            return Err(Wrong::new(script.span(), why, "name a script beside this file"));
        }
        let args = keys.read("args", strings)?.unwrap_or_default();
        return Ok(vec![At { time, what: Happening::Script { machine, path, args, pace, at: script.span() } }]);
    }
    let how = "what is it told? `run = \"tc qdisc del dev eth0 root\"`, or `script = \"FILE\"`; a link changes with `link = \"NAME\"`";
    let commands = commands(keys.need("run", how)?)?;
    let told = (0..).zip(commands).map(|(number, command)| At {
        time: time + Span(pace.0 * number),
        what: Happening::Command { machine, command },
    });
    Ok(told.collect())
}

/// What a link keeps.
fn fixed(line: &Line, link: Value<'_>) -> Result<(), Wrong> {
    if line.framing.is_some() || line.trace.is_some() || line.jitter.is_some() {
        let what = "a link's framing, jitter and trace stay as they are";
        return Err(Wrong::new(link.span(), what, "rate, delay, buffer, packet-rate, ring, bql, loss may change"));
    }
    Ok(())
}

/// A command, or several.
fn commands(value: Value<'_>) -> Result<Vec<Command>, Wrong> {
    match value.get_ref() {
        DeValue::Array(lines) => lines.iter().map(|line| command(text(line)?, line.span())).collect(),
        _ => Ok(vec![command(text(value)?, value.span())?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command() {
        let quoted = r#"iptables -A INPUT -m comment --comment "two words" -j ACCEPT"#;
        let found = parse_command(quoted).expect("a command");
        assert_eq!(found[6], "two words");
        assert_eq!(parse_command("/sbin/tc qdisc show").map(|words| words[0].clone()), Ok("tc".into()));
        let refused =
            ["", "echo 1", "tc qdisc add dev $DEV root", "tc 'qdisc"].map(|line| parse_command(line).is_err());
        assert_eq!(refused, [true; 4]);
    }
}
