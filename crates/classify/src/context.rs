//! A packet that is classified, and the actions that a filter has.

use crate::actions::Actions;
use crate::query::{ActionInput, Done, FilterRandom, FilterResult, FilterVerdict};
use alloc::vec::Vec;
use tidegate_packet::{Handle, Pkt, Pool, Time};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Action, Control, TcError};

/// How often one packet may jump in a list of actions.
const MOST_JUMPS: u32 = 32;

/// A question: which class for this packet?
pub struct ClassifyContext<'a> {
    /// Where the packet lives.
    pub pool: &'a mut Pool,
    /// The packet itself.
    pub pkt: &'a Pkt,
    /// What actions must know.
    pub meter: ActionInput,
    /// The machine's actions.
    pub actions: &'a mut Actions,
    /// Where random draws come from.
    pub random: FilterRandom<'a>,
    /// Bytes of the link header.
    pub link_header: u32,
}

impl ClassifyContext<'_> {
    /// Has the packet go through the action in a place.
    #[inline]
    fn run(&mut self, place: u32) -> Done {
        self.actions.run(place, self.pool, self.pkt, self.meter, &mut self.random)
    }
}

/// What listings of filters need besides the filters.
#[derive(Clone, Copy)]
pub struct DumpContext<'a> {
    /// The time of the listing.
    pub now: Time,
    /// The machine's actions.
    pub actions: &'a Actions,
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
    pub(crate) fn run(&self, class: Handle, context: &mut ClassifyContext<'_>) -> FilterResult {
        // The next filter that matches is the one whose actions are skipped, also if it has none (6.1 and
        // 7.2; recorded: skip-*).
        let passed_over = core::mem::replace(&mut context.meter.passed_over, false);
        if passed_over || self.places.is_empty() {
            return FilterResult::Decided(FilterVerdict::Class(class));
        }
        self.carry_out(class, context)
    }

    fn carry_out(&self, class: Handle, context: &mut ClassifyContext<'_>) -> FilterResult {
        let (mut at, mut jumps) = (0, 0);
        while let Some(place) = self.places.get(at) {
            at += 1;
            match context.run(*place) {
                Done::Control(Control::Pipe) => {}
                Done::Control(Control::Jump(to)) => {
                    // Counted from the first action; a jump too far or one too many continues with the next
                    // action.
                    jumps += 1;
                    at = to as usize;
                    if at == 0 || at > self.places.len() || jumps >= MOST_JUMPS {
                        break;
                    }
                }
                Done::Control(Control::Pass) => break,
                Done::Control(Control::Drop) => return FilterResult::Decided(FilterVerdict::Drop),
                Done::Control(Control::Stolen | Control::Trap) => {
                    return FilterResult::Decided(FilterVerdict::Stolen);
                }
                Done::Control(Control::Number(Control::QUEUED)) => {
                    return FilterResult::Decided(FilterVerdict::Stolen);
                }
                // Whatever is below zero has the search continue (6.1).
                Done::Control(Control::Continue | Control::Number(_)) => return FilterResult::No,
                Done::Control(Control::Reclassify) => return FilterResult::Restart,
                Done::Control(Control::Goto(chain)) => return FilterResult::Goto(chain),
                Done::Away(verdict) => return FilterResult::Decided(verdict),
            }
        }
        FilterResult::Decided(FilterVerdict::Class(class))
    }

    pub(crate) fn dump(&self, context: DumpContext<'_>) -> Vec<ActionDump> {
        let dump = |place: &u32| context.actions.dump_at(*place, context.now);
        let mut all: Vec<ActionDump> = self.places.iter().filter_map(dump).collect();
        all.iter_mut().for_each(|dump| dump.action.old_style = self.old_style);
        all
    }
}
