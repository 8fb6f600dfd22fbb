//! The machine of the recorded runs: its devices, tc and rules of iptables, a link behind one of them, time.

use std::fmt::Write as _;
use tidegate_gateway::{
    DeviceId, DeviceKind, DeviceSpec, DropReason, EgressPath, Event, EventKind, Gateway, GatewayContext,
    ReceiveOutcome, Switches, XmitStatus,
};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Handle, Head, Meta, Nanos, Pkt, Pool, Time};
use tidegate_policy::{LinkDriver, Op};
use tidegate_recording::line::{pieces, plain};
use tidegate_recording::{DRAIN, RecordedLink, RecordedRandom, Recording, RowKind, SCRIPT_AT, at, ns};
use tidegate_syntax::iptables::{self, IptCommand};
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat, TcCommand, TcCommandLine};
use tidegate_syntax::{Device, Env};

const POOL: usize = 1 << 17;
/// Packets that filters may have arrive at devices in one go.
const MOST_ARRIVED: u32 = 64;

/// The recording needs more than tc and rules of iptables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedsMore;

/// The result of a run, in the form of the recording's files.
pub(crate) struct Done {
    pub(crate) egress: String,
    pub(crate) frames: String,
    pub(crate) stats: String,
    pub(crate) filters: String,
    pub(crate) snapshot: String,
    pub(crate) random: RecordedRandom,
}

pub(crate) struct Machine {
    gateway: Gateway,
    device: DeviceId,
    beside: Vec<DeviceId>,
    pool: Pool,
    random: RecordedRandom,
    link: RecordedLink,
    busy_until: Option<Time>,
    egress: String,
    frames: String,
    snapshot: String,
    code: u8,
    goes_on: bool,
}

#[derive(Default)]
struct Reply {
    code: u8,
    stdout: String,
    stderr: String,
}

impl Machine {
    pub(crate) fn new(recording: &Recording) -> Machine {
        let link = recording.link;
        let switches = Switches { linux: link.linux, no_bypass: true, ..Switches::default() };
        let (mtu, tx_queue_len) = (link.mtu, link.tx_queue_len);
        let spec = DeviceSpec { mtu, tx_queue_len, hz: 1000, switches, ..DeviceSpec::default() };
        let ifb = DeviceSpec { hz: spec.hz, ..DeviceSpec::of(&LinkDriver::Ifb) };
        let cable = DeviceSpec { queueless: true, ..spec };
        let mut gateway = Gateway::new();
        gateway.count_hops();
        gateway.defer_releases(true);
        gateway.without_zones();
        let devices = [
            ("ifb0", ifb, false),
            ("ifb1", ifb, false),
            ("link0", spec, true),
            ("link1", spec, true),
            ("link2", spec, false),
            ("link3", spec, false),
            ("in1", cable, true),
            ("in0", cable, true),
        ];
        for (name, spec, up) in devices.into_iter().take(if link.forward { 8 } else { 6 }) {
            let id = gateway.add_device(name, spec);
            if !up {
                gateway.begin_down(id);
            }
        }
        let device = gateway.device("link0").expect("it was added");
        let beside = gateway.devices().filter(|id| *id != device).collect();
        Machine {
            gateway,
            device,
            beside,
            pool: Pool::new(POOL),
            random: recording.random.clone(),
            link,
            busy_until: None,
            egress: String::from("time_ns,id,len,dsfield\n"),
            frames: String::from("time_ns,len,octets\n"),
            snapshot: String::new(),
            code: 0,
            goes_on: false,
        }
    }

    pub(crate) fn run(mut self, recording: &Recording, script: &str) -> Result<Done, NeedsMore> {
        self.gateway.late_timers(true);
        for line in script.lines() {
            self.line(at(SCRIPT_AT), line, true)?;
            if self.code != 0 && !self.goes_on {
                break;
            }
        }
        self.gateway.late_timers(false);
        for row in &recording.rows {
            let now = at(row.time);
            self.until(now);
            match &row.what {
                RowKind::Command(line) => self.line(now, line, false)?,
                RowKind::Packet(arrival)
                    if arrival.meta.frame_len > self.link.mtu + Head::ETHERNET as u32 => {}
                RowKind::Packet(arrival) => {
                    let pkt =
                        self.pool.insert(arrival.meta.clone(), arrival.head.clone()).expect("there is room");
                    self.arrive(now, pkt);
                }
            }
            self.forget_events();
        }
        let end = at(recording.rows.last().map_or(0, |row| row.time) + DRAIN);
        self.until(end);
        let show = |machine: &mut Machine, words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            machine.tc(end, &words).map(|reply| reply.stdout)
        };
        let mut stats = show(&mut self, "-s -d qdisc show dev link0")?;
        stats += &show(&mut self, "-s -d class show dev link0")?;
        let mut filters = String::new();
        for dump in self.gateway.qdiscs(end, self.device) {
            filters += &show(&mut self, &format!("-s -d filter show dev link0 parent {}", dump.handle))?;
        }
        let Machine { egress, frames, snapshot, random: draws, .. } = self;
        Ok(Done { egress, frames, stats, filters, snapshot, random: draws })
    }

    // --- packets and time

    fn with(&mut self, now: Time) -> (&mut Gateway, GatewayContext<'_>) {
        (&mut self.gateway, GatewayContext { now, pool: &mut self.pool, random: &mut self.random })
    }

    fn arrive(&mut self, now: Time, pkt: Pkt) {
        let device = self.device;
        let offer = if self.link.forward {
            self.come_in(now, pkt)
        } else {
            let (gateway, world) = self.with(now);
            gateway.offer(world, device, EgressPath::Direct, pkt)
        };
        self.served(now, offer);
        self.route_arrived(now);
    }

    fn served(&mut self, now: Time, offer: XmitStatus) {
        let offered = self.serve_beside(now, None);
        if offered || wakes(offer) {
            self.send(now);
        }
    }

    fn come_in(&mut self, now: Time, pkt: Pkt) -> XmitStatus {
        let by = self.gateway.device("in1").expect("a machine that forwards has it");
        let (gateway, world) = self.with(now);
        let received = gateway.receive(world, by, pkt);
        self.route_arrived(now);
        match received {
            ReceiveOutcome::Passed(pkt, by) => self.route(now, by, pkt),
            ReceiveOutcome::Redirected(_) | ReceiveOutcome::Dropped => XmitStatus::Stopped,
        }
    }

    fn route_arrived(&mut self, now: Time) {
        for _ in 0..MOST_ARRIVED {
            let Some((pkt, by)) = self.gateway.take_arrived() else { return };
            let mut offer = XmitStatus::Stopped;
            if self.link.forward {
                offer = self.route(now, by, pkt);
            } else {
                self.pool.release(pkt);
            }
            self.served(now, offer);
        }
    }

    /// The machine has one way out. Those that recorded forwarded IPv4 only.
    fn route(&mut self, now: Time, by: DeviceId, pkt: Pkt) -> XmitStatus {
        if self.pool.meta(&pkt).ethertype == ethertype::IPV6 {
            self.pool.release(pkt);
            return XmitStatus::Stopped;
        }
        let device = self.device;
        let (gateway, world) = self.with(now);
        gateway.offer(world, device, EgressPath::Forwarded(Some(by)), pkt)
    }

    /// Lets the devices do what they can to which packets were redirected, and the one that `woke`.
    fn serve_beside(&mut self, now: Time, woke: Option<DeviceId>) -> bool {
        let mut offered = false;
        for at in 0..self.beside.len() {
            let id = self.beside[at];
            if !self.gateway.take_redirect_target_flag(id) && woke != Some(id) {
                continue;
            }
            let returns = self.gateway.spec(id).kind == DeviceKind::Ifb;
            loop {
                let (gateway, world) = self.with(now);
                let Some(pkt) = gateway.poll(world, id) else { break };
                match self.gateway.returned_from(&self.pool, &pkt).filter(|_| returns) {
                    Some((from, false)) => offered |= wakes(self.route(now, from, pkt)),
                    Some((from, true)) => {
                        let (gateway, world) = self.with(now);
                        offered |= wakes(gateway.offer_back(world, from, pkt));
                    }
                    None => self.pool.release(pkt),
                }
            }
        }
        offered
    }

    fn until(&mut self, end: Time) {
        loop {
            let watchdog = self.gateway.timeout(self.device);
            let gateway = &mut self.gateway;
            let beside = self.beside.iter().filter_map(|id| Some((gateway.timeout(*id)?, *id))).min();
            let due = self.gateway.perturb_due();
            let perturb = self.random.next_by_timer().filter(|time| due <= *time);
            let all = [self.busy_until, watchdog, perturb, beside.map(|(time, _)| time)];
            let Some(next) = all.into_iter().flatten().min().filter(|time| *time <= end) else { return };
            if self.busy_until == Some(next) {
                self.busy_until = None;
                self.send(next);
                self.route_arrived(next);
            } else if perturb == Some(next) {
                let (gateway, world) = self.with(next);
                gateway.perturb(world);
            } else {
                let device = match beside {
                    Some((time, device)) if time == next && watchdog != Some(next) => device,
                    _ => self.device,
                };
                if self.gateway.fire(next, device) {
                    let offered = self.serve_beside(next, Some(device));
                    if offered || device == self.device {
                        self.send(next);
                    }
                    self.route_arrived(next);
                }
            }
            self.forget_events();
        }
    }

    /// Packets may be redirected as the link's qdiscs are polled, and come back.
    fn send(&mut self, now: Time) {
        self.transmit(now);
        for _ in 0..MOST_ARRIVED {
            if !self.serve_beside(now, None) {
                return;
            }
            self.transmit(now);
        }
    }

    fn transmit(&mut self, now: Time) {
        while self.busy_until.is_none() {
            let device = self.device;
            let (gateway, world) = self.with(now);
            let Some(pkt) = gateway.poll(world, device) else { return };
            let meta = self.pool.meta(&pkt);
            let (&Meta { ident, frame_len, dsfield, .. }, rewritten) = (meta, meta.rewritten());
            let wire = self.pool.settle(&pkt).on_wire();
            let seen =
                if rewritten { read_by_listener(&wire, frame_len, ident) } else { Some((ident, dsfield)) };
            if let Some((ident, dsfield)) = seen {
                let _ = writeln!(self.egress, "{},{ident},{frame_len},{dsfield}", ns(now));
            }
            let bytes: String = wire.frame().iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = writeln!(self.frames, "{},{frame_len},{bytes}", ns(now));
            self.pool.release(pkt);
            if self.link.rate > 0 {
                self.busy_until = Some(now + Nanos(self.link.frame_time(frame_len)));
            }
        }
    }

    /// Drops are held by qdisc's tests; here the ring must not run over.
    fn forget_events(&mut self) {
        let netfilter = |event: &Event| event.what == EventKind::Drop(DropReason::Netfilter);
        let _ = self.gateway.events(self.device).filter(netfilter).count();
    }

    // --- commands

    fn line(&mut self, now: Time, line: &str, stops: bool) -> Result<(), NeedsMore> {
        for piece in pieces(line).ok_or(NeedsMore)? {
            let Some((words, to)) = plain(&piece, self.code).ok_or(NeedsMore)? else { continue };
            let reply = match words[0].as_str() {
                "tc" => self.tc(now, &words[1..])?,
                "iptables" | "ip6tables" => self.iptables(now, &words[0], &words[1..])?,
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
            if stops && self.code != 0 && !self.goes_on {
                break;
            }
        }
        Ok(())
    }

    fn iptables(&mut self, now: Time, tool: &str, words: &[String]) -> Result<Reply, NeedsMore> {
        match iptables::parse(tool, words).map_err(|_| NeedsMore)?.command {
            IptCommand::Apply(op) => {
                let (gateway, world) = self.with(now);
                gateway.apply(world, &Op::Netfilter(op)).map_err(|_| NeedsMore)?;
                Ok(Reply::default())
            }
            _ => Err(NeedsMore),
        }
    }

    fn tc(&mut self, now: Time, words: &[String]) -> Result<Reply, NeedsMore> {
        let named = |id| Device {
            name: self.gateway.name(id).to_owned(),
            speed_mbit: self.gateway.spec(id).speed_mbit,
            ..Device::default()
        };
        let env = Env { devices: Some(self.gateway.devices().map(named).collect()), ..Env::default() };
        match tc::parse(words, &env) {
            Err(refusal) => Ok(Reply { code: refusal.code, stderr: refusal.stderr, ..Reply::default() }),
            Ok(TcCommandLine { command: TcCommand::Apply(op), stderr, .. }) => {
                let of_htb = matches!(&op, Op::Class(class) if class.kind.as_deref() == Some("htb"));
                let (gateway, world) = self.with(now);
                Ok(match gateway.apply(world, &op) {
                    Ok(Some(warning)) if !of_htb => {
                        Reply { stderr: format!("{stderr}Warning: {warning}\n"), ..Reply::default() }
                    }
                    Ok(_) => Reply { stderr, ..Reply::default() },
                    Err(error) => {
                        let (text, code) = tc::refusal_text(&op, &error);
                        Reply { code, stderr: stderr + &text, ..Reply::default() }
                    }
                })
            }
            Ok(TcCommandLine { command: TcCommand::Show(what), flags, .. }) => self.show(now, &what, &flags),
            Ok(_) => Err(NeedsMore),
        }
    }

    fn show(&mut self, now: Time, what: &ShowWhat, flags: &ShowFlags) -> Result<Reply, NeedsMore> {
        let device = what.dev.as_deref().and_then(|name| self.gateway.device(name));
        let stdout = match (what.object, device) {
            (Object::Filter, _) if what.block != 0 => {
                let dumps = self.gateway.block_filters(now, what.block).map_err(|_| NeedsMore)?;
                tc::show_filters(&dumps, what, flags)
            }
            (_, None) => return Err(NeedsMore),
            (Object::Qdisc, Some(device)) => tc::show_qdiscs(&self.gateway.qdiscs(now, device), what, flags),
            (Object::Class, Some(device)) => {
                let flags = ShowFlags { json: false, ..*flags };
                tc::show_classes(&self.gateway.listed_classes(now, device), what, &flags)
            }
            (Object::Filter, Some(device)) => {
                let parent = what.parent.unwrap_or(Handle::NONE);
                let dumps = self.gateway.filters(now, device, parent).unwrap_or_default();
                tc::show_filters(&dumps, what, flags)
            }
        };
        Ok(Reply { stdout, ..Reply::default() })
    }
}

/// Did a packet come to the device, which therefore continues?
fn wakes(offer: XmitStatus) -> bool {
    !matches!(offer, XmitStatus::Stopped | XmitStatus::Away)
}

/// The number and the DS field of a frame whose bytes were rewritten, as the recordings' listener reads
/// them.
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
