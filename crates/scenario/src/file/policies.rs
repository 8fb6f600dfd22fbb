//! The policies to compare.

use super::beside::Beside;
use super::commands::command;
use super::named::named;
use super::network::{Network, strings};
use super::{lines, timeline};
use crate::model::{PolicySource, ScenarioPolicy};
use crate::tables::{Diagnostic, Keys, TableValue, in_order, text, title};
use toml::de::DeValue;

/// The policy `none`: no configuration.
pub(crate) fn none() -> ScenarioPolicy {
    ScenarioPolicy {
        name: "none".into(),
        title: "no policy".into(),
        machines: Vec::new(),
        links: Vec::new(),
        at: Vec::new(),
    }
}

/// `[policies.NAME]`: keys are machines, beside `title`, `args`, `links` and `at`.
pub(crate) fn read(
    name: &str,
    value: TableValue<'_>,
    network: &Network,
    beside: &Beside<'_>,
) -> Result<ScenarioPolicy, Diagnostic> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err(Diagnostic::new(value.span(), "expected a table", format!("write `[policies.{name}]`")));
    };
    let mut policy = ScenarioPolicy { name: name.to_owned(), title: name.to_owned(), ..none() };
    let mut at = None;
    let args = table.get("args").map(strings).transpose()?.unwrap_or_default();
    for (key, value) in in_order(table) {
        match key.get_ref().as_ref() {
            "title" => policy.title = title(value)?.to_owned(),
            "args" => {}
            "links" => {
                for (name, value) in named(Some(value))? {
                    let cable = network.known_link(name, value.span())?;
                    let mut keys = Keys::of(value)?;
                    let (up, down) = lines::both(&mut keys, beside)?;
                    keys.finish()?;
                    policy.links.push((cable, up, down));
                }
            }
            "at" => at = Some(value),
            machine => {
                let node = network.known_machine(machine, key.span()).map_err(|wrong| Diagnostic {
                    remedy: format!("{}; other keys are title, args, links, at", wrong.remedy),
                    ..wrong
                })?;
                policy.machines.push((node, source(value, &args, beside)?));
            }
        }
    }
    if let Some(value) = at {
        // A policy of one machine need not name it again.
        let usual = match policy.machines.as_slice() {
            [(one, _)] => Some(*one),
            _ => None,
        };
        policy.at = timeline::read(value, network, usual, beside)?;
    }
    Ok(policy)
}

/// A list of commands, or a file.
fn source(value: TableValue<'_>, args: &[String], beside: &Beside<'_>) -> Result<PolicySource, Diagnostic> {
    match value.get_ref() {
        DeValue::Array(lines) => {
            let commands = lines.iter().map(|line| command(text(line)?, line.span()));
            commands.collect::<Result<_, _>>().map(PolicySource::Commands)
        }
        DeValue::String(said)
            if said.split_whitespace().count() > 1 && !beside.exists(&beside.join(said)) =>
        {
            Ok(PolicySource::Commands(vec![command(said, value.span())?]))
        }
        DeValue::String(words) => {
            let path = beside.join(words);
            if !beside.exists(&path) {
                let why = format!("there is no file {}", path.display());
                return Err(Diagnostic::new(
                    value.span(),
                    why,
                    "name a file beside this one, or write a list of commands",
                ));
            }
            Ok(PolicySource::File { path, args: args.to_vec(), at: value.span() })
        }
        _ => {
            Err(Diagnostic::new(value.span(), "no policy", "write a list of commands, or the name of a file"))
        }
    }
}
