//! Actions: the machine's table of them, and the lists that filters have.
//!
//! An action stands in one table of the machine, because several filters may have the same one (a policer at clsact
//! and in a filter meters both with one bucket). Filters hold places in it. References are released late: as in the
//! kernel, what a deleted filter had stays until the next operation, or where releases are deferred until time goes
//! on.

mod connection;
mod csum;
mod live;
mod nat;
mod pedit;
mod police;
mod skbmod;
mod table;
mod vlan;

pub use police::Policers;
pub use table::Actions;

use crate::blocks::Blocks;
use crate::list::Asked;
use alloc::vec::Vec;
use tidegate_packet::{Handle, Pkt, Time};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Action, Control, TcError};

/// How often one packet may jump in a list of actions.
const MOST_JUMPS: u32 = 32;

/// What the filters decide about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes this class.
    Class(Handle),
    /// It is dropped.
    Drop,
    /// It is taken away, and nobody counts it as lost.
    Stolen,
    /// It is another device's.
    Redirect(Way),
}

/// Where a packet is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The device's number ([`tidegate_policy::Act::NOWHERE`]: one that is gone).
    pub to: u32,
    /// It arrives there; else it leaves there.
    pub arrives: bool,
    /// The place in the table of the action that redirects it: see [`Actions::note_refused`].
    pub by: u32,
}

/// What actions must know of the packet and the moment.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The packet's bytes, as they are counted where it is.
    pub len: u32,
    /// The same with a link header that was taken off there: what a policer's mtu is compared with.
    pub whole: u32,
    /// The present time.
    pub now: Time,
    /// The actions of the next filter that matches and has some are passed over: the packet came back from the device they led it to.
    pub passed_over: bool,
}

/// A copy of a packet that an action leads to another device.
#[derive(Debug)]
pub struct Mirrored {
    /// The copy, which whoever takes it must offer or release.
    pub pkt: Pkt,
    /// The device that it goes to, and in which direction.
    pub way: Way,
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
    /// Those of this chain are to be asked.
    Goto(u32),
}

/// What an action makes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Things go on so.
    Control(Control),
    /// The packet is another device's.
    Away(Verdict),
}

/// The actions of one filter, in order: places in the machine's table.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    places: Vec<u32>,
    /// They are one policer, written without `action`.
    old_style: bool,
}

impl Bound {
    /// Takes hold of the actions a filter names, making those that are not there.
    pub(crate) fn new(actions: &[Action], table: &mut Actions, now: Time) -> Result<Bound, TcError> {
        let places = table.bind(actions, now)?;
        Ok(Bound { places, old_style: actions.iter().any(|action| action.old_style) })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn places(&self) -> &[u32] {
        &self.places
    }

    /// Carries them out on a packet for which the filter names `class`.
    #[inline]
    pub(crate) fn run(&self, class: Handle, asked: &mut Asked<'_>) -> Said {
        if self.places.is_empty() || core::mem::replace(&mut asked.meter.passed_over, false) {
            return Said::Decided(Verdict::Class(class));
        }
        self.carry_out(class, asked)
    }

    fn carry_out(&self, class: Handle, asked: &mut Asked<'_>) -> Said {
        let (mut at, mut jumps) = (0, 0);
        while let Some(place) = self.places.get(at) {
            at += 1;
            match table::run(*place, asked) {
                Done::Control(Control::Pipe) => {}
                Done::Control(Control::Jump(to)) => {
                    // Counted from the first action; whoever jumps too far or too often goes on his way.
                    jumps += 1;
                    at = to as usize;
                    if at == 0 || at > self.places.len() || jumps >= MOST_JUMPS {
                        break;
                    }
                }
                Done::Control(Control::Pass) => break,
                Done::Control(Control::Drop) => return Said::Decided(Verdict::Drop),
                Done::Control(Control::Stolen | Control::Trap) => return Said::Decided(Verdict::Stolen),
                Done::Control(Control::Number(Control::QUEUED)) => return Said::Decided(Verdict::Stolen),
                // Whatever is below zero has the search go on (6.1).
                Done::Control(Control::Continue | Control::Number(_)) => return Said::No,
                Done::Control(Control::Reclassify) => return Said::Again,
                Done::Control(Control::Goto(chain)) => return Said::Goto(chain),
                Done::Away(verdict) => return Said::Decided(verdict),
            }
        }
        Said::Decided(Verdict::Class(class))
    }

    pub(crate) fn dump(&self, told: Told<'_>) -> Vec<ActionDump> {
        let dump = |place: &u32| told.actions.dump_at(*place, told.now);
        let mut all: Vec<ActionDump> = self.places.iter().filter_map(dump).collect();
        all.iter_mut().for_each(|dump| dump.action.old_style = self.old_style);
        all
    }
}

/// What listings of filters are told with.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// The present.
    pub now: Time,
    /// The machine's actions.
    pub actions: &'a Actions,
}

impl<'a> Told<'a> {
    /// The machine's shared blocks.
    pub fn blocks(&self) -> &'a Blocks {
        &self.actions.blocks
    }
}
