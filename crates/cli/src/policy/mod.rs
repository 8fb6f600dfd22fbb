//! `tidegate policy`: short policies written, shown, explained, and read back from what others wrote.

mod options;
mod wizard;

pub use options::Options;

use crate::exit::CliExit;
#[cfg(feature = "workstation")]
use crate::script_options::{ScriptOptions, must_have_ended, show_errors};
use options::{Print, What};
use serde_json::{Value, json};
use std::path::Path;
#[cfg(feature = "workstation")]
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_loader::short as short_file;
#[cfg(feature = "workstation")]
use tidegate_loader::{ReadOptions, ShortPolicy};
use tidegate_syntax::short::{self, Compiled, Short, TreeKind, TreeReason};

/// Plays `tidegate policy`.
pub fn command(options: &Options) -> ExitCode {
    match &options.what {
        What::Help { word } => help(&word.join(" ")),
        What::List { json: false } => read(&short::help::list()),
        What::List { json: true } => print(&format!("{:#}\n", listed())),
        What::Wizard { file } => wizard::command(file),
        What::Schema => print(&short::schema()),
        What::New { preset, dev, lan, up, down, link, kind } => {
            new(preset, dev, [lan, up, down, link, kind].map(Option::as_deref))
        }
        What::Show { file, print, json } => show(file, if *json { Print::Json } else { *print }),
        #[cfg(feature = "workstation")]
        What::From { files, args, sandbox, json } => from(files, args, sandbox, *json),
    }
}

/// What `list` shows, as a document.
fn listed() -> Value {
    let named = |name: &str, about: &str| json!({"name": name, "about": about});
    let presets: Vec<Value> = short::presets::PRESETS.iter().map(|one| named(one.name, one.about)).collect();
    let apps: Vec<Value> = short::apps::APPS.iter().map(|one| named(one.name, one.about)).collect();
    let links: Vec<Value> = short::links::LINKS
        .iter()
        .map(|one| json!({"name": one.name, "about": one.about, "overhead_bytes": one.overhead}))
        .collect();
    json!({"tidegate_policy_list": FORM, "presets": presets, "apps": apps, "links": links})
}

/// Prints a text for people.
fn read(text: &str) -> ExitCode {
    crate::output::report(text);
    ExitCode::SUCCESS
}

/// Prints a policy or a document, as it is.
fn print(text: &str) -> ExitCode {
    crate::output::text(text);
    ExitCode::SUCCESS
}

fn complain(code: CliExit, text: &str) -> ExitCode {
    eprintln!("tidegate policy: {}", text.trim_end());
    code.into()
}

fn help(word: &str) -> ExitCode {
    if word.is_empty() {
        return read(&short::help::all());
    }
    match short::help::word(word) {
        Ok(text) => read(&text),
        Err(Some(near)) => {
            complain(CliExit::Input, &format!("there is no word \"{word}\"; did you mean \"{near}\"?"))
        }
        Err(None) => complain(
            CliExit::Input,
            &format!(
                "there is no word \"{word}\"; `tidegate policy help` and `tidegate policy list` show all"
            ),
        ),
    }
}

fn new(preset: &str, dev: &str, [lan, up, down, link, kind]: [Option<&str>; 5]) -> ExitCode {
    let Some(found) = short::presets::preset_named(preset) else {
        let known: Vec<&str> = short::presets::PRESETS.iter().map(|preset| preset.name).collect();
        return complain(
            CliExit::Input,
            &format!("there is no preset \"{preset}\"; known are {}", known.join(", ")),
        );
    };
    let mut text =
        format!("# {}: {}.\n# tidegate policy help explains the words.\n", found.name, found.about);
    let pairs = [
        ("device", Some(dev)),
        ("lan", lan),
        ("link", link),
        ("up", up),
        ("down", down),
        ("preset", Some(preset)),
        ("kind", kind),
    ];
    for (key, value) in pairs {
        if let Some(value) = value {
            text.push_str(&format!("{key} = {}\n", Value::from(value)));
        }
    }
    // What would be wrong in a file is wrong here.
    match short_file::understand(&text) {
        Ok(_) => print(&text),
        Err(problems) => {
            complain(CliExit::Input, &short_file::tell(Path::new("the command line"), &text, &problems))
        }
    }
}

fn show(path: &Path, how: Print) -> ExitCode {
    let text = match crate::input::policy(path) {
        Ok(text) => text,
        Err(error) => {
            return complain(CliExit::Input, &format!("{}: cannot be read: {error}", path.display()));
        }
    };
    let name = path.display().to_string();
    let format = match tidegate_loader::sniff(&name, text.as_bytes()) {
        Ok(format) if short_file::is_short(format) => format,
        Ok(other) => {
            let why = format!(
                "{name}: is {}; `tidegate policy from {name}` makes a short policy of it",
                other.name()
            );
            return complain(CliExit::Input, &why);
        }
        Err(why) => return complain(CliExit::Input, &format!("{name}: {why}")),
    };
    let policies = match short_file::policies(format, &name, &text) {
        Ok(policies) => policies,
        Err(problems) => {
            eprint!("{}", short_file::tell(path, &text, &problems));
            return CliExit::Input.into();
        }
    };
    for (short, compiled) in &policies {
        eprint!("{}", short_file::tell(path, &text, &compiled.notes).replace("remedy:", "note:"));
        if how == Print::Tc {
            eprintln!("tidegate policy: {}", tree(short));
        }
        print(&match how {
            Print::Tc => script(short, compiled, &name),
            Print::Toml => short.text(),
            Print::Json => format!("{:#}\n", document(short, compiled)),
        });
    }
    ExitCode::SUCCESS
}

/// Which queues a policy comes to, and why.
fn tree(short: &Short) -> String {
    let directions = match (&short.up, &short.down) {
        (Some(_), Some(_)) => "in each direction",
        (Some(_), None) => "for uploads",
        _ => "for downloads",
    };
    let queues = match short.kind {
        TreeKind::Cake => format!("one cake {directions}"),
        TreeKind::FqCodel => format!("one fq_codel {directions}, in a class of HTB"),
        TreeKind::Classes => format!("{} classes of HTB {directions}", short.classes.len() + 2),
    };
    let why = match short.reason {
        TreeReason::Written => "because the policy says kind",
        TreeReason::HasClasses => {
            "because the policy has classes; without them it is one cake in each direction"
        }
        TreeReason::NothingAsked => {
            "because nothing asks for classes (kind = \"classes\" does); where the kernel has no cake, apply \
            makes one fq_codel instead"
        }
        TreeReason::NoCake => "because nothing asks for classes, and the kernel has no cake",
    };
    format!("{queues}, {why} (tidegate policy help kind)")
}

/// The commands as a script, with comments that give its classes their names.
fn script(short: &Short, compiled: &Compiled, name: &str) -> String {
    let names = short.class_names().into_iter().map(|(dev, class, name)| ((dev, class), name)).collect();
    let text = compiled.script(name);
    let (head, commands) = text.split_at(text.match_indices('\n').nth(1).map_or(0, |(at, _)| at + 1));
    format!("{head}{}{commands}", tidegate_loader::name_comments(&names))
}

/// The form of documents: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;

/// The commands as JSON.
fn document(short: &Short, compiled: &Compiled) -> Value {
    let lines: Vec<Value> = compiled
        .commands
        .iter()
        .map(|line| {
            json!({
                "tool": line.tool, "words": line.words, "stdin": line.stdin, "may_fail": line.may_fail,
                "line": line.from.line, "columns": [line.from.from, line.from.to],
            })
        })
        .collect();
    let notes: Vec<Value> = compiled
        .notes
        .iter()
        .map(|note| json!({ "line": note.span.line, "what": note.what, "remedy": note.remedy }))
        .collect();
    json!({
        "tidegate_policy": FORM, "summary": compiled.summary(short), "tree": tree(short),
        "commands": lines, "notes": notes,
    })
}

/// Plays `tidegate policy from`.
#[cfg(feature = "workstation")]
fn from(files: &[PathBuf], args: &[String], sandbox: &ScriptOptions, as_json: bool) -> ExitCode {
    let taken = match tidegate_loader::read(
        files,
        &ReadOptions { args: args.to_vec(), sandbox: sandbox.into(), ..ReadOptions::default() },
    ) {
        Ok(taken) => taken,
        Err(error) => return complain(CliExit::Input, &error.to_string()),
    };
    show_errors(&taken.outcomes);
    for warning in taken.warnings() {
        eprintln!("{warning}");
    }
    if let Err(half) = must_have_ended(&taken) {
        return complain(CliExit::Input, &half.to_string());
    }
    if let Some(nothing) = taken.nothing_found() {
        return complain(CliExit::Input, &nothing);
    }
    let ShortPolicy { text, misfits } = tidegate_loader::to_short(&taken.reading());
    if as_json {
        let misfits: Vec<Value> =
            misfits.iter().map(|one| json!({ "what": one.what, "instead": one.instead })).collect();
        print(&format!(
            "{:#}\n",
            json!({ "tidegate_policy": FORM, "policy": text, "does_not_fit": misfits })
        ));
    } else {
        for one in &misfits {
            eprintln!("does not fit: {}: {}", one.what, one.instead);
        }
        print(text.as_deref().unwrap_or_default());
    }
    if text.is_some() && misfits.is_empty() { ExitCode::SUCCESS } else { CliExit::No.into() }
}
