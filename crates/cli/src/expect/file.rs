//! A file of expectations: the policy, the link, and what is expected, each with its place.

use crate::trial;
use clap::Parser;
use std::path::Path;
use tidegate_loader::short;
use tidegate_scenario::tables::{Diagnostic, TableValue, list, plain, text as text_of};
use tidegate_syntax::short::Short;
use tidegate_trial::expect::{self, Classes, OPTIONS, Suite};
use toml::de::DeTable;

/// A file of expectations, and how its policy is loaded.
pub(super) struct Loaded {
    pub(super) suite: Suite,
    pub(super) trial: Box<trial::Options>,
}

/// The default duration of each load.
const DURATION: &str = "20s";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: trial::Options,
}

/// Reads a file.
///
/// # Errors
/// Its place, underlined, why, and what to write instead.
pub(super) fn read(path: &Path) -> anyhow::Result<Loaded> {
    let text = crate::input::policy(path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    parse(path, &text).map_err(|wrong| anyhow::anyhow!(wrong.shown(path, &text)))
}

/// Parses a text, for the fuzzer.
pub(crate) fn fuzz(path: &Path, text: &str) {
    if let Err(wrong) = parse(path, text) {
        wrong.shown(path, text);
    }
}

fn parse(path: &Path, text: &str) -> Result<Loaded, Diagnostic> {
    let options = |table: &DeTable<'_>| options(path, table);
    let (trial, cases) = expect::parse(text, options, |trial: &trial::Options| classes_of(&trial.script))?;
    let rates = trial::rates::of(&trial).map_err(|_| {
        let remedy = "write how fast the link is: `up = \"2mbit\"`, `down = \"20mbit\"`";
        Diagnostic::new(0..0, "the link's rates are missing", remedy)
    })?;
    let suite = Suite { path: path.to_owned(), settings: trial.settings(rates), cases };
    Ok(Loaded { suite, trial: Box::new(trial) })
}

/// The classes that a policy names: short policies do.
fn classes_of(policy: &Path) -> Classes {
    let Ok(text) = crate::input::policy(policy) else { return Classes::new() };
    let name = policy.to_string_lossy();
    let Some(format) =
        tidegate_loader::sniff(&name, text.as_bytes()).ok().filter(|format| short::is_short(*format))
    else {
        return Classes::new();
    };
    let policies = short::policies(format, &name, &text).unwrap_or_default();
    let id = |short: &Short, class: &str| short.class_id(class).map(|id| (class.to_owned(), id.to_string()));
    let named = |short: &Short| {
        short.classes.iter().filter_map(|class| id(short, &class.name.value)).collect::<Vec<_>>()
    };
    policies.iter().flat_map(|(short, _)| named(short)).collect()
}

/// The file's policy and link, as options of `tidegate try`.
fn options(path: &Path, table: &DeTable<'_>) -> Result<trial::Options, Diagnostic> {
    let policy = required(table, "policy", "name the policy's file: `policy = \"gateway.sh\"`")?;
    let beside = path.parent().unwrap_or(Path::new(""));
    let script = beside.join(text_of(policy)?);
    let mut args = vec!["test".to_owned(), script.display().to_string()];
    for key in OPTIONS {
        let Some(value) = table.get(key) else { continue };
        let words = plain(value)?;
        let option = [format!("--{key}"), words];
        // Each is tried alone, so that what is wrong has its place.
        let alone: Vec<&String> = args[..2].iter().chain(&option).collect();
        if let Err(error) = Line::try_parse_from(alone) {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            return Err(Diagnostic::new(
                value.span(),
                reason,
                format!("`tidegate try --help` shows what --{key} takes"),
            ));
        }
        args.extend(option);
    }
    if !table.contains_key("duration") {
        args.extend(["--duration".to_owned(), DURATION.to_owned()]);
    }
    if let Some(probes) = table.get("probes") {
        let names: Vec<&str> = list(probes)?.iter().map(text_of).collect::<Result<_, _>>()?;
        args.extend(["--probes".to_owned(), names.join(",")]);
    }
    if table.get("ipv6").and_then(|value| value.get_ref().as_bool()) == Some(true) {
        args.push("--ipv6".to_owned());
    }
    if let Some(given) = table.get("args") {
        args.push("--".to_owned());
        for arg in list(given)? {
            args.push(text_of(arg)?.to_owned());
        }
    }
    let line = Line::try_parse_from(&args).map_err(|error| {
        let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
        Diagnostic::new(policy.span(), reason, "`tidegate try --help` shows what each takes")
    })?;
    Ok(line.options)
}

fn required<'t>(table: &'t DeTable<'t>, key: &str, remedy: &str) -> Result<TableValue<'t>, Diagnostic> {
    table.get(key).ok_or_else(|| Diagnostic::new(0..0, format!("`{key}` is missing"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "policy = \"a.sh\"\nup = \"2mbit\"\ndown = \"20mbit\"\nseed = 7\n\
                        expect = [\n  \"ping: p95 < 50 ms while 2 uploads\",\n]\n";

    fn error(text: &str) -> String {
        match parse(Path::new("x/home.toml"), text) {
            Ok(_) => "nothing".into(),
            Err(wrong) => wrong.shown(Path::new("x/home.toml"), text),
        }
    }

    #[test]
    fn a_file_is_read() {
        let Ok(suite) = parse(Path::new("x/home.toml"), GOOD) else { panic!("{}", error(GOOD)) };
        assert_eq!((suite.trial.script.as_path(), suite.trial.seed), (Path::new("x/a.sh"), 7));
        assert_eq!(
            (suite.suite.cases[0].line, suite.suite.cases[0].text.as_str()),
            (6, "ping: p95 < 50 ms while 2 uploads")
        );
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let wrong_word = GOOD.replace("p95", "q95");
        assert_eq!(
            error(&wrong_word),
            "x/home.toml:6:10: unknown figure\n  6 |   \"ping: q95 < 50 ms while 2 uploads\",\n    \
             |          ^^^\n    = figures are p50, p95, p99 (any pN), mean, max, loss, rate, share, drops, \
             qoo-call (qoo-meeting, qoo-game, qoo-browsing)"
        );
        let heads = [
            (GOOD.replace("up = ", "upp = "), "x/home.toml:2:1: unknown key"),
            (GOOD.replace("2mbit", "fast"), "x/home.toml:2:6: invalid value 'fast' for '--up <RATE>'"),
            (GOOD.replace("policy = \"a.sh\"", ""), "x/home.toml:1:1: `policy` is missing"),
            (GOOD.replace("\"a.sh\"", "7"), "x/home.toml:1:10: expected a string"),
            (GOOD.replace("seed = 7", "seed = "), "x/home.toml:4:8: string values must be quoted"),
        ];
        for (text, head) in heads {
            let error = error(&text);
            assert!(error.starts_with(head), "{error}");
        }
    }
}
