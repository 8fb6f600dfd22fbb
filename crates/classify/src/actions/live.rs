//! One action at work: what it does to a packet, and what it counts.

use super::police::Policers;
use super::{connection, csum, gate, mpls, nat, pedit, skbmod, vlan};
use crate::conntrack::Conntrack;
use crate::query::{ActionInput, Done, FilterRandom, FilterVerdict, Outgoing, Redirect};
use alloc::vec::Vec;
use tidegate_packet::header::ethertype;
use tidegate_packet::{FwMark, LinuxChange, Pkt, Pool, Time};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{
    Act, Action, Control, CtinfoCounts, Errno, Gact, Gate, Mirred, Mpls, MplsFields, MplsHow, Police,
    RandomGact, SampleAction, Skbedit, Skbmod, TcError, TunnelFields, TunnelHow, TunnelKey, TunnelOptions,
    Vlan, VlanHow,
};

/// How often one packet may be redirected to another device in one go.
pub(super) const MAX_REDIRECTS: u32 = 4;

/// What actions reach beside the packet.
pub(super) struct ActionContext<'a> {
    /// Copies on their way to other devices.
    pub(super) outgoing: &'a mut Vec<Outgoing>,
    /// The place of the action itself.
    pub(super) place: u32,
    /// At so many devices filters had the packet arrive before.
    pub(super) redirects_before: u32,
    /// The devices that are down.
    pub(super) down: &'a [u32],
    /// The machine's connections.
    pub(super) connections: &'a mut Conntrack,
    /// The machine's policers.
    pub(super) policers: &'a mut Policers,
}

/// An action with its counters.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) action: Action,
    /// The number of its policer.
    pub(super) policer: Option<u32>,
    /// It was made on its own and stays without filters.
    pub(super) kept: bool,
    /// Filters that have it.
    pub(super) binds: u32,
    pub(super) counted_old: bool,
    made_old: bool,
    bytes: u64,
    packets: u64,
    drops: u32,
    overlimits: u32,
    /// Packets that a `random determ` saw.
    turns: u32,
    installed: Time,
    used: Time,
    first_used: Option<Time>,
    ctinfo: CtinfoCounts,
    gate: gate::State,
}

impl Live {
    pub(super) fn new(action: &Action, now: Time) -> Result<Live, TcError> {
        check(action)?;
        let mut action = action.clone();
        let mut gate = gate::State::default();
        if let Act::Gate(new) = &mut action.act {
            *new = gate::merged(&Gate::default(), new);
            gate = gate::State::new(new, now);
        }
        Ok(Live {
            policer: None,
            made_old: action.old_style,
            action,
            kept: false,
            binds: 0,
            counted_old: false,
            bytes: 0,
            packets: 0,
            drops: 0,
            overlimits: 0,
            turns: 0,
            installed: now,
            used: now,
            first_used: None,
            ctinfo: CtinfoCounts::default(),
            gate,
        })
    }

    /// Gives it other parameters; what it counted stays.
    pub(super) fn change(&mut self, action: &Action, now: Time) -> Result<(), TcError> {
        if let (Act::Gate(old), Act::Gate(new)) = (&self.action.act, &action.act) {
            let gate = gate::merged(old, new);
            gate::check(&gate)?;
            self.gate = gate::State::new(&gate, now);
            self.action.act = Act::Gate(gate);
            self.take_labels(action);
            self.action.no_percpu = action.no_percpu;
            return Ok(());
        }
        check(action)?;
        match (&mut self.action.act, &action.act) {
            // A change without another decision keeps the one there is.
            (Act::Gact(old), Act::Gact(new)) => {
                *old = Gact { control: new.control, random: new.random.or(old.random) }
            }
            (old, new) => *old = new.clone(),
        }
        self.take_labels(action);
        self.action.no_percpu = action.no_percpu;
        Ok(())
    }

    /// A command that names an existing action sets its cookie and its hardware counting again.
    pub(super) fn take_labels(&mut self, action: &Action) {
        if !action.cookie.is_empty() {
            self.action.cookie.clone_from(&action.cookie);
        }
        self.action.card = action.card;
    }

    #[inline]
    pub(super) fn run(
        &mut self,
        pool: &mut Pool,
        pkt: &Pkt,
        meter: ActionInput,
        random: &mut FilterRandom<'_>,
        backends: &mut ActionContext<'_>,
    ) -> Done {
        if backends.redirects_before >= MAX_REDIRECTS && matches!(self.action.act, Act::Mirred(_)) {
            // It goes round: nothing is counted but that.
            self.overlimits += 1;
            return Done::Control(Control::Drop);
        }
        self.bytes += u64::from(meter.len);
        self.packets += 1;
        self.used = meter.now;
        self.first_used.get_or_insert(meter.now);
        let control = match &self.action.act {
            Act::Gact(gact) => {
                let control = decide(gact, &mut self.turns, random);
                self.drops += u32::from(control == Control::Drop);
                control
            }
            Act::Police(police) => {
                let policers = &mut backends.policers;
                let control = if self.policer.is_none_or(|number| policers.conforms(number, meter)) {
                    police.conform.unwrap_or_default()
                } else {
                    self.overlimits += 1;
                    police.exceed
                };
                self.drops += u32::from(control == Control::Drop);
                control
            }
            Act::Ct(ct) => {
                if backends.connections.act(ct, meter.now, pool, pkt) {
                    ct.control
                } else {
                    self.drops += 1;
                    Control::Drop
                }
            }
            Act::Simple(simple) => simple.control,
            Act::Sample(sample) => {
                // Drawn for each packet, even without a listener.
                random.below(sample.rate.unwrap_or(1));
                sample.control
            }
            Act::Skbedit(edit) => edited(edit, pool, pkt),
            Act::Connmark(mark) => {
                let (control, found) =
                    connection::connmark(*mark, backends.connections, pool, pkt, meter.now);
                self.overlimits += u32::from(found);
                control
            }
            Act::Ctinfo(info) => {
                connection::ctinfo(*info, &mut self.ctinfo, backends.connections, pool, pkt, meter.now)
            }
            Act::Mirred(mirred) => {
                if mirred.device == Act::NOWHERE || backends.down.contains(&mirred.device) {
                    self.overlimits += 1;
                    return Done::Control(if mirred.copy { mirred.control } else { Control::Drop });
                }
                return mirror(mirred, pool, pkt, backends);
            }
            Act::Nat(translation) => {
                self.drops += u32::from(translation.control == Control::Drop);
                nat::carry_out(translation, pool, pkt)
            }
            Act::Pedit(pedit) => {
                let (control, all) = pedit::carry_out(pedit, pool, pkt, meter.linux);
                self.overlimits += u32::from(!all && meter.linux.has(LinuxChange::PeditCounts));
                control
            }
            Act::Csum(csum) => {
                self.drops += u32::from(csum.control == Control::Drop);
                csum::carry_out(csum, pool, pkt)
            }
            Act::Skbmod(skbmod) => {
                // So Linux counts what it drops here.
                self.overlimits += u32::from(skbmod.control == Control::Drop);
                skbmod::carry_out(skbmod, pool, pkt)
            }
            Act::Vlan(vlan) => vlan::carry_out(vlan, pool, pkt),
            Act::Mpls(mpls) => mpls::carry_out(mpls, pool, pkt).unwrap_or_else(|| {
                self.drops += 1;
                Control::Drop
            }),
            // No device here reads the metadata of tunnels.
            Act::TunnelKey(tunnel) => tunnel.control,
            Act::Gate(gate) => match self.gate.admit(gate, meter.len, meter.now) {
                gate::Passage::Passes => gate.control,
                closed => {
                    self.drops += 1;
                    self.overlimits += u32::from(closed == gate::Passage::TooMuch);
                    Control::Drop
                }
            },
        };
        Done::Control(control)
    }

    /// The device to which it redirected a packet refused it.
    pub(super) fn note_refused(&mut self) {
        self.overlimits += 1;
    }

    pub(super) fn dump(&self, now: Time) -> ActionDump {
        ActionDump {
            action: self.action.clone(),
            bytes: self.bytes,
            packets: self.packets,
            drops: self.drops,
            overlimits: self.overlimits,
            binds: self.binds,
            refs: self.binds + u32::from(self.kept),
            counted_old: self.counted_old,
            made_old: self.made_old,
            installed: age(self.installed, now),
            used: age(self.used, now),
            first_used: self.first_used.map(|at| age(at, now)),
            ctinfo: self.ctinfo,
        }
    }
}

/// The age of an action: the difference of two timer ticks, not of two times. (The tick of a machine with
/// HZ=1000; slower ones differ in hundredths of a second that no listing shows.)
fn age(since: Time, now: Time) -> u64 {
    const TICK: u64 = 1_000_000;
    (now.0 / TICK).saturating_sub(since.0 / TICK) * TICK
}

/// The first number that is no VLAN's.
const NO_VLAN: u16 = 0x0fff;

/// What the kernel takes for no action.
fn check(action: &Action) -> Result<(), TcError> {
    if let Act::Gact(Gact { random: Some(RandomGact { control: Control::Goto(_), .. }), .. }) = &action.act {
        return Err(TcError::new(Errno::Inval, "goto chain not allowed on fallback"));
    }
    match &action.act {
        // The command gave only an index, and no action has it.
        Act::Mirred(mirred) if mirred.to.is_empty() => {
            Err(TcError::new(Errno::Inval, "act_mirred: Unknown mirred option"))
        }
        Act::Police(police) => check_police(police),
        // The command gave only an index, and no action has it.
        Act::Simple(simple) if simple.text.is_none() => Err(TcError::bare(Errno::Inval)),
        Act::Skbedit(edit) if (Skbedit { control: Control::Pass, ..*edit }) == Skbedit::default() => {
            Err(TcError::bare(Errno::Inval))
        }
        Act::Sample(SampleAction { rate: Some(0), .. }) => {
            Err(TcError::new(Errno::Inval, "invalid sample rate"))
        }
        Act::Sample(SampleAction { rate, group, .. }) if rate.is_none() || group.is_none() => {
            Err(TcError::new(Errno::Inval, "sample rate and group are required"))
        }
        Act::Pedit(pedit) if pedit.keys.is_empty() => {
            Err(TcError::new(Errno::Inval, "act_pedit: Pedit requires keys to be passed"))
        }
        Act::Skbmod(skbmod) if *skbmod == (Skbmod { control: skbmod.control, ..Skbmod::default() }) => {
            Err(TcError::bare(Errno::Inval))
        }
        Act::Vlan(Vlan { how: VlanHow::Push(tag) | VlanHow::Modify(tag), .. }) if tag.id >= NO_VLAN => {
            // Only the number of an action was named, and there is none.
            Err(TcError::bare(if tag.protocol == 0 { Errno::Inval } else { Errno::Range }))
        }
        Act::Mpls(mpls) => check_mpls(mpls),
        Act::TunnelKey(tunnel) => check_tunnel(tunnel),
        Act::Gate(gate) => gate::check(gate),
        _ => Ok(()),
    }
}

fn check_mpls(mpls: &Mpls) -> Result<(), TcError> {
    /// Numbers from here on are EtherTypes; below, lengths.
    const FIRST_ETHERTYPE: u16 = 0x600;
    match mpls.how {
        MplsHow::Pop(protocol) if protocol < FIRST_ETHERTYPE => {
            Err(TcError::new(Errno::Inval, "act_mpls: Invalid protocol type for MPLS pop"))
        }
        MplsHow::Push(_, fields) | MplsHow::Modify(fields)
            if fields.label == Some(MplsFields::IMPLICIT_NULL) =>
        {
            Err(TcError::new(Errno::Range, "act_mpls: MPLS label out of range"))
        }
        _ => Ok(()),
    }
}

fn check_tunnel(tunnel: &TunnelKey) -> Result<(), TcError> {
    let refused = |text: &'static str| Err(TcError::new(Errno::Inval, text));
    let fields = match &tunnel.how {
        None => return refused("Unknown tunnel key action"),
        Some(TunnelHow::Unset) => return Ok(()),
        Some(TunnelHow::Set(fields)) => fields,
    };
    if fields.source.is_ipv4() != fields.destination.is_ipv4() {
        return refused("Missing either ipv4 or ipv6 src and dst");
    }
    check_options(fields)
}

fn check_options(fields: &TunnelFields) -> Result<(), TcError> {
    /// The most bytes of data in an option of GENEVE that tc can send.
    const MOST_DATA: usize = 128;
    let refused = |text: &'static str| Err(TcError::new(Errno::Inval, text));
    match &fields.options {
        TunnelOptions::Geneve(all) => {
            for option in all {
                match option.data.len() {
                    0 => return refused("Missing tunnel key geneve option class, type or data"),
                    1..4 => return refused("Tunnel key geneve option data is less than 4 bytes long"),
                    len if len > MOST_DATA => return refused("Attribute failed policy validation"),
                    len if !len.is_multiple_of(4) => {
                        return refused("Tunnel key geneve option data is not a multiple of 4 bytes long");
                    }
                    _ => {}
                }
            }
            Ok(())
        }
        TunnelOptions::Erspan { version: 1, .. } => Ok(()),
        TunnelOptions::Erspan { version: 2, direction: Some(_), .. } => Ok(()),
        TunnelOptions::Erspan { version: 2, .. } => refused("Missing tunnel key erspan option dir or hwid"),
        TunnelOptions::Erspan { .. } => refused("Tunnel key erspan option ver is incorrect"),
        TunnelOptions::None | TunnelOptions::Vxlan(_) => Ok(()),
    }
}

fn check_police(police: &Police) -> Result<(), TcError> {
    let unknown = |control: Control| matches!(control, Control::Number(number) if number > Control::LAST);
    if unknown(police.exceed) {
        return Err(TcError::new(Errno::Inval, "invalid control action"));
    }
    if police.conform.is_some_and(unknown) {
        return Err(TcError::new(Errno::Inval, "invalid fallback control action"));
    }
    if matches!(police.conform, Some(Control::Goto(_))) {
        return Err(TcError::new(Errno::Inval, "goto chain not allowed on fallback"));
    }
    // tc's table of such short packets has one entry for each length, and the kernel takes no such table
    // (asked of Linux 6.1).
    if (police.rate.is_some() || police.peak.is_some()) && (1..=255).contains(&police.mtu) {
        return Err(TcError::bare(Errno::NoMem));
    }
    if police.average.is_some() {
        // There is no measurement: a filter's rate estimator is not modelled.
        return Err(TcError::bare(Errno::Inval));
    }
    match (police.rate.is_some(), police.packets > 0, police.packets_burst > 0) {
        (_, true, false) | (_, false, true) => Err(TcError::new(
            Errno::Inval,
            "Both or neither packet-per-second burst and rate must be provided",
        )),
        (true, true, _) => Err(TcError::new(
            Errno::Inval,
            "packet-per-second and byte-per-second rate limits not allowed in same action",
        )),
        _ => Ok(()),
    }
}

fn decide(gact: &Gact, turns: &mut u32, random: &mut FilterRandom<'_>) -> Control {
    let Some(other) = gact.random else { return gact.control };
    let hit = if other.drawn {
        random.below(u32::from(other.one_in)) == 0
    } else {
        *turns = turns.wrapping_add(1);
        turns.is_multiple_of(u32::from(other.one_in))
    };
    if hit { other.control } else { gact.control }
}

/// The DS field that is found through the tags before it. Behind several tags there is none in packets of the
/// machine's own: the kernel does not know how long their link header is.
fn visible_dsfield(pool: &Pool, pkt: &Pkt) -> Option<u8> {
    let (meta, head) = (pool.meta(pkt), pool.head(pkt));
    let is_found = head.tags().len() < 2 || meta.came_in != 0;
    if !is_found || !matches!(head.ethertype(), ethertype::IPV4 | ethertype::IPV6) {
        return None;
    }
    match (head.has_lost_network(), head.ethertype()) {
        (false, _) => Some(meta.dsfield),
        (true, ethertype::IPV4) => head.byte_at(1),
        (true, _) => head.word(0).map(|word| (word >> 20) as u8),
    }
}

fn edited(edit: &Skbedit, pool: &mut Pool, pkt: &Pkt) -> Control {
    let inherited = visible_dsfield(pool, pkt);
    let meta = pool.meta_mut(pkt);
    if let Some(priority) = edit.priority {
        meta.priority = priority;
    }
    if let Some(dsfield) = inherited.filter(|_| edit.inherit_dsfield) {
        meta.priority = u32::from(dsfield >> 2);
    }
    if let Some((mark, mask)) = edit.mark {
        let mask = mask.unwrap_or(u32::MAX);
        meta.mark = FwMark(meta.mark.0 & !mask | mark & mask);
    }
    if let Some(queue) = edit.queue {
        meta.set_tx_queue(Some(queue.into()));
    }
    edit.control
}

fn mirror(mirred: &Mirred, pool: &mut Pool, pkt: &Pkt, backends: &mut ActionContext<'_>) -> Done {
    let way = Redirect { to: mirred.device, arrives: mirred.arrives, by: backends.place };
    if !mirred.copy {
        return Done::Away(FilterVerdict::Redirect(way));
    }
    if let Some(copy) = pool.copy(pkt) {
        backends.outgoing.push(Outgoing { pkt: copy, way, is_copy: true });
    }
    Done::Control(mirred.control)
}
