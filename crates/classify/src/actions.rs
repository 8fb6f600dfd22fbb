//! The actions of one filter, carried out.

use alloc::vec::Vec;
use tidegate_packet::{Handle, Time};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control};

/// What the filters decide about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes this class.
    Class(Handle),
    /// It is dropped.
    Drop,
    /// It leaves by another device, by number ([`Act::NOWHERE`]: by one that is gone).
    Redirect(u32),
}

/// What actions must know of the packet and the moment.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The packet's bytes, as they are counted where it is.
    pub len: u32,
    /// The present time.
    pub now: Time,
    /// The actions of the next filter that matches and has some are passed over: the packet came back from the device they led it to.
    pub passed_over: bool,
}

/// What one filter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It does not match.
    No,
    /// This.
    Decided(Verdict),
    /// All are to be asked again.
    Again,
}

#[derive(Debug)]
struct Live {
    action: Action,
    bytes: u64,
    packets: u64,
    drops: u32,
    installed: Time,
    used: Time,
    first_used: Option<Time>,
}

/// The actions of one filter, in order.
#[derive(Debug, Default)]
pub(crate) struct Actions(Vec<Live>);

impl Actions {
    pub(crate) fn new(actions: &[Action], now: Time) -> Actions {
        let live = |action: &Action| Live {
            action: action.clone(),
            bytes: 0,
            packets: 0,
            drops: 0,
            installed: now,
            used: now,
            first_used: None,
        };
        Actions(actions.iter().map(live).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives up those of a filter that is changed, unless the change names none.
    pub(crate) fn take_over(&mut self, new: Actions) {
        if !new.is_empty() {
            *self = new;
        }
    }

    /// Carries them out on a packet for which the filter names `class`.
    #[inline]
    pub(crate) fn run(&mut self, class: Handle, meter: &mut Meter) -> Said {
        if self.0.is_empty() || core::mem::replace(&mut meter.passed_over, false) {
            return Said::Decided(Verdict::Class(class));
        }
        let Meter { len, now, .. } = *meter;
        for live in &mut self.0 {
            live.bytes += u64::from(len);
            live.packets += 1;
            live.used = now;
            live.first_used.get_or_insert(now);
            match live.action.act {
                Act::Redirect { device, .. } => {
                    live.drops += u32::from(device == Act::NOWHERE);
                    return Said::Decided(Verdict::Redirect(device));
                }
                Act::Gact(Control::Drop) => {
                    live.drops += 1;
                    return Said::Decided(Verdict::Drop);
                }
                Act::Gact(Control::Continue) => return Said::No,
                Act::Gact(Control::Reclassify) => return Said::Again,
                Act::Gact(Control::Pass | Control::Stolen) => break,
                Act::Gact(Control::Pipe) => {}
            }
        }
        Said::Decided(Verdict::Class(class))
    }

    /// A device is gone: nothing is led there any more.
    pub(crate) fn forget_device(&mut self, gone: u32) {
        for live in &mut self.0 {
            if let Act::Redirect { device, .. } = &mut live.action.act
                && *device == gone
            {
                *device = Act::NOWHERE;
            }
        }
    }

    pub(crate) fn dump(&self, now: Time) -> Vec<ActionDump> {
        let dump = |live: &Live| ActionDump {
            action: live.action.clone(),
            bytes: live.bytes,
            packets: live.packets,
            drops: live.drops,
            installed: now.since(live.installed).0,
            used: now.since(live.used).0,
            first_used: live.first_used.map(|at| now.since(at).0),
        };
        self.0.iter().map(dump).collect()
    }
}
