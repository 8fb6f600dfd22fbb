//! tc, answered.

use super::caveat::{caveat, of_speed};
use super::explain::explain;
use crate::batch;
use crate::call::Reply;
use crate::shim::{ToolShim, refused};
use tidegate_packet::Handle;
use tidegate_policy::dump::FilterDump;
use tidegate_policy::{Errno, Kind, Op, QdiscOp, TcError, Verb};
use tidegate_syntax::Refusal;
use tidegate_syntax::TcVersion;
use tidegate_syntax::tc::{
    self, GetFilter, Object, ShowActions, ShowChains, ShowWhat, TcCommand, TcCommandLine,
};

/// `tc` with these words; `stdin` is the text of a batch.
pub(super) fn answer(shim: &mut ToolShim<'_>, words: &[String], stdin: Option<&[u8]>) -> Reply {
    let words = &shim.machine.devices_meant(words);
    shim.machine.grow(words);
    match tc::parse(words, &shim.machine.env()) {
        Err(refusal) => not_read(shim, words, refusal),
        Ok(TcCommandLine { command: TcCommand::Batch { file, force }, flags, .. }) => {
            run_batch(shim, (&file, stdin.unwrap_or_default()), flags, force)
        }
        Ok(parsed) => {
            let plain: Vec<String> = words.iter().skip_while(|word| word.starts_with('-')).cloned().collect();
            one(shim, parsed, &plain)
        }
    }
}

/// The reply to words that tc refuses itself, or tidegate in its place.
fn not_read(shim: &mut ToolShim<'_>, words: &[String], refusal: Refusal) -> Reply {
    let reply = refused(shim, "tc", refusal);
    if reply.is_ours() {
        shim.machine.missing.note(words);
    }
    reply
}

/// One command; `words` are what to write for it again.
fn one(shim: &mut ToolShim<'_>, parsed: TcCommandLine, words: &[String]) -> Reply {
    let mut stderr = parsed.stderr.clone().into_bytes();
    let reply = carry_out(shim, parsed, words);
    stderr.extend(reply.stderr);
    Reply { stderr, ..reply }
}

fn carry_out(shim: &mut ToolShim<'_>, parsed: TcCommandLine, words: &[String]) -> Reply {
    match parsed.command {
        TcCommand::Apply(op) => {
            if let Some(refused) = not_supported(shim, &op) {
                return refused;
            }
            match shim.apply(op.clone()) {
                Ok(warning) => {
                    shim.machine.missing.made(&op);
                    forget_default(shim, &op);
                    shim.did("tc", words);
                    let mut reply = Reply::ok();
                    if let Some(warning) = warning {
                        // On older kernels HTB's go to the kernel's log only; those of others always come
                        // back.
                        let of_htb = matches!(&op, Op::Class(class) if class.kind.as_deref() == Some("htb"));
                        if shim.machine.warns() || !of_htb {
                            reply.stderr = format!("Warning: {warning}\n").into_bytes();
                        }
                        // In the log it begins otherwise (6.1 was asked).
                        shim.machine.kernel_log.push(match warning.strip_prefix("sch_htb: ") {
                            Some(text) => format!("HTB: {text}"),
                            None => warning,
                        });
                    }
                    let machine = &*shim.machine;
                    let caveats = caveat(&op, &machine.gateway, &machine.classes_made)
                        .into_iter()
                        .chain(of_speed(&op, words, &machine.gateway));
                    for caveat in caveats.filter(|_| machine.grows) {
                        reply.stderr.extend(format!("tidegate: warning: {caveat}\n").into_bytes());
                    }
                    reply
                }
                Err(error) => {
                    if let Some(ours) = shim.machine.missing.refused(&op).filter(|_| shim.machine.grows) {
                        return ours;
                    }
                    let (mut stderr, code) = tc::refusal_text(&op, &error);
                    if let Some(why) = explain(shim.machine, &op, &error).filter(|_| shim.machine.grows) {
                        stderr.push_str(&format!("tc: {why}\n"));
                    }
                    Reply::error(code, stderr)
                }
            }
        }
        TcCommand::Show(what) => show(shim, &what, &parsed.flags),
        TcCommand::GetFilter(get) => get_filter(shim, &get, &parsed.flags),
        TcCommand::ShowChains(what) => show_chains(shim, &what, &parsed.flags),
        TcCommand::ShowActions(what) => show_actions(shim, &what, &parsed.flags),
        TcCommand::Monitor => Reply { waits: true, ..Reply::error(0, MONITOR) },
        TcCommand::Help(text) => Reply::error(0, text),
        TcCommand::Version => Reply::text(tc::VERSION),
        TcCommand::Batch { .. } => Reply::error(1, "tc: a batch cannot call a batch\n"),
    }
}

/// The refusal of what Linux accepts and the model cannot play.
fn not_supported(shim: &ToolShim<'_>, op: &Op) -> Option<Reply> {
    let Op::Qdisc(op) = op else { return None };
    let gateway = &shim.machine.gateway;
    let is_noqueue = op.kind.as_deref() == Some(Kind::Noqueue.name()) && op.parent == Handle::ROOT;
    let on_card = gateway.device(&op.dev).is_some_and(|id| !gateway.spec(id).queueless);
    let refused = is_noqueue && on_card && op.verb != Verb::Delete;
    refused.then(|| {
        let dev = &op.dev;
        Reply::error(
            1,
            format!(
                "tidegate: noqueue on {dev} is not supported\n\
                tc: Without a queue {dev} drops what it cannot send at once, and how much that is depends on the \
                card. For a short queue use pfifo with a small limit; devices made in software (dummy, veth, \
                bridges, tunnels) take noqueue.\n"
            ),
        )
    })
}

/// A device that is down has no qdisc when its root is deleted: it gets its default one when it comes up
/// again.
fn forget_default(shim: &mut ToolShim<'_>, op: &Op) {
    let Op::Qdisc(QdiscOp { verb: Verb::Delete, parent: Handle::ROOT, dev, .. }) = op else { return };
    if let Some(link) = shim.machine.host.links.get_mut(dev).filter(|link| !link.up) {
        link.has_default = false;
    }
}

/// What there is instead of events.
const MONITOR: &str =
    "tidegate: tc monitor prints no events here; it waits until it is killed or the script ends\n";

fn show(shim: &mut ToolShim<'_>, what: &ShowWhat, flags: &tc::ShowFlags) -> Reply {
    let machine = &mut *shim.machine;
    let (now, gateway) = (machine.now, &mut machine.gateway);
    let chosen: Vec<_> = match &what.dev {
        Some(name) => gateway.device(name).into_iter().collect(),
        None => gateway.devices().collect(),
    };
    Reply::text(match what.object {
        Object::Qdisc => {
            let links = &machine.host.links;
            let mut dumps: Vec<_> = chosen.iter().flat_map(|id| gateway.listed_qdiscs(now, *id)).collect();
            // Without a default one a device has none but what it was given.
            dumps.retain(|dump| {
                let is_default = dump.handle.is_none() && dump.parent == Handle::ROOT;
                !is_default || links.get(&dump.dev).is_none_or(|link| link.has_default)
            });
            tc::show_qdiscs(&dumps, what, flags)
        }
        Object::Class => {
            let dumps: Vec<_> = chosen.iter().flat_map(|id| gateway.listed_classes(now, *id)).collect();
            let newer = machine.classes_in_json || machine.tc > TcVersion::V6_1;
            tc::show_classes(&dumps, what, &tc::ShowFlags { json: flags.json && newer, ..*flags })
        }
        Object::Filter if what.block != 0 => match gateway.block_filters(now, what.block) {
            Ok(dumps) => return listed(&dumps, what, flags),
            Err(_) => return no_block(what.block),
        },
        Object::Filter => {
            let parent = what.parent.unwrap_or(Handle::NONE);
            let dumps: Vec<_> =
                chosen.iter().filter_map(|id| gateway.filters(now, *id, parent).ok()).flatten().collect();
            return listed(&dumps, what, flags);
        }
    })
}

/// Filters; with `-br` the kernel may break the listing off.
fn listed(dumps: &[FilterDump], what: &ShowWhat, flags: &tc::ShowFlags) -> Reply {
    if !flags.brief {
        return Reply::text(tc::show_filters(dumps, what, flags));
    }
    match tc::show_filters_brief(dumps, what, flags) {
        (text, false) => Reply::text(text),
        (text, true) => {
            let failed = Reply::error(1, "Error: Buffer too small for object.\nDump terminated\n");
            Reply { stdout: text.into(), ..failed }
        }
    }
}

/// tc looks for the block before it lists.
fn no_block(number: u32) -> Reply {
    Reply::error(1, format!("Cannot find block \"{number}\"\n"))
}

/// tc's message where the kernel refuses a request for filters.
fn not_answered(error: &TcError) -> Reply {
    Reply::error(2, format!("{error}\nWe have an error talking to the kernel\n"))
}

fn get_filter(shim: &mut ToolShim<'_>, get: &GetFilter, flags: &tc::ShowFlags) -> Reply {
    let (now, gateway) = (shim.machine.now, &mut shim.machine.gateway);
    let dumps = match gateway.device(&get.dev) {
        _ if get.block != 0 => gateway.block_filters(now, get.block),
        Some(device) if gateway.block_at(device, get.parent) != 0 => {
            Err(TcError::new(Errno::Inval, IN_BLOCK))
        }
        // A parent that can have no filters has none to list, and is refused here.
        Some(device) => {
            gateway.chains(device, get.parent).and_then(|_| gateway.filters(now, device, get.parent))
        }
        None => Ok(Vec::new()),
    };
    let dev = (get.block == 0).then(|| get.dev.clone());
    let what = ShowWhat { dev, block: get.block, ..ShowWhat::of(Object::Filter) };
    match dumps.and_then(|dumps| tc::find_filter(dumps, get)) {
        Ok(dump) => Reply::text(tc::show_filters(&[dump], &what, flags)),
        Err(error) => not_answered(&error),
    }
}

const IN_BLOCK: &str = "This filter block is shared. Please use the block index to manipulate the filters";

fn show_chains(shim: &mut ToolShim<'_>, what: &ShowChains, flags: &tc::ShowFlags) -> Reply {
    let gateway = &mut shim.machine.gateway;
    let device = gateway.device(&what.dev);
    if what.block != 0 && what.only.is_none() && !gateway.has_block(what.block) {
        return no_block(what.block);
    }
    // Listed with the number of their block, whether that or a device's hook was named.
    let block = device.map_or(what.block, |device| gateway.block_at(device, what.parent));
    let found = match device {
        _ if what.block != 0 => Some(gateway.block_chains(what.block).map(|chains| (Handle::NONE, chains))),
        Some(_) if block != 0 && what.only.is_some() => Some(Err(TcError::new(Errno::Inval, IN_BLOCK))),
        Some(device) => Some(gateway.chains(device, what.parent)),
        None => None,
    };
    match (found, what.only) {
        (None, _) => Reply::ok(),
        (Some(Ok((holder, chains))), None) => {
            Reply::text(tc::show_chains(&chains, holder, block, what, flags))
        }
        (Some(Err(_)), None) => Reply::text(tc::show_chains(&[], what.parent, block, what, flags)),
        (Some(Ok((holder, chains))), Some(only)) if chains.contains(&only) => {
            Reply::text(tc::show_chains(&[only], holder, block, what, flags))
        }
        (Some(Ok(_)), Some(_)) => {
            not_answered(&TcError::new(Errno::Inval, "Cannot find specified filter chain"))
        }
        (Some(Err(error)), Some(_)) => not_answered(&error),
    }
}

fn show_actions(shim: &mut ToolShim<'_>, what: &ShowActions, flags: &tc::ShowFlags) -> Reply {
    let (now, gateway) = (shim.machine.now, &mut shim.machine.gateway);
    let dumps = match what {
        ShowActions::Kind(kind) => Ok(gateway.actions(now, kind)),
        ShowActions::Numbered(ids) => gateway.numbered_actions(now, ids),
    };
    match dumps {
        Ok(dumps) => Reply::text(tc::show_actions(&dumps, what, flags)),
        Err(error) => {
            let (stderr, code) = tc::action_not_found(&error);
            Reply::error(code, stderr)
        }
    }
}

/// The real tc would not come to the lines behind it.
const ENDLESS: &str = "tidegate: tc monitor in a batch would wait for ever: leave it out\n";

fn run_batch(shim: &mut ToolShim<'_>, batch: (&str, &[u8]), flags: tc::ShowFlags, force: bool) -> Reply {
    // One line follows the other at once: too soon for the kernel to have released what a deleted filter
    // held.
    let deferred = shim.machine.gateway.defer_releases(true);
    let reply = batch::run(shim, "tc", batch, force, |shim, line| {
        shim.line = Some(line.number);
        let args = shim.machine.devices_meant(&line.args);
        shim.machine.grow(&args);
        match tc::parse_line(&args, flags, &shim.machine.env()) {
            Ok(TcCommandLine { command: TcCommand::Monitor, .. }) => (Reply::error(1, ENDLESS), true),
            Ok(parsed) => (one(shim, parsed, &args), false),
            Err(refusal) => {
                let ends = tidegate_syntax::batch::ends_all(&refusal);
                (not_read(shim, &args, refusal), ends)
            }
        }
    });
    shim.line = None;
    shim.machine.gateway.defer_releases(deferred);
    reply
}
