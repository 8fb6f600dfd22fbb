//! The story of a packet: which rules and filters it meets, what each makes of it, and where it waits.
//!
//! The engine decides. The packet is sent through the machine; netfilter notes each rule as the packet meets
//! it, u32 and the actions of filters count, and the queue it is then in shows the decision. The explanation
//! reads those notes; where it differs from the engine, that is a bug of tidegate's and a debug build stops.

mod acts;
mod conditions;
mod counted;
mod filters;
mod marks;
mod rules;
mod served;
mod tables;
mod waits;

use crate::packet::Packet;
use crate::probe::{Glimpse, Loss, PacketEntry, ProbeResult, Prober, Stop};
use crate::reading::{CLSACT_EGRESS, CLSACT_INGRESS, PolicyModel, SourceLocation, Step};
use crate::walk::ways::{self, translates};
use crate::words;
use acts::Carried;
use counted::Counted;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use tidegate_gateway::{DeviceId, DeviceKind, DeviceSpec, DropReason, EgressPath};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Addrs, Dissector, Handle, Head, dissect};
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::Connstate;
use tidegate_policy::{Act, Kind, Op, QdiscParams};

/// Whether a packet matched what a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The packet matches.
    Met,
    /// It does not.
    Passed,
    /// There is nothing to match: the step is a remark.
    Note,
}

impl StepOutcome {
    /// The word for it in `explain --json`.
    pub const fn name(self) -> &'static str {
        match self {
            StepOutcome::Met => "met",
            StepOutcome::Passed => "passed",
            StepOutcome::Note => "note",
        }
    }
}

/// A line of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainStep {
    /// Rule, filter or class, in the words of its tool.
    pub what: String,
    /// How the packet got on with it.
    pub outcome: StepOutcome,
    /// Why, and what it did.
    pub why: Vec<String>,
    /// The place in the file.
    pub place: Option<SourceLocation>,
}

/// Lines that belong together: a chain, a list of filters, a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Where this is.
    pub title: String,
    /// What happens.
    pub lines: Vec<ExplainStep>,
}

/// Where a packet ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// In a few words: `eth0 1:1 1:10, fq_codel 120:`.
    pub text: String,
    /// The device's name.
    pub device: String,
    /// The classes it is in, from the root down.
    pub classes: Vec<Handle>,
    /// The qdisc that holds it, by kind and handle.
    pub queue: String,
    /// Its flow's place in that, where flows have such.
    pub bucket: Option<String>,
    /// What it may wait for there at worst, in sentences.
    pub waits: Vec<String>,
    /// Why it was dropped, if it was.
    pub lost: Option<String>,
}

/// The path of a packet, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The packet that was sent.
    pub packet: Packet,
    /// What it meets, in order.
    pub scenes: Vec<Scene>,
    /// Its mark in the end.
    pub mark: u32,
    /// Its DS field in the end.
    pub dsfield: u8,
    /// Its priority in the end.
    pub priority: u32,
    /// Where it ends.
    pub end: End,
}

impl Story {
    /// The first line in which two stories part, with its scene's title, in each; `None`: they are the same
    /// to the end. What did not fit changed nothing, and is passed over.
    pub fn parts_from<'s>(&'s self, other: &'s Story) -> Option<[Option<(&'s str, &'s ExplainStep)>; 2]> {
        let lines = |story: &'s Story| {
            let found = story
                .scenes
                .iter()
                .flat_map(|scene| scene.lines.iter().map(|line| (scene.title.as_str(), line)));
            found.filter(|(_, line)| line.outcome != StepOutcome::Passed)
        };
        let (mut ours, mut theirs) = (lines(self), lines(other));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return None,
                (Some((_, a)), Some((_, b)))
                    if (&a.what, a.outcome, &a.why) == (&b.what, b.outcome, &b.why) => {}
                parted => return Some([parted.0, parted.1]),
            }
        }
    }
}

/// A packet at a stop, with what is known only while it is there.
struct Moment {
    stop: Stop,
    name: String,
    spec: DeviceSpec,
    head: Head,
    mark: u32,
    priority: u32,
    bucket: Option<String>,
    /// NAT gave it another source by now.
    from_other: bool,
    /// Why it was refused there, if it was.
    refused: Option<DropReason>,
}

/// Why it is not known by which device a packet leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EgressError {
    /// The policy governs no device that it could leave by.
    NoDevice,
    /// Nor does it, but for commands about these devices that were refused.
    Refused {
        /// The devices.
        devices: Vec<String>,
        /// The file and line of the first command that was refused, where it is known.
        first: Option<(String, usize)>,
    },
    /// It may leave by any of these devices.
    Several(Vec<String>),
    /// It passes a bridge, which neither routes it nor shows it to netfilter.
    Bridged {
        /// The bridge that both devices are ports of.
        bridge: String,
    },
}

impl fmt::Display for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EgressError::NoDevice => {
                f.write_str("the policy governs no device that it could leave by; say `in DEV`, or `out DEV`")
            }
            EgressError::Refused { devices, first } => {
                let by = first.as_ref().map(|(file, line)| format!(" ({file}:{line})")).unwrap_or_default();
                let names = devices.join(" or ");
                write!(
                    f,
                    "nothing that was carried out governs a device that it could leave by: what the policy has \
                    for {names} was refused{by}; `out {}` shows how it leaves without",
                    devices.first().map_or("DEV", String::as_str)
                )
            }
            EgressError::Several(names) => {
                write!(f, "it may leave by {}; say which with `out DEV`", names.join(" or "))
            }
            EgressError::Bridged { bridge } => write!(
                f,
                "both devices are ports of {bridge}: bridged packets pass no routing and none of netfilter's rules \
                for IP, and explain shows the way of routed ones; `out {bridge}` shows what leaves by the bridge \
                itself"
            ),
        }
    }
}

impl std::error::Error for EgressError {}

/// Tells the stories of packets under one policy.
pub struct Explainer<'r> {
    reading: &'r PolicyModel,
    prober: Prober,
    /// Actions of filters write marks or priorities, which are followed step by step.
    edits: bool,
}

impl<'r> Explainer<'r> {
    /// For the policy of a reading.
    pub fn new(reading: &'r PolicyModel) -> Explainer<'r> {
        let mut prober = Prober::new(reading);
        prober.gateway().watch();
        Explainer { reading, prober, edits: reading.filters.iter().any(acts::edits) }
    }

    /// The machine's name for a device.
    fn name(&mut self, device: DeviceId) -> String {
        self.prober.gateway().name(device).to_owned()
    }

    /// Where a packet enters, as far as its words determine it; otherwise the one device whose policy it can
    /// meet.
    ///
    /// # Errors
    /// No device is possible, or several are: what to write.
    pub fn course(&mut self, packet: &Packet) -> Result<PacketEntry, EgressError> {
        // ARP and the like are not routed: what leaves is the machine's own, unless it bridges.
        // So is what it sends to itself.
        let own = packet.from.is_none() && (!is_routed(packet.ethertype) || self.is_to_itself(packet));
        if own || packet.from.as_deref() == Some("lo") {
            let to = self.way_out(packet, None)?;
            return Ok(PacketEntry::Leaves(to, EgressPath::Local));
        }
        let Some(name) = &packet.from else {
            let to = self.way_out(packet, None)?;
            return Ok(PacketEntry::Leaves(to, EgressPath::Forwarded(None)));
        };
        let from = self.named(name);
        let is_own = packet.to.is_none()
            && self.own_address(packet.destination).is_some()
            && !self.is_sent_on(packet, from);
        if packet.to.is_none() && !is_routed(packet.ethertype) || is_own {
            return Ok(PacketEntry::Arrives(from));
        }
        // What is not routed can only pass a bridge.
        if let Some(to) = &packet.to
            && is_routed(packet.ethertype)
            && let Some(bridge) =
                self.reading.bridge_of(name).filter(|own| self.reading.bridge_of(to) == Some(own))
        {
            return Err(EgressError::Bridged { bridge: bridge.to_owned() });
        }
        match (self.governed(packet, Some(from))[..].first(), &packet.to) {
            (None, None) => Ok(PacketEntry::Through(from, self.elsewhere(from))),
            _ => Ok(PacketEntry::Through(from, self.way_out(packet, Some(from))?)),
        }
    }

    /// Is a packet for this machine's address sent on to another host (DNAT)?
    fn is_sent_on(&mut self, packet: &Packet, from: DeviceId) -> bool {
        if !ways::rules(self.reading).any(translates) {
            return false;
        }
        let to = self.way_out(packet, Some(from)).unwrap_or(from);
        let destination = self.prober.destination_through(packet, from, to);
        destination != packet.destination && self.own_address(destination).is_none()
    }

    /// Devices whose egress the policy governs and by which a packet may leave, but for one.
    fn governed(&mut self, packet: &Packet, but: Option<DeviceId>) -> Vec<DeviceId> {
        let to_itself = self.is_to_itself(packet);
        let filters = &self.reading.filters;
        let leaving =
            |name: &str| filters.iter().any(|dump| dump.dev == name && dump.parent == CLSACT_EGRESS);
        let gateway = self.prober.gateway();
        let ids: Vec<DeviceId> = gateway.devices().collect();
        let configured = |id: DeviceId| gateway.is_configured(id) || leaving(gateway.name(id));
        let leads = |id: &DeviceId| match gateway.spec(*id).kind {
            DeviceKind::Ifb => false,
            DeviceKind::Loopback => to_itself,
            _ => !to_itself,
        };
        let governed = |id: &DeviceId| configured(*id) && leads(id);
        ids.into_iter().filter(|id| Some(*id) != but && governed(id)).collect()
    }

    /// A device without a policy, for packets that pass the policy.
    fn elsewhere(&mut self, but: DeviceId) -> DeviceId {
        let gateway = self.prober.gateway();
        let plain =
            |id: &DeviceId| matches!(gateway.spec(*id).kind, DeviceKind::Ethernet | DeviceKind::Bridge);
        let other = gateway.devices().filter(plain).find(|id| *id != but);
        other.unwrap_or_else(|| self.named("lan"))
    }

    /// The device it leaves by.
    fn way_out(&mut self, packet: &Packet, from: Option<DeviceId>) -> Result<DeviceId, EgressError> {
        if let Some(name) = &packet.to {
            return Ok(self.named(name));
        }
        let ways = self.governed(packet, from);
        match ways[..] {
            [one] => Ok(one),
            [] => Err(self.nothing_governed()),
            _ => {
                let names: Vec<String> = ways.into_iter().map(|id| self.name(id)).collect();
                Err(EgressError::Several(names))
            }
        }
    }

    /// Why no device is governed.
    fn nothing_governed(&self) -> EgressError {
        let refused = |step: &&Step| step.tool == "tc" && step.refused.is_some() && !step.may_fail;
        let refused: Vec<&Step> = self.reading.steps.iter().filter(refused).collect();
        let devices: BTreeSet<&str> =
            refused.iter().filter_map(|step| step.after("dev")).map(|word| word.text.as_str()).collect();
        if devices.is_empty() {
            return EgressError::NoDevice;
        }
        let place = refused.iter().find_map(|step| step.place.as_ref());
        let first = place.and_then(|place| {
            self.reading.sources.get(place.file).map(|source| (source.name.clone(), place.line))
        });
        EgressError::Refused { devices: devices.into_iter().map(str::to_owned).collect(), first }
    }

    /// A device of the machine; one that the policy does not know is a plain one.
    fn named(&mut self, name: &str) -> DeviceId {
        self.prober.gateway().add_device(name, DeviceSpec::default())
    }

    /// Sends a packet, and explains its path.
    pub fn explain(&mut self, packet: &Packet, course: PacketEntry) -> Story {
        let before = Counted::of(self.reading, self.prober.gateway());
        let mut moments = Vec::new();
        let way =
            self.prober.travel_with(packet, course, &mut |glimpse| moments.push(moment(glimpse, packet)));
        let sent = self.prober.sent(packet);
        let packet = &sent;
        let seen = self.prober.gateway().take_seen();
        let counted = Counted::of(self.reading, self.prober.gateway()).since(&before);
        let carried = Carried::default();
        carried.ethertype.set(packet.ethertype);
        carried.mark.set(packet.mark);
        carried.connmark.set(self.prober.connmark().unwrap_or(packet.connmark));
        carried.priority.set(packet.priority);
        let mut scenes = Vec::new();
        if packet.connmark > 0 && !self.reading.looks_connections_up() {
            let what =
                "nothing in the policy has connections looked up: `connmark` changes nothing".to_owned();
            scenes.push(Scene { title: "its connection".into(), lines: vec![filters::note(what)] });
        }
        let commits = |dump: &ActionDump| matches!(&dump.action.act, Act::Ct(ct) if ct.commit);
        let later = packet.reply || matches!(packet.state, Some(Connstate::Established | Connstate::Related));
        if later && self.reading.filters.iter().flat_map(acts::actions_of).any(commits) {
            let what = "the packets before it are not led through the filters: what `action ct commit` would have \
                        kept of them is not known, and `ct_state` and `ct_mark` may be other ones";
            let title = "its connection".to_owned();
            scenes.push(Scene { title, lines: vec![filters::note(what.to_owned())] });
        }
        // The model has no links that are down; Linux drops packets redirected to one.
        let down = moments.windows(2).position(|pair| {
            pair[0].stop.led_to.is_some() && self.reading.down.iter().any(|down| *down == pair[1].name)
        });
        let lost = down.map(|at| moments[at + 1].name.clone());
        let moments = down.map_or(moments.as_slice(), |at| &moments[..=at]);
        let mut rest = moments;
        if let PacketEntry::Arrives(device) | PacketEntry::Through(device, _) = course {
            let arriving = arriving(moments, device);
            scenes.extend(self.arrival(packet, device, &counted, &carried));
            rest = &moments[arriving.len()..];
            scenes.extend(
                arriving
                    .iter()
                    .filter(|moment| moment.stop.device != device)
                    .map(|m| self.tree(m, &counted, &carried)),
            );
        }
        let unread = self.is_unread(&way, course);
        let routed = way.routed && !unread && (lost.is_none() || matches!(course, PacketEntry::Leaves(..)));
        if let PacketEntry::Leaves(out, EgressPath::Forwarded(None)) = course {
            scenes.extend(self.unknown_ingress(out));
        }
        if let (PacketEntry::Through(from, _), false) = (course, is_routed(packet.ethertype)) {
            let (kind, from) = (ethertype_name(packet.ethertype), self.name(from));
            let what =
                format!("{kind} is not routed: this is the way through a bridge of which {from} is a port");
            scenes.push(Scene { title: "goes on".into(), lines: vec![filters::note(what)] });
        }
        if routed {
            scenes.extend(rules::scenes(self.reading, self.prober.gateway(), &seen, packet, course));
            rules::carry(&seen, packet, course, &carried);
        }
        let too_long = self.too_long(packet, course);
        let trees = rest.iter().map(|moment| self.tree(moment, &counted, &carried));
        let behind = scenes.len();
        scenes.extend(trees);
        if let (Some(note), Some(scene)) = (too_long, scenes.get_mut(behind)) {
            scene.lines.insert(0, note);
        }
        if let Some(device) = lost {
            let because = format!("{device} is down: what is led there is dropped");
            let end = End {
                text: format!("dropped at {device}: it is down"),
                device,
                lost: Some(because),
                ..End::default()
            };
            return Story {
                packet: packet.clone(),
                scenes,
                mark: way.mark,
                dsfield: way.dsfield,
                priority: way.priority,
                end,
            };
        }
        // A queue that no command made has no number.
        let is_queued = |dev: &str| counted.dropped_below(dev).next().is_some();
        let lost_at = way.dropped.map(|loss| (loss, self.name(loss.device)));
        let lost_at = lost_at.filter(|(loss, dev)| !loss.at.is_none() || is_queued(dev));
        let lost_at = lost_at.map(|(loss, _)| loss.device);
        // What filters on its arrival drop comes to no tree of that device.
        let came = |device: &DeviceId| {
            matches!(course, PacketEntry::Arrives(from) | PacketEntry::Through(from, _)
            if !way.routed && from == *device)
        };
        let refused = |device: &DeviceId| !came(device) && moments.iter().all(|m| m.stop.device != *device);
        if let Some(device) = lost_at.filter(refused) {
            scenes.extend(self.refusal(packet, &way, device, &counted, &carried));
        }
        let mut end = self.end(packet, &way, moments, course);
        if unread {
            let device = self.came_by(course).unwrap_or_default();
            let because =
                "Linux does not take it in: an action that rewrote it left a wrong checksum of its header";
            end = End {
                text: format!("dropped at {device}, before routing: {because}"),
                device,
                lost: Some(because.to_owned()),
                ..End::default()
            };
        }
        Story {
            packet: packet.clone(),
            scenes,
            mark: way.mark,
            dsfield: way.dsfield,
            priority: way.priority,
            end,
        }
    }

    /// What Linux does with a packet that is longer than the MTU of the device by which it leaves.
    fn too_long(&mut self, packet: &Packet, course: PacketEntry) -> Option<ExplainStep> {
        let (PacketEntry::Leaves(out, _) | PacketEntry::Through(_, out)) = course else { return None };
        let mtu = self.prober.gateway().spec(out).mtu;
        (u32::from(packet.length) > mtu && is_routed(packet.ethertype)).then(|| {
            filters::note(format!(
                "it has {} bytes, more than the MTU of {mtu}: Linux fragments it, or drops it where it may not; \
                what follows is the way of segments that were combined (GSO)",
                packet.length
            ))
        })
    }

    /// The device that it came by, if it came by one.
    fn came_by(&mut self, course: PacketEntry) -> Option<String> {
        match course {
            PacketEntry::Arrives(from) | PacketEntry::Through(from, _) => Some(self.name(from)),
            PacketEntry::Leaves(..) => None,
        }
    }

    /// Is it dropped as it is taken in, before routing? Of what was rewritten on its arrival the checksum of
    /// the header is looked at; where there are rules, these may be what drops it.
    fn is_unread(&mut self, way: &ProbeResult, course: PacketEntry) -> bool {
        let dropped = way.dropped.is_some_and(|loss| loss.why == DropReason::Netfilter);
        let rules = self.reading.ops.iter().any(|op| matches!(op, Op::Netfilter(_)));
        let from = self.came_by(course).filter(|_| dropped && !rules);
        from.is_some_and(|from| filters::is_rewritten(self.reading, &from, CLSACT_INGRESS))
    }

    /// Does the machine send a packet to itself, by `lo`? No packet with a loopback address leaves it.
    fn is_to_itself(&mut self, packet: &Packet) -> bool {
        let ends = [packet.source, packet.destination];
        ends.iter().any(IpAddr::is_loopback)
            || packet.from.is_none() && ends.iter().all(|end| self.own_address(*end).is_some())
    }

    /// The device of this machine that has an address.
    fn own_address(&mut self, address: IpAddr) -> Option<String> {
        let gateway = self.prober.gateway();
        let has = |id: &DeviceId| gateway.addresses(*id).iter().any(|(own, _)| *own == address);
        let id = gateway.devices().find(has)?;
        Some(gateway.name(id).to_owned())
    }

    /// For a packet whose input device is unknown: the filters it would have met there.
    fn unknown_ingress(&mut self, out: DeviceId) -> Option<Scene> {
        let out = self.name(out);
        let acts = |dump: &&FilterDump| match &dump.entry {
            FilterEntry::Filter { actions, .. } => !actions.is_empty(),
            _ => false,
        };
        let arriving = |dump: &&FilterDump| {
            let hook = |qdisc: &QdiscDump| qdisc.dev == dump.dev && qdisc.kind.is_hook();
            let here = dump.parent == CLSACT_INGRESS || dump.parent == Handle::new(0xffff, 0);
            dump.dev != out && here && self.reading.qdiscs.iter().any(hook)
        };
        let there = self.reading.filters.iter().filter(arriving).filter(acts);
        let names: BTreeSet<&str> = there.map(|dump| dump.dev.as_str()).collect();
        let first = names.first()?;
        let names = names.iter().copied().collect::<Vec<_>>().join(", ");
        let what =
            format!("the filters on what arrives by {names} are not evaluated: `in {first}` evaluates them");
        let title = "arrives by a device that was not named".to_owned();
        Some(Scene { title, lines: vec![filters::note(what)] })
    }

    /// The filters on what arrives.
    fn arrival(
        &mut self,
        packet: &Packet,
        device: DeviceId,
        counted: &Counted,
        carried: &Carried,
    ) -> Option<Scene> {
        let name = self.name(device);
        let head = packet.head();
        let tracked = self.reading.looks_connections_up();
        let here = filters::Here { dev: &name, head: &head, carried, tracked, rewritten: false };
        let mut lines = Vec::new();
        for parent in [Handle::new(0xffff, 0), CLSACT_INGRESS] {
            lines.extend(filters::list(self.reading, here, parent, counted).lines);
        }
        (!lines.is_empty()).then(|| Scene { title: format!("arrives at {name}, before any routing"), lines })
    }

    /// The tree of a device, as far as the packet gets in it.
    fn tree(&self, moment: &Moment, counted: &Counted, carried: &Carried) -> Scene {
        if !self.edits {
            carried.mark.set(moment.mark);
            carried.priority.set(moment.priority);
        }
        let lines = filters::tree(self.reading, moment, counted, carried);
        let again = if moment.stop.came_back { ", come back from an ifb" } else { "" };
        Scene { title: format!("leaves by {}{again}", moment.name), lines }
    }

    /// The tree that refused a packet, which therefore was never queued there.
    fn refusal(
        &mut self,
        packet: &Packet,
        way: &ProbeResult,
        device: DeviceId,
        counted: &Counted,
        carried: &Carried,
    ) -> Option<Scene> {
        let mut head = packet.head();
        head.set_dsfield(way.dsfield);
        let name = self.name(device);
        // What is attached to these did not keep it.
        let stop = self.prober.refused_in(device, counted.dropped_below(&name));
        let spec = self.prober.gateway().spec(device);
        let moment = Moment {
            stop,
            name,
            spec,
            head,
            mark: way.mark,
            priority: way.priority,
            bucket: None,
            from_other: false,
            refused: way.dropped.map(|loss| loss.why),
        };
        Some(self.tree(&moment, counted, carried)).filter(|scene| !scene.lines.is_empty())
    }

    fn end(&mut self, packet: &Packet, way: &ProbeResult, moments: &[Moment], course: PacketEntry) -> End {
        let last = moments.last();
        if let Some(loss) = way.dropped {
            let device = self.name(loss.device);
            let lost = self.loss_text(loss);
            return End {
                text: format!("dropped at {device}: {lost}"),
                device,
                lost: Some(lost),
                ..End::default()
            };
        }
        let Some(moment) = last.filter(|moment| moment.stop.led_to.is_none()) else {
            let led_to = last.and_then(|moment| moment.stop.led_to);
            let down = led_to.map(|by| self.name(by)).filter(|by| self.reading.down.contains(by));
            if let Some(device) = down {
                let lost = "it is down".to_owned();
                let text = format!("dropped at {device}: {lost}");
                return End { text, device, lost: Some(lost), ..End::default() };
            }
            let text = match (led_to, course) {
                (_, PacketEntry::Arrives(_)) if way.routed && !is_routed(packet.ethertype) => format!(
                    "goes on to this machine itself: {} is not routed (a bridge, or a device on top, may \
                    take it)",
                    ethertype_name(packet.ethertype)
                ),
                (Some(by), _) => format!("goes on to routing, as if it had arrived by {}", self.name(by)),
                (None, PacketEntry::Arrives(device) | PacketEntry::Through(device, _)) if !way.routed => {
                    format!(
                        "goes no further: an action on what arrives by {} takes it away",
                        self.name(device)
                    )
                }
                (None, PacketEntry::Arrives(_)) => match self.own_address(packet.destination) {
                    Some(device) => format!(
                        "goes on to this machine itself: {} is an address of {device} (rules of \
                        PREROUTING and INPUT are not shown)",
                        packet.destination
                    ),
                    None => "goes on to routing".to_owned(),
                },
                _ => "leaves at once: no qdisc holds it".to_owned(),
            };
            return End { text, ..End::default() };
        };
        if moment.spec.kind == DeviceKind::Ifb && moment.stop.came_back {
            let device = moment.name.clone();
            let lost = "it came back to an ifb, which sends only what was redirected to it".to_owned();
            return End {
                text: format!("dropped at {device}: {lost}"),
                device,
                lost: Some(lost),
                ..End::default()
            };
        }
        let (text, queue) = self.queue_position(moment);
        // It waited on the way, too: in an ifb.
        let before = moments.iter().rev().skip(1).rev().filter(|moment| moment.stop.led_to.is_none());
        let mut waits: Vec<String> = Vec::new();
        for moment in before.filter(|moment| !waits::leaves_at_once(self.reading, moment)) {
            waits.push(format!(
                "on the way it waits in {}:",
                self.queue_position(moment).0.trim_end_matches(':')
            ));
            waits.extend(waits::at_worst(self.reading, moment).into_iter().map(|wait| format!("  {wait}")));
        }
        waits.extend(waits::at_worst(self.reading, moment));
        End {
            text,
            device: moment.name.clone(),
            classes: moment.stop.classes.clone(),
            queue,
            bucket: moment.bucket.clone(),
            waits,
            lost: None,
        }
    }

    /// The queue of a packet, `eth0 1:1 1:10, fq_codel 120:`, and the queue alone.
    fn queue_position(&self, moment: &Moment) -> (String, String) {
        let queue = waits::queue_name(self.reading, moment);
        let named = |class: &Handle| self.reading.class_name(&moment.name, *class);
        let classes: Vec<String> = moment.stop.classes.iter().map(named).collect();
        let bucket = moment.bucket.as_ref().map(|bucket| format!(", {bucket}")).unwrap_or_default();
        let path = if classes.is_empty() { String::new() } else { format!(" {}", classes.join(" ")) };
        (format!("{}{path}, {queue}{bucket}", moment.name), queue)
    }

    /// Why a packet was dropped, in words.
    fn loss_text(&mut self, loss: Loss) -> String {
        let at = if loss.at.is_none() { String::new() } else { format!(" (by {})", loss.at) };
        if loss.why == DropReason::TooLong {
            let dev = self.name(loss.device);
            return format!("{}{at}", too_long(self.reading, &dev, loss.at));
        }
        let dev = self.name(loss.device);
        let here = |dump: &&QdiscDump| dump.dev == dev && dump.handle == loss.at;
        let draws = self.reading.qdiscs.iter().find(here).and_then(|dump| match &dump.params {
            QdiscParams::Netem(netem) if loss.why == DropReason::Early => Some(waits::loses(netem)),
            _ => None,
        });
        let why = draws.unwrap_or_else(|| words::dropped(loss.why).to_owned());
        format!("{why}{at}")
    }
}

/// Does a router forward packets of this kind?
const fn is_routed(ethertype: u16) -> bool {
    matches!(ethertype, ethertype::IPV4 | ethertype::IPV6)
}

/// Which limit of a qdisc a packet is longer than.
fn too_long(reading: &PolicyModel, dev: &str, handle: Handle) -> &'static str {
    let dump = reading.qdiscs.iter().find(|dump| dump.dev == dev && dump.handle == handle);
    // What tc sent: a listing has the buckets as times.
    let sent = dump.and_then(|dump| reading.maker_of_qdisc(dump)).and_then(|op| match &reading.ops[op] {
        Op::Qdisc(op) => op.params.as_ref(),
        _ => None,
    });
    match (dump.map(|dump| dump.kind), sent) {
        (Some(Kind::Tbf), Some(QdiscParams::Tbf(tbf)))
            if tbf.peak.is_some() && tbf.peak_burst < tbf.burst =>
        {
            "it is longer than the mtu of the peakrate, which never lets it through"
        }
        (Some(Kind::Tbf), _) => "it is longer than the bucket (burst) can ever hold",
        _ => "it is longer than the qdisc takes",
    }
}

/// The stops that belong to a packet's arrival: from the device that redirected it on.
fn arriving(moments: &[Moment], device: DeviceId) -> &[Moment] {
    let led = moments.first().is_some_and(|first| first.stop.device == device && first.stop.led_to.is_some());
    let more = moments.iter().take_while(|moment| moment.stop.led_to.is_some()).count();
    if led { &moments[..(more + 1).min(moments.len())] } else { &[] }
}

fn moment(glimpse: Glimpse<'_>, packet: &Packet) -> Moment {
    let Glimpse { gateway, now, stop, head, mark, priority } = glimpse;
    let bucket = stop.leaf().and_then(|leaf| {
        let what = match leaf.kind {
            Kind::Sfq => "slot",
            Kind::FqCodel => "flow",
            _ => return None,
        };
        // A qdisc without a handle lists its flows under none.
        let classes = gateway.classes(now, stop.device);
        let mut flows =
            classes.iter().filter(|class| class.kind == leaf.kind && class.classid.qdisc() == leaf.qdisc);
        let flow = flows.find(|class| class.stats.is_some_and(|stats| stats.qlen > 0))?;
        let filtered = gateway.own_filters(now, stop.device, leaf.qdisc).is_ok_and(|own| !own.is_empty());
        // Filters name them from 1 on.
        Some(match filtered {
            true => format!("{what} {} of it by its own filters", flow.classid),
            false => format!("{what} {} of it by the key drawn here", flow.classid.minor().wrapping_sub(1)),
        })
    });
    let name = gateway.name(stop.device).to_owned();
    let from_other = match dissect(&head, Dissector::Legacy).addrs {
        Addrs::V4(source, _) => packet.source != IpAddr::from(source),
        Addrs::V6(source, _) => packet.source != IpAddr::from(source),
        Addrs::None => false,
    };
    Moment {
        stop: stop.clone(),
        name,
        spec: gateway.spec(stop.device),
        head,
        mark,
        priority,
        bucket,
        from_other,
        refused: None,
    }
}

/// The name of an EtherType, as tc has it.
pub(crate) fn ethertype_name(number: u16) -> String {
    match number {
        ethertype::IPV4 => "IPv4".into(),
        ethertype::IPV6 => "IPv6".into(),
        ethertype::ARP => "ARP".into(),
        ethertype::VLAN => "802.1Q".into(),
        other => format!("{other:#06x}"),
    }
}
