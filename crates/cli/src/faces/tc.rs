//! tc, answered.

use super::{Face, refused};
use crate::capture::Reply;
use tidegate_lang::tc::{self, Object, Parsed, ShowWhat, TcCommand};
use tidegate_packet::Handle;

/// `tc` with these words; `stdin` is the text of a batch.
pub(super) fn answer(face: &mut Face<'_>, words: &[String], stdin: Option<&[u8]>) -> Reply {
    match tc::parse(words, &face.machine.env()) {
        Err(refusal) => refused("tc", refusal),
        Ok(Parsed { command: TcCommand::Batch { force, .. }, .. }) => run_batch(face, stdin.unwrap_or_default(), force),
        Ok(parsed) => one(face, parsed),
    }
}

fn one(face: &mut Face<'_>, parsed: Parsed) -> Reply {
    match parsed.command {
        TcCommand::Apply(op) => match face.apply(op.clone()) {
            Ok(warning) => {
                let stderr = warning.map_or(String::new(), |text| format!("Warning: {text}\n"));
                Reply { stdout: Vec::new(), stderr: stderr.into_bytes(), code: 0 }
            }
            Err(error) => {
                let (stderr, code) = tc::refusal_text(&op, &error);
                Reply::error(code, stderr)
            }
        },
        TcCommand::Show(what) => show(face, &what, &parsed.flags),
        TcCommand::Help(text) => Reply { stdout: Vec::new(), stderr: text.into_bytes(), code: 0 },
        TcCommand::Version => Reply::text(tc::VERSION),
        TcCommand::Batch { .. } => Reply::error(1, "tc: a batch cannot call a batch\n"),
    }
}

fn show(face: &mut Face<'_>, what: &ShowWhat, flags: &tc::ShowFlags) -> Reply {
    let machine = &mut *face.machine;
    let (now, gateway) = (machine.now, &mut machine.gateway);
    let chosen: Vec<_> = match &what.dev {
        Some(name) => gateway.device(name).into_iter().collect(),
        None => gateway.devices().collect(),
    };
    Reply::text(match what.object {
        Object::Qdisc => {
            let dumps: Vec<_> = chosen.iter().flat_map(|id| gateway.qdiscs(now, *id)).collect();
            tc::show_qdiscs(&dumps, what, flags)
        }
        Object::Class => {
            let dumps: Vec<_> = chosen.iter().flat_map(|id| gateway.classes(now, *id)).collect();
            tc::show_classes(&dumps, what, flags)
        }
        Object::Filter => {
            let parent = what.parent.unwrap_or(Handle::NONE);
            let dumps: Vec<_> = chosen.iter().filter_map(|id| gateway.filters(*id, parent).ok()).flatten().collect();
            tc::show_filters(&dumps, what, flags)
        }
    })
}

fn run_batch(face: &mut Face<'_>, text: &[u8], force: bool) -> Reply {
    let _ = (face, text, force);
    Reply::error(1, "tc: batches are being built\n")
}
