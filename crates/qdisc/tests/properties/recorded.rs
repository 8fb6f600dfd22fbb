//! The machine of the recorded runs, as far as one device and tc go: a link behind a tree, commands, time.

use std::fmt::Write as _;
use tidegate_classify::Shared;
use tidegate_packet::header::ethertype;
use tidegate_packet::{Dissector, Handle, Head, Jiffies, LinuxChange, Meta, Nanos, Pkt, Pool, Time};
use tidegate_policy::{Act, FilterOp, Op, SharedBlocks, TcError, Verb};
use tidegate_qdisc::{DeviceInfo, DropReason, Event, EventKind, EventRing, Shaper, Switches, XmitStatus};
use tidegate_recording::line::{pieces, plain};
use tidegate_recording::{DRAIN, RecordedLink, RecordedRandom, Recording, RowKind, SCRIPT_AT, at, ns};
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat, TcCommand, TcCommandLine};
use tidegate_syntax::{Device as Named, Env, TcVersion};

const POOL: usize = 1 << 17;
const EVENTS: usize = 1 << 16;
const LINK: &str = "link0";

/// The recording needs more of a machine than one device and tc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedsMore;

/// The result of a run, in the form of the recording's files.
pub(crate) struct Done {
    pub(crate) egress: String,
    pub(crate) drops: String,
    pub(crate) stats: String,
    pub(crate) filters: String,
    pub(crate) snapshot: String,
    pub(crate) random: RecordedRandom,
}

pub(crate) struct Machine {
    shaper: Shaper,
    pool: Pool,
    random: RecordedRandom,
    link: RecordedLink,
    tc: TcVersion,
    mtu: u32,
    busy_until: Option<Time>,
    egress: String,
    drops: String,
    snapshot: String,
    /// The exit code of the last command.
    code: u8,
    /// The script has `set +e`: it continues after a command that fails.
    goes_on: bool,
}

/// What a command prints.
#[derive(Default)]
struct Reply {
    code: u8,
    stdout: String,
    stderr: String,
}

fn device(link: &RecordedLink) -> DeviceInfo {
    let switches = Switches { linux: link.linux, no_bypass: true, ..Switches::default() };
    DeviceInfo {
        number: 0,
        max_frame: link.mtu + Head::ETHERNET as u32,
        tx_queue_len: link.tx_queue_len,
        tx_queues: 1,
        link_header: Head::ETHERNET as u32,
        queueless: false,
        jiffies: Jiffies { hz: 1000 },
        switches,
    }
}

impl Machine {
    pub(crate) fn new(recording: &Recording, tc: TcVersion) -> Machine {
        let link = recording.link;
        Machine {
            shaper: Shaper::new(device(&link), EventRing::new(EVENTS)),
            pool: Pool::new(POOL),
            random: recording.random.clone(),
            link,
            tc,
            mtu: link.mtu,
            busy_until: None,
            egress: String::from("time_ns,id,len,dsfield\n"),
            drops: String::new(),
            snapshot: String::new(),
            code: 0,
            goes_on: false,
        }
    }

    pub(crate) fn run(mut self, recording: &Recording, script: &str) -> Result<Done, NeedsMore> {
        self.shaper.late_timers(true);
        for line in script.lines() {
            self.line(at(SCRIPT_AT), line, true)?;
            if self.stopped() {
                break;
            }
        }
        self.shaper.late_timers(false);
        for row in &recording.rows {
            let now = at(row.time);
            self.until(now);
            match &row.what {
                RowKind::Command(line) => self.line(now, line, false)?,
                // A frame that the device cannot carry is refused before any qdisc sees it.
                RowKind::Packet(arrival) if arrival.meta.frame_len > self.mtu + Head::ETHERNET as u32 => {}
                RowKind::Packet(arrival) => {
                    let pkt =
                        self.pool.insert(arrival.meta.clone(), arrival.head.clone()).expect("there is room");
                    self.offer(now, pkt);
                }
            }
            self.note_drops();
        }
        let end = at(recording.rows.last().map_or(0, |row| row.time) + DRAIN);
        self.until(end);
        let mut show = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            self.tc(end, &words).map(|reply| reply.stdout)
        };
        let stats = show("-s -d qdisc show dev link0")? + &show("-s -d class show dev link0")?;
        let filters: Vec<String> = self
            .shaper
            .dump_qdiscs(LINK, end)
            .iter()
            .map(|dump| self.shaper_filters(end, dump.handle))
            .collect();
        let Machine { egress, drops, snapshot, random: draws, .. } = self;
        Ok(Done { egress, drops, stats, filters: filters.concat(), snapshot, random: draws })
    }

    fn shaper_filters(&mut self, now: Time, parent: Handle) -> String {
        self.count_actions(now);
        let dumps = self.shaper.dump_filters(now, LINK, parent).unwrap_or_default();
        let what = ShowWhat { parent: Some(parent), ..ShowWhat::on(Object::Filter, LINK) };
        tc::show_filters(&dumps, &what, &ShowFlags { tc: self.tc, ..ShowFlags::FULL })
    }

    // --- packets and time

    fn offer(&mut self, now: Time, pkt: Pkt) {
        self.pool.set_dissector(Dissector::default());
        self.pool.meta_mut(&pkt).came_in = 0;
        let offer = self.shaper.offer(now, &mut self.pool, &mut self.random, pkt);
        if offer != XmitStatus::Stopped {
            self.send(now);
        }
    }

    /// Lets time pass up to `end`, that moment included: the link's completions, hash keys, watchdogs.
    fn until(&mut self, end: Time) {
        loop {
            let watchdog = self.shaper.timeout();
            let due = self.shaper.perturb_due().at;
            let perturb = self.random.next_by_timer().filter(|_| due != Time::NEVER);
            let next = [self.busy_until, watchdog, perturb].into_iter().flatten().min();
            let Some(next) = next.filter(|time| *time <= end) else { return };
            if self.busy_until == Some(next) {
                self.busy_until = None;
                self.send(next);
            } else if perturb == Some(next) {
                self.shaper.perturb(next, &mut self.pool, &mut self.random);
            } else if self.shaper.fire(next) {
                self.send(next);
            }
            self.note_drops();
        }
    }

    fn send(&mut self, now: Time) {
        while self.busy_until.is_none() {
            let Some(pkt) = self.shaper.poll(now, &mut self.pool, &mut self.random) else { return };
            let meta = self.pool.meta(&pkt);
            let (&Meta { ident, frame_len, dsfield, .. }, rewritten) = (meta, meta.rewritten());
            let seen = match rewritten {
                true => read_by_listener(&self.pool.settle(&pkt).on_wire(), frame_len, ident),
                false => Some((ident, dsfield)),
            };
            if let Some((ident, dsfield)) = seen {
                let _ = writeln!(self.egress, "{},{ident},{frame_len},{dsfield}", ns(now));
            }
            self.pool.release(pkt);
            if self.link.rate > 0 {
                self.busy_until = Some(now + Nanos(self.link.frame_time(frame_len)));
            }
        }
    }

    fn note_drops(&mut self) {
        for Event { time, what, ident, len, dsfield, .. } in self.shaper.events() {
            // An acknowledgement left out was of use, and of some purged packets the kernel does not report.
            if !matches!(what, EventKind::Drop(DropReason::Superseded | DropReason::PurgedUnseen)) {
                let _ = writeln!(self.drops, "{},{ident},{len},{dsfield}", ns(time));
            }
        }
    }

    // --- commands

    /// Does the script end here?
    fn stopped(&self) -> bool {
        self.code != 0 && !self.goes_on
    }

    fn line(&mut self, now: Time, line: &str, stops: bool) -> Result<(), NeedsMore> {
        for piece in pieces(line).ok_or(NeedsMore)? {
            let Some((words, to)) = plain(&piece, self.code).ok_or(NeedsMore)? else { continue };
            let reply = match words[0].as_str() {
                "tc" => self.tc(now, &words[1..])?,
                "echo" => Reply { stdout: words[1..].join(" ") + "\n", ..Reply::default() },
                "true" | ":" => Reply::default(),
                "set" if words[1..] == ["+e"] || words[1..] == ["-e"] => {
                    self.goes_on = words[1] == "+e";
                    Reply::default()
                }
                _ => return Err(NeedsMore),
            };
            self.code = reply.code;
            if let Some(empties) = to.out {
                if empties {
                    self.snapshot.clear();
                }
                self.snapshot += &reply.stdout;
                if to.errors {
                    self.snapshot += &reply.stderr;
                }
            }
            if stops && self.stopped() {
                break;
            }
        }
        Ok(())
    }

    fn tc(&mut self, now: Time, words: &[String]) -> Result<Reply, NeedsMore> {
        let names = ["ifb0", "ifb1", LINK, "link1", "link2", "link3"];
        let devices =
            names.map(|name| Named { name: name.to_owned(), speed_mbit: Some(1000), ..Named::default() });
        let env = Env { devices: Some(devices.into()), tc: self.tc, ..Env::default() };
        match tc::parse(words, &env) {
            Err(refusal) => Ok(Reply { code: refusal.code, stderr: refusal.stderr, ..Reply::default() }),
            Ok(TcCommandLine { command, flags, stderr, .. }) => {
                let reply = self.carry_out(now, command, &flags)?;
                Ok(Reply { stderr: stderr + &reply.stderr, ..reply })
            }
        }
    }

    fn carry_out(&mut self, now: Time, command: TcCommand, flags: &ShowFlags) -> Result<Reply, NeedsMore> {
        let stdout = match command {
            TcCommand::Apply(op) => return self.apply(now, &op),
            TcCommand::Show(what) if what.dev.as_deref() == Some(LINK) && what.block == 0 => {
                match what.object {
                    Object::Qdisc => tc::show_qdiscs(&self.shaper.dump_qdiscs(LINK, now), &what, flags),
                    Object::Class => {
                        let flags = ShowFlags { json: false, ..*flags };
                        tc::show_classes(&self.shaper.list_classes(LINK, now), &what, &flags)
                    }
                    Object::Filter => {
                        self.count_actions(now);
                        let parent = what.parent.unwrap_or(Handle::NONE);
                        let dumps = self.shaper.dump_filters(now, LINK, parent).unwrap_or_default();
                        tc::show_filters(&dumps, &what, flags)
                    }
                }
            }
            _ => return Err(NeedsMore),
        };
        Ok(Reply { stdout, ..Reply::default() })
    }

    fn apply(&mut self, now: Time, op: &Op) -> Result<Reply, NeedsMore> {
        let of_htb = matches!(op, Op::Class(class) if class.kind.as_deref() == Some("htb"));
        let reaches = !of_htb || self.link.linux.has(LinuxChange::WarningsReach);
        Ok(match self.apply_op(now, op)? {
            // Before 6.3 HTB's warnings go to the kernel's log only.
            Ok(Some(warning)) if reaches => {
                Reply { stderr: format!("Warning: {warning}\n"), ..Reply::default() }
            }
            Ok(_) => Reply::default(),
            Err(error) => {
                let (stderr, code) = tc::refusal_text(op, &error);
                Reply { code, stderr, ..Reply::default() }
            }
        })
    }

    fn apply_op(&mut self, now: Time, op: &Op) -> Result<Result<Option<String>, TcError>, NeedsMore> {
        self.count_actions(now);
        let (shaper, pool, random) = (&mut self.shaper, &mut self.pool, &mut self.random);
        let done = match op {
            Op::Qdisc(op) if op.dev == LINK && op.blocks == SharedBlocks::default() => {
                shaper.qdisc_op(now, pool, random, op).map(|()| None)
            }
            Op::Class(op) if op.dev == LINK => shaper.class_op(now, pool, random, op),
            Op::Filter(op) if op.dev == LINK && op.block == 0 && stays_here(op) => {
                shaper.filter_op(now, pool, random, op).map(|()| None)
            }
            Op::Chain(op) if op.dev == LINK && op.block == 0 => {
                shaper.chain_op(now, pool, random, op).map(|()| None)
            }
            _ => return Err(NeedsMore),
        };
        if may_remove_filters(op) {
            self.with_shared(|_, shared| shared.actions.filters_may_be_gone(now));
        }
        Ok(done)
    }

    /// The actions of deleted filters go once time has passed.
    fn count_actions(&mut self, now: Time) {
        self.with_shared(|shaper, shared| {
            if shared.actions.must_count(now, true) {
                shared.count(|show| shaper.each_action(show));
            }
        });
    }

    fn with_shared(&mut self, work: impl FnOnce(&mut Shaper, &mut Shared)) {
        let mut shared = Box::default();
        self.shaper.swap_shared(&mut shared);
        work(&mut self.shaper, &mut shared);
        self.shaper.swap_shared(&mut shared);
    }
}

/// The number and the DS field of a frame whose bytes were rewritten: the recordings' listener knows only
/// frames of IP, and takes IPv6's number from their last bytes, which are kept of short ones.
fn read_by_listener(head: &Head, frame_len: u32, ident: u32) -> Option<(u32, u8)> {
    let id = match (head.frame_ethertype(), head.network(), head.frame()) {
        (ethertype::IPV4, [_, _, _, _, high, low, ..], _) => u32::from(*high) << 8 | u32::from(*low),
        (ethertype::IPV6, _, [.., high, low]) if head.frame().len() == frame_len as usize => {
            u32::from(*high) << 8 | u32::from(*low)
        }
        (ethertype::IPV6, ..) => ident,
        _ => return None,
    };
    Some((id, head.frame_dsfield()))
}

/// Needs a filter no other device and no connections?
fn stays_here(op: &FilterOp) -> bool {
    let matches = |act: &Act| matches!(act, Act::Mirred(_) | Act::Ct(_) | Act::Connmark(_) | Act::Ctinfo(_));
    let indev = op.params.clone().is_some_and(|mut params| params.indev_mut().is_some());
    !indev && !op.actions.iter().any(|action| matches(&action.act))
}

/// Can an operation delete or replace a filter?
fn may_remove_filters(op: &Op) -> bool {
    match op {
        Op::Filter(op) => op.verb != Verb::Add,
        Op::Chain(op) => !op.add,
        Op::Class(op) => op.verb == Verb::Delete,
        _ => matches!(op, Op::Qdisc(_)),
    }
}
