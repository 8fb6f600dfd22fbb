//! The run itself: arrivals, commands, watchdogs and the link, in the order of their times.

use super::commands::Commands;
use super::error::ReplayError;
use super::lives::RecordedPackets;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tidegate_gateway::{DeviceId, DropReason, Event, EventKind, Gateway};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Head, Meta, Nanos, Pkt, Pool, Time};
use tidegate_recording::{
    DRAIN, RandomError, RecordedLink, RecordedRandom, Recording, RowKind, SCRIPT_AT, at, ns,
};
use tidegate_shims::Machine;

/// Packets that may be in flight at once.
const POOL: usize = 1 << 20;

/// Carries out a recording again: its script, then packets and commands in the order of their times.
///
/// # Errors
/// The machine has no device `link0`, too many packets are in flight, or commands cannot be carried out.
pub fn replay(
    recording: &Recording,
    machine: Machine,
    commands: &mut dyn Commands,
) -> Result<ReplayedRun, ReplayError> {
    Run::new(recording, machine, commands)?.finish()
}

/// A run in flight.
pub(crate) struct Run<'r> {
    pub(crate) recording: &'r Recording,
    pub(crate) machine: Machine,
    pub(crate) device: DeviceId,
    /// The machine's other devices.
    pub(crate) beside: Vec<DeviceId>,
    commands: &'r mut dyn Commands,
    pub(crate) pool: Pool,
    random: RecordedRandom,
    /// When the link is free again; `None` = it is free.
    busy_until: Option<Time>,
    egress: String,
    /// The frames themselves, where the recording has them.
    frames: Option<String>,
    drops: String,
    counts: BTreeMap<&'static str, u64>,
    lives: RecordedPackets,
}

/// A run that is over.
pub struct ReplayedRun {
    /// `egress.csv`: what left the link, when.
    pub egress: String,
    /// `frames.csv`: the frames themselves, where the recording has them.
    pub frames: Option<String>,
    /// `drops.csv`: what was dropped, when, and where in the kernel.
    pub drops: String,
    /// `stats.txt`: what tc lists of qdiscs and classes at the end.
    pub stats: String,
    /// `filters.txt`: what tc lists of filters at the end.
    pub filters: String,
    /// The outcome of each packet.
    pub lives: RecordedPackets,
    random: RecordedRandom,
    counts: BTreeMap<&'static str, u64>,
}

impl<'r> Run<'r> {
    pub(crate) fn new(
        recording: &'r Recording,
        machine: Machine,
        commands: &'r mut dyn Commands,
    ) -> Result<Run<'r>, ReplayError> {
        let device = machine.gateway.device("link0").ok_or(ReplayError::NoDevice)?;
        Ok(Run {
            recording,
            machine,
            device,
            beside: Vec::new(),
            commands,
            pool: Pool::new(POOL),
            random: recording.random.clone(),
            busy_until: None,
            egress: String::from("time_ns,id,len,dsfield\n"),
            frames: recording.has_frames.then(|| String::from("time_ns,len,octets\n")),
            drops: String::from("time_ns,id,len,dsfield,where\n"),
            counts: BTreeMap::new(),
            lives: RecordedPackets::default(),
        })
    }

    pub(crate) fn finish(mut self) -> Result<ReplayedRun, ReplayError> {
        self.run_script()?;
        let recording = self.recording;
        for row in &recording.rows {
            self.until(at(row.time))?;
            let now = at(row.time);
            match &row.what {
                RowKind::Command(command) => self.command(now, command)?,
                // A frame that the device cannot carry is refused before any qdisc sees it.
                RowKind::Packet(arrival) if arrival.meta.frame_len > self.longest_frame() => {}
                RowKind::Packet(arrival) => {
                    let pkt = self
                        .pool
                        .insert(arrival.meta.clone(), arrival.head.clone())
                        .ok_or(ReplayError::TooManyPackets)?;
                    *self.counts.entry("arrivals").or_default() += 1;
                    let meta = &arrival.meta;
                    self.lives.arrived(&arrival.flow, meta.ident, meta.frame_len, meta.dsfield, now);
                    self.arrive(now, pkt);
                }
            }
            self.note_drops();
        }
        let last = recording.rows.last().map_or(0, |row| row.time);
        let end = at(last + DRAIN);
        self.until(end)?;
        self.machine.now = end;
        let stats = self.show(&["-s", "-d", "qdisc", "show", "dev", "link0"])
            + &self.show(&["-s", "-d", "class", "show", "dev", "link0"]);
        let filters = self.filters(end);
        Ok(ReplayedRun {
            egress: self.egress,
            frames: self.frames,
            drops: self.drops,
            stats,
            filters,
            random: self.random,
            counts: self.counts,
            lives: self.lives,
        })
    }

    fn run_script(&mut self) -> Result<(), ReplayError> {
        self.machine.now = at(SCRIPT_AT);
        self.machine.gateway.late_timers(true);
        let (pool, random) = (&mut self.pool, &mut self.random);
        self.commands.script(&mut self.machine.shim(pool, random)).map_err(ReplayError::Commands)?;
        self.machine.gateway.late_timers(false);
        self.look_around();
        Ok(())
    }

    fn command(&mut self, now: Time, command: &str) -> Result<(), ReplayError> {
        self.machine.now = now;
        let (pool, random) = (&mut self.pool, &mut self.random);
        self.commands.line(command, &mut self.machine.shim(pool, random)).map_err(ReplayError::Commands)?;
        self.look_around();
        // A change may let a packet leave at once, but nothing polls for it: the kernel does not either.
        Ok(())
    }

    /// Lets time pass up to `end`, that moment included: the link's completions, then watchdogs, then
    /// whatever `end` brings.
    fn until(&mut self, end: Time) -> Result<(), ReplayError> {
        loop {
            let watchdog = self.machine.gateway.timeout(self.device);
            let beside = self.watchdog_beside();
            let perturb = self.perturbation();
            let Some(next) = [self.busy_until, watchdog, perturb, beside.map(|(time, _)| time)]
                .into_iter()
                .flatten()
                .min()
                .filter(|time| *time <= end)
            else {
                return Ok(());
            };
            if self.busy_until == Some(next) {
                self.busy_until = None;
                self.send(next);
                self.route_arrived(next);
            } else if perturb == Some(next) {
                self.machine.gateway.perturb(world(next, &mut self.pool, &mut self.random));
            } else {
                let device = match beside {
                    Some((time, device)) if time == next && watchdog != Some(next) => device,
                    _ => self.device,
                };
                if self.machine.gateway.fire(next, device) {
                    self.go_on(next, Some(device));
                }
            }
            self.note_drops();
        }
    }

    /// When a hash key changes next: deferrable timers fire when the recording drew the key, however coarsely
    /// its kernel placed them. Without a recording they fire as soon as they may.
    fn perturbation(&mut self) -> Option<Time> {
        let due = self.machine.gateway.perturb_due();
        if self.random.made_up() {
            return Some(due).filter(|due| *due != Time::NEVER);
        }
        self.random.next_by_timer().filter(|_| due != Time::NEVER)
    }

    /// What the device can carry now.
    fn longest_frame(&self) -> u32 {
        self.machine.gateway.spec(self.device).mtu + Head::ETHERNET as u32
    }

    /// Did a kernel answer this run before?
    pub(crate) fn is_recorded(&self) -> bool {
        !self.random.made_up()
    }

    pub(crate) fn gateway(&mut self, now: Time) -> (&mut Gateway, tidegate_gateway::GatewayContext<'_>) {
        (&mut self.machine.gateway, world(now, &mut self.pool, &mut self.random))
    }

    /// Gives the link what it takes, and what the devices beside it give back meanwhile: packets may be
    /// redirected to them as the link's qdiscs are polled, below a netem.
    pub(crate) fn send(&mut self, now: Time) {
        self.transmit(now);
        self.serve_beside(now, None);
    }

    pub(crate) fn transmit(&mut self, now: Time) {
        while self.busy_until.is_none() {
            let world = world(now, &mut self.pool, &mut self.random);
            let Some(pkt) = self.machine.gateway.poll(world, self.device) else { return };
            let meta = self.pool.meta(&pkt);
            let (id, len, dsfield) = (meta.ident, meta.frame_len, meta.dsfield);
            self.note_departure(now, &pkt);
            *self.counts.entry("sent").or_default() += 1;
            self.lives.left(id, dsfield, now);
            self.pool.release(pkt);
            let link: &RecordedLink = &self.recording.link;
            if link.rate > 0 {
                self.busy_until = Some(now + Nanos(link.frame_time(len)));
            }
        }
    }

    /// What the recording's listener at the link sees.
    fn note_departure(&mut self, now: Time, pkt: &Pkt) {
        let meta = self.pool.meta(pkt);
        let (&Meta { ident, frame_len, dsfield, .. }, rewritten) = (meta, meta.rewritten());
        let length = if rewritten {
            read_by_listener(&self.pool.settle(pkt).on_wire(), frame_len, ident)
        } else {
            Some((ident, dsfield))
        };
        if let Some((id, dsfield)) = length {
            let _ = writeln!(self.egress, "{},{id},{frame_len},{dsfield}", ns(now));
        }
        if let Some(frames) = &mut self.frames {
            let frame = self.pool.settle(pkt).on_wire();
            let bytes: String = frame.frame().iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = writeln!(frames, "{},{frame_len},{bytes}", ns(now));
        }
    }

    fn note_drops(&mut self) {
        for Event { time, what, ident, len, dsfield, .. } in self.machine.gateway.events(self.device) {
            let place = match what {
                // The recordings do not see these.
                EventKind::Drop(DropReason::Netfilter) => continue,
                EventKind::Drop(DropReason::PurgedUnseen) => {
                    self.lives.dropped(ident, time);
                    *self.counts.entry("dropped").or_default() += 1;
                    continue;
                }
                EventKind::Drop(DropReason::NetfilterLeaving) => "nft_do_chain",
                EventKind::Drop(DropReason::Codel) => "drop_func",
                EventKind::Drop(DropReason::Purged(_)) => "__rtnl_unlock",
                EventKind::Drop(DropReason::PurgedAtOnce) => "qdisc_reset",
                EventKind::Drop(DropReason::Policy) => "__dev_queue_xmit",
                EventKind::Drop(_) | EventKind::Redirected => "kfree_skb_list_reason",
            };
            // There it has no link header yet.
            let len = if what == EventKind::Drop(DropReason::NetfilterLeaving) {
                len - Head::ETHERNET as u32
            } else {
                len
            };
            // An acknowledgement left out was of use: the kernel does not call it dropped.
            if what != EventKind::Drop(DropReason::Superseded) {
                let _ = writeln!(self.drops, "{},{ident},{len},{dsfield},{place}", ns(time));
            }
            self.lives.dropped(ident, time);
            *self.counts.entry(if what == EventKind::Redirected { "led" } else { "dropped" }).or_default() +=
                1;
        }
    }

    fn show(&mut self, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let reply = self.machine.shim(&mut self.pool, &mut self.random).tc(&words, None);
        String::from_utf8_lossy(&reply.stdout).into_owned()
    }

    /// The filters of every qdisc, as the recordings list them: in the order of the listing.
    fn filters(&mut self, now: Time) -> String {
        let qdiscs = self.machine.gateway.qdiscs(now, self.device);
        let parents: Vec<String> = qdiscs.iter().map(|q| q.handle.to_string()).collect();
        parents
            .iter()
            .map(|parent| self.show(&["-s", "-d", "filter", "show", "dev", "link0", "parent", parent]))
            .collect()
    }
}

/// The number and the DS field of a frame; the listener knows only frames of IP. It takes IPv6's number from
/// their last bytes, which are kept of short ones.
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

fn world<'a>(
    now: Time,
    pool: &'a mut Pool,
    source: &'a mut RecordedRandom,
) -> tidegate_gateway::GatewayContext<'a> {
    tidegate_gateway::GatewayContext { now, pool, random: source }
}

impl ReplayedRun {
    /// `12 packets arrived, 10 sent, 2 dropped`.
    pub fn summary(&self) -> String {
        let count = |what: &str| self.counts.get(what).copied().unwrap_or(0);
        format!("{} packets arrived, {} sent, {} dropped", count("arrivals"), count("sent"), count("dropped"))
    }

    /// Were all recorded draws used, and none other?
    ///
    /// # Errors
    /// The first difference.
    pub fn check_draws(&self) -> Result<(), RandomError> {
        self.random.check()
    }
}
