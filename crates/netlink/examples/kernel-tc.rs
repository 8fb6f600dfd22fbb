//! `tc` that programs the kernel by this crate's messages and shows what is there: what `cargo xtask
//! kernel-proof` puts in the real one's place.
//!
//! `kernel-tc remake DEV…` takes all away that stands on devices, brings it back by what the kernel reported
//! of it, and says for each whether it is the same again; it is what undoing stands on.
//!
//! `kernel-tc WORD…`, or `kernel-tc [-s -d] -force -batch FILE` for a file of such words, one command a line.

use std::collections::BTreeMap;
use std::process::ExitCode;
use tidegate_netlink::Kernel;
use tidegate_packet::Handle;
use tidegate_plan::{Incomplete, plan};
use tidegate_policy::NetemDistribution;
use tidegate_policy::dump::Installed;
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, Object, ShowActions, ShowFlags, ShowWhat, TcCommand};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.as_slice() {
        [flags @ .., force, batch, file] if force == "-force" && batch == "-batch" => {
            all(file, flags.len() == 2)
        }
        [remake, devices @ ..] if remake == "remake" => remake_all(devices),
        words => {
            let opened = Kernel::open().map_err(|error| error.to_string());
            opened.and_then(|mut kernel| one(&mut kernel, words, ShowFlags::default()))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Takes away and brings back, device by device.
fn remake_all(devices: &[String]) -> Result<(), String> {
    let mut kernel = Kernel::open().map_err(|error| error.to_string())?;
    for dev in devices {
        match remade(&mut kernel, dev) {
            Ok(0) => {}
            Ok(_) => println!("same {dev}"),
            Err(why) => println!("{why}"),
        }
    }
    Ok(())
}

/// How many qdiscs, classes and filters are as they were.
fn remade(kernel: &mut Kernel, dev: &str) -> Result<usize, String> {
    let differs = |error: String| format!("differs {dev}: {error}");
    let result_of = |kernel: &mut Kernel| {
        kernel.installed(dev).map(|(installed, _)| installed).map_err(|error| differs(error.to_string()))
    };
    let before = result_of(kernel)?;
    let cannot = |incomplete: Incomplete| format!("cannot {}: {}", incomplete.kind, incomplete.missing);
    let back = plan(&Installed::default(), &before, &[]).map_err(cannot)?;
    for way in [plan(&before, &Installed::default(), &[]).map_err(cannot)?, back] {
        let ops: Vec<_> = way.ops().collect();
        let gone = kernel.carry_out(ops.iter().copied());
        gone.map_err(|(at, problem)| differs(format!("{problem}: {:?}", ops[at])))?;
    }
    let left = plan(&result_of(kernel)?, &before, &[]).map_err(cannot)?;
    match left.steps.first() {
        Some(step) => Err(differs(format!("{:?} {:?}", step.sign, step.item))),
        None => Ok(left.kept),
    }
}

/// The commands of a file; what is refused does not keep the others from being carried out.
fn all(file: &str, full: bool) -> Result<(), String> {
    let flags = if full { ShowFlags::FULL } else { ShowFlags::default() };
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut kernel = Kernel::open().map_err(|error| error.to_string())?;
    for line in text.lines() {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        if let Err(error) = one(&mut kernel, &words, flags) {
            eprintln!("{error}");
        }
    }
    Ok(())
}

/// Where tc has netem's distributions.
const TABLES: &str = "/usr/lib/x86_64-linux-gnu/tc";

/// What is known about the machine: the distributions that it has as files.
fn env(words: &[String]) -> Env {
    let mut env = Env::default();
    if let Some(name) = words.iter().skip_while(|word| *word != "distribution").nth(1)
        && let Ok(text) = std::fs::read_to_string(format!("{TABLES}/{name}.dist"))
    {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.flat_map(str::split_whitespace).filter_map(|word| word.parse().ok()).collect();
        env.tables = [(name.clone(), NetemDistribution(values))]
            .into_iter()
            .collect::<BTreeMap<String, NetemDistribution>>()
            .into();
    }
    env
}

fn one(kernel: &mut Kernel, words: &[String], flags: ShowFlags) -> Result<(), String> {
    let parsed = tc::parse_line(words, flags, &env(words)).map_err(|refusal| refusal.stderr)?;
    let text = match parsed.command {
        TcCommand::Apply(op) => return kernel.apply(&op).map_err(|problem| problem.to_string()),
        TcCommand::Show(what) => shown(kernel, &what, &parsed.flags),
        TcCommand::ShowActions(ShowActions::Kind(kind)) => {
            let dumps = kernel.actions(&kind);
            dumps.map(|dumps| tc::show_actions(&dumps, &ShowActions::Kind(kind), &parsed.flags))
        }
        _ => return Ok(()),
    };
    print!("{}", text.map_err(|unread| unread.to_string())?);
    Ok(())
}

fn shown(
    kernel: &mut Kernel,
    what: &ShowWhat,
    flags: &ShowFlags,
) -> Result<String, tidegate_netlink::decode::Unread> {
    let Some(dev) = &what.dev else { return Ok(String::new()) };
    if what.object == Object::Filter {
        let filters = kernel.filters(dev, what.parent.unwrap_or(Handle::NONE))?;
        return Ok(tc::show_filters(&filters, what, flags));
    }
    let installed = kernel.qdiscs(dev)?;
    Ok(match what.object {
        Object::Qdisc => tc::show_qdiscs(&installed.qdiscs, what, flags),
        _ => tc::show_classes(&installed.classes, what, flags),
    })
}
