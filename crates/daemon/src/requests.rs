//! What a running daemon answers: its state, its trees as tc lists them, packets of a class; and what it
//! changes.

use crate::counter::Counter;
use crate::machine::Wanted;
use crate::names::{names_from_json, names_on, names_to_json};
use crate::options::{DaemonOptions, PacketIoBackend};
use crate::words::apply_command;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::{PoisonError, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_dataplane::daemon::control::{ReplyWriter, RequestHandler};
use tidegate_dataplane::daemon::{DaemonContext, DaemonGone};
use tidegate_dataplane::engine::{Captured, ClassSeen, EngineStats, PacketOutcome, link_rate};
use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_loader::ClassNames;
use tidegate_packet::{Handle, Rate, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_shims::Machine;
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat, TcCommand};
use tidegate_sys::process;
use tidegate_sys::service::Peer;

/// Packets that wait for a capture of a class.
const WAITING: usize = 4096;
/// How long nothing may come before the client of a capture is checked.
const PATIENCE: Duration = Duration::from_millis(500);

impl RequestHandler for Counter {
    fn answer(&self, request: &Value, who: Peer, tell: &mut ReplyWriter<'_>) -> io::Result<()> {
        let answer = match request["ask"].as_str() {
            Some("status") => self.status(),
            Some("snapshot") => self.snapshot(),
            Some("tc") => self.tc(request, who),
            Some("capture") => return self.capture(request, who, tell),
            Some("reload") => Ok(self.reload(request, who)),
            Some("drift") => Ok(self.drift()),
            Some("policy") => Ok(self.policy(who)),
            Some("stop") => self.stop(who),
            _ => Ok(refusal(
                "this is no request",
                "`ask` is one of status, snapshot, drift, tc, capture, policy, reload, stop",
            )),
        };
        tell(&answer.unwrap_or_else(|DaemonGone| ending()))
    }
}

fn ending() -> Value {
    refusal("the daemon is ending", "start it again as it was started")
}

fn refusal(error: &str, remedy: &str) -> Value {
    json!({"error": error, "remedy": remedy})
}

/// When the engine's clock was at 0, in nanoseconds of Unix time by the present wall clock.
fn epoch(now: Time) -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX).saturating_sub(now.0)
}

/// Changes are for root, and for the user who runs the daemon.
fn may_change(who: Peer) -> bool {
    who.uid == 0 || who.uid == process::effective_uid()
}

fn not_you(who: Peer) -> Value {
    refusal(
        &format!("user {} may look, not change", who.uid),
        "ask as root, or as the user who runs the daemon",
    )
}

impl Counter {
    fn options(&self) -> DaemonOptions {
        // A thread that panicked while it held the lock did not change the value.
        self.options.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn packet_io(&self) -> &'static str {
        *self.packet_io.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> ClassNames {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the policy calls a class of a device.
    fn name(&self, class: &(String, Handle)) -> Option<String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).get(class).cloned()
    }

    fn wanted(&self) -> Wanted {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why packets cannot come by the backend that is requested; `None`: they do already, or it is all the
    /// same.
    fn other_backend(&self, wanted: &str) -> Option<String> {
        let open = self.packet_io();
        let same = wanted == open || wanted == PacketIoBackend::Auto.name();
        (!same).then(|| {
            format!("the daemon takes packets by {open} and cannot change to {wanted} while it runs")
        })
    }

    fn status(&self) -> Result<Value, DaemonGone> {
        let snapshot = self.command_sender.run(|running| {
            let state = running.state().clone();
            (
                state,
                running.engine.counts(),
                running.engine.held_packets(),
                running.engine.now(),
                running.packet_io_stats(),
            )
        })?;
        let (state, counts, held, now, io) = snapshot;
        let (wanted, options) = (self.wanted(), self.options());
        let spots = wanted
            .spots
            .iter()
            .map(|point| json!({"device": point.dev, "direction": direction(point.direction)}));
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "backend": "user",
            "packet_io": self.packet_io(),
            "policy": options.files,
            "places": spots.collect::<Vec<_>>(),
            "running_ns": now.0 - crate::machine::START.0,
            "epoch_ns": epoch(now),
            "held_packets": held,
            "last_error": state.error,
            "openings": state.openings,
            "starts": self.starts,
            "realtime": options.realtime,
            "names": names_to_json(&self.names()),
            "counts": counted(&counts),
            "packet_io_counts": {
                "overruns": io.overruns, "malformed": io.malformed, "unchanged": io.unchanged, "refused": io.full,
            },
        }))
    }

    fn snapshot(&self) -> Result<Value, DaemonGone> {
        let (counts, now, devices) = self.command_sender.run(look)?;
        let names = self.names();
        Ok(json!({
            "version": 1,
            "at_ns": now.0,
            "since_ns": crate::machine::START.0,
            "epoch_ns": epoch(now),
            "backend": "user",
            "packet_io": self.packet_io(),
            "counts": counted(&counts),
            "devices": devices.iter().map(|seen| seen.to_json(&names)).collect::<Vec<_>>(),
        }))
    }

    fn tc(&self, request: &Value, who: Peer) -> Result<Value, DaemonGone> {
        let words: Option<Vec<String>> = request["words"]
            .as_array()
            .map(|words| words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect());
        let Some(words) = words else {
            return Ok(refusal("no words of tc", "\"words\": [\"-s\", \"qdisc\", \"show\"]"));
        };
        let input = request["input"].as_str().map(|text| text.as_bytes().to_vec());
        if changes(&words) && !may_change(who) {
            return Ok(not_you(who));
        }
        let reply = self.command_sender.run(move |running| {
            running.visit(|gateway, world| {
                with_machine(gateway, world, |shim| shim.tc(&words, input.as_deref()))
            })
        })?;
        Ok(match reply {
            Ok(reply) => json!({
                "code": reply.code,
                "stdout": String::from_utf8_lossy(&reply.stdout),
                "stderr": String::from_utf8_lossy(&reply.stderr),
            }),
            Err(error) => refusal(
                &format!("the packet path is broken: {error}"),
                "it is opened again when its device is back",
            ),
        })
    }

    fn capture(&self, request: &Value, who: Peer, tell: &mut ReplyWriter<'_>) -> io::Result<()> {
        // What packets carry is not everyone's business.
        if !may_change(who) {
            return tell(&not_you(who));
        }
        let device =
            request["device"].as_str().map_or_else(|| self.wanted().name().to_owned(), str::to_owned);
        let class = match request["class"].as_str() {
            None => Handle::NONE,
            Some("root") => Handle::ROOT,
            Some(text) => match tidegate_syntax::units::parse_classid(text) {
                Some(handle) => handle,
                None => {
                    return tell(&refusal(
                        &format!("`{text}` is not a class"),
                        "say it as tc does: 1:10, or root",
                    ));
                }
            },
        };
        let (to, captured) = mpsc::sync_channel(WAITING);
        let on = device.clone();
        let begun = self.command_sender.run(move |running| {
            let found = running.visit(|gateway, _| gateway.device(&device)).ok().flatten();
            match found {
                Some(found) => {
                    running.engine.watch().capture(found, class, to);
                    None
                }
                None => Some(device),
            }
        });
        match begun {
            Err(DaemonGone) => return tell(&ending()),
            Ok(Some(device)) => {
                return tell(&refusal(
                    &format!("nothing is queued on `{device}` here"),
                    "`tidegate status` lists the devices",
                ));
            }
            Ok(None) => {}
        }
        loop {
            match captured.recv_timeout(PATIENCE) {
                Ok(packet) => {
                    let mut document = packet_json(&packet);
                    // A reload may give the class another name meanwhile.
                    if let Some(name) = self.name(&(on.clone(), packet.class)) {
                        document["name"] = json!(name);
                    }
                    tell(&document)?;
                }
                // An empty object means that nothing arrived; writing it also finds out whether the client is
                // still there.
                Err(mpsc::RecvTimeoutError::Timeout) => tell(&json!({}))?,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn reload(&self, request: &Value, who: Peer) -> Value {
        if !may_change(who) {
            return not_you(who);
        }
        let texts = |value: &Value| -> Option<Vec<String>> {
            Some(value.as_array()?.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect())
        };
        let Some(commands) = request["commands"].as_array() else {
            return refusal("no commands", "\"commands\": [[\"tc\", \"qdisc\", \"add\", …], …]");
        };
        let before = self.options();
        let options = DaemonOptions {
            files: texts(&request["files"])
                .map_or(before.files.clone(), |files| files.into_iter().map(Into::into).collect()),
            args: texts(&request["args"]).unwrap_or(before.args.clone()),
            dev: request["dev"].as_str().map(str::to_owned).or(before.dev.clone()),
            ..before
        };
        if let Some(why) = request["packet_io"].as_str().and_then(|backend| self.other_backend(backend)) {
            return refusal(&why, &self.afresh(request));
        }
        if request["realtime"] == true && !before.realtime {
            let why =
                "the daemon runs without real-time scheduling, and has dropped the privilege to change that";
            return refusal(why, &self.afresh(request));
        }
        let commands: Vec<Vec<String>> = commands.iter().filter_map(texts).collect();
        let done = crate::reload::operations(&commands)
            .and_then(|log| crate::policy::wanted(&options, &log))
            .and_then(|mut wanted| {
                if options.packet_io == PacketIoBackend::Tun {
                    // What passes it passes it in both directions, whatever the policy.
                    wanted.spots = self.wanted().spots;
                }
                crate::reload::reload(self, &wanted)
            });
        match done {
            Ok(document) => {
                *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
                *self.commands.lock().unwrap_or_else(PoisonError::into_inner) = commands;
                *self.names.lock().unwrap_or_else(PoisonError::into_inner) =
                    names_from_json(&request["names"]);
                document
            }
            Err(error) => refusal(&format!("{error:#}"), "what ran before still runs"),
        }
    }

    /// What to do where a request can be met by another daemon only.
    fn afresh(&self, request: &Value) -> String {
        let files: Vec<String> = request["files"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        format!(
            "nothing was changed; to have it so: `tidegate down {}`, then `{}` (packets pass unqueued in \
            between)",
            self.wanted().name(),
            apply_command(&files, request)
        )
    }

    /// How what runs differs from what was given.
    fn drift(&self) -> Value {
        match crate::reload::drift(self) {
            Ok(lines) => json!({"drift": lines}),
            Err(error) => refusal(&format!("{error:#}"), "try again"),
        }
    }

    /// The running policy, for running it again later.
    fn policy(&self, who: Peer) -> Value {
        if !may_change(who) {
            return not_you(who);
        }
        let options = self.options();
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone();
        json!({
            "files": options.files, "args": options.args, "dev": options.dev, "commands": commands, "packet_io": options.packet_io.name(),
            "realtime": options.realtime, "names": names_to_json(&self.names()),
        })
    }

    fn stop(&self, who: Peer) -> Result<Value, DaemonGone> {
        if !may_change(who) {
            return Ok(not_you(who));
        }
        self.command_sender.run(|running| running.end())?;
        Ok(json!({"stopping": true}))
    }
}

/// Has the shims of the tools work with a machine that is running.
pub(crate) fn with_machine<R>(
    gateway: &mut Gateway,
    world: GatewayContext<'_>,
    work: impl FnOnce(&mut tidegate_shims::ToolShim<'_>) -> R,
) -> R {
    let mut machine = Machine::new([], DeviceSpec::default());
    machine.distributions = tidegate_loader::distributions::installed();
    machine.gateway = std::mem::take(gateway);
    machine.now = world.now;
    let done = work(&mut machine.shim(world.pool, world.random));
    *gateway = machine.gateway;
    done
}

/// Do these words of tc change anything?
fn changes(words: &[String]) -> bool {
    let shows = |command: &TcCommand| {
        matches!(
            command,
            TcCommand::Show(_)
                | TcCommand::ShowActions(_)
                | TcCommand::GetFilter(_)
                | TcCommand::ShowChains(_)
                | TcCommand::Monitor
                | TcCommand::Help(_)
                | TcCommand::Version
        )
    };
    !tc::parse(words, &Env::default()).is_ok_and(|parsed| shows(&parsed.command))
}

fn direction(direction: tidegate_dataplane::packet_io::TrafficDirection) -> &'static str {
    match direction {
        tidegate_dataplane::packet_io::TrafficDirection::Egress => "egress",
        tidegate_dataplane::packet_io::TrafficDirection::Ingress => "ingress",
    }
}

fn counted(counts: &EngineStats) -> Value {
    let EngineStats { received, passed, fast_path, dropped, no_room, full, nowhere, latest, late } = counts;
    json!({"received": received, "passed": passed, "fast_path": fast_path, "dropped": dropped, "no_room": no_room, "full": full, "nowhere": nowhere, "late": late, "latest_ns": latest})
}

/// A device as it is now.
struct Seen {
    name: String,
    qdiscs: Vec<QdiscDump>,
    classes: Vec<ClassDump>,
    rate: Option<Rate>,
    seen: Vec<(Handle, ClassSeen)>,
    /// How long the packet has waited that waits longest, by class, in ns.
    oldest: BTreeMap<Handle, u64>,
}

fn look(running: &mut DaemonContext<'_>) -> (EngineStats, Time, Vec<Seen>) {
    let dumps = running.visit(|gateway, GatewayContext { now, .. }| {
        let devices = gateway.devices();
        let one = |device| {
            let (qdiscs, classes) = (gateway.qdiscs(now, device), gateway.classes(now, device));
            (device, gateway.name(device).to_owned(), qdiscs, classes)
        };
        devices.map(one).collect::<Vec<_>>()
    });
    let engine = &mut *running.engine;
    let (counts, now, waiting) = (engine.counts(), engine.now(), engine.oldest());
    let watch = engine.watch();
    let seen = |(device, name, qdiscs, classes): (_, _, Vec<QdiscDump>, Vec<ClassDump>)| Seen {
        name,
        rate: link_rate(&qdiscs, &classes),
        seen: watch.on(device).map(|(class, seen)| (class, seen.clone())).collect(),
        oldest: waiting
            .iter()
            .filter(|((on, _), _)| *on == device)
            .map(|((_, class), came)| (*class, now.0.saturating_sub(came.0)))
            .collect(),
        qdiscs,
        classes,
    };
    (counts, now, dumps.unwrap_or_default().into_iter().map(seen).collect())
}

impl Seen {
    fn to_json(&self, names: &ClassNames) -> Value {
        let class = |class: Handle| if class == Handle::ROOT { "root".to_owned() } else { class.to_string() };
        // A class may hold packets of which none has left yet.
        let known = |class: &Handle| self.seen.iter().any(|(of, _)| of == class);
        let unseen =
            self.oldest.keys().filter(|class| !known(class)).map(|class| (*class, ClassSeen::default()));
        let unseen: Vec<(Handle, ClassSeen)> = unseen.collect();
        let seen = self.seen.iter().chain(&unseen).map(|(of, seen)| {
            let sojourn: Vec<_> = seen.sojourn.buckets().collect();
            json!({
                "class": class(*of),
                "marked": seen.marked,
                "dropped": seen.dropped,
                "oldest_ns": self.oldest.get(of),
                "sojourn_ns": sojourn,
                "sojourn_sum_ns": seen.sojourn.total(),
            })
        });
        let mut document = device_snapshot(&self.name, self.rate, &self.qdiscs, &self.classes);
        document["seen"] = seen.collect();
        document["names"] = names_on(names, &self.name);
        document
    }
}

/// A device of a snapshot: what its qdiscs let through, and tc's listings.
pub fn device_snapshot(name: &str, rate: Option<Rate>, qdiscs: &[QdiscDump], classes: &[ClassDump]) -> Value {
    let flags = ShowFlags { json: true, stats: true, ..ShowFlags::FULL };
    let on = |object| ShowWhat::on(object, name);
    let listed = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_else(|_| json!([]));
    json!({
        "name": name,
        "link_rate_bps": rate.map(Rate::as_bits),
        "qdiscs": listed(tc::show_qdiscs(qdiscs, &on(Object::Qdisc), &flags)),
        "classes": listed(tc::show_classes(classes, &on(Object::Class), &flags)),
    })
}

fn packet_json(packet: &Captured) -> Value {
    let outcome = match packet.outcome {
        PacketOutcome::Left { marked: false } => "left",
        PacketOutcome::Left { marked: true } => "marked",
        PacketOutcome::Dropped => "dropped",
    };
    let front: String = packet.front.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "came_ns": packet.came.0,
        "left_ns": packet.left.0,
        "class": if packet.class == Handle::ROOT { "root".to_owned() } else { packet.class.to_string() },
        "qdisc": packet.qdisc.to_string(),
        "outcome": outcome,
        "len": packet.len,
        "front": front,
    })
}
