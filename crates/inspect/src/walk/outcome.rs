//! What a filter does with the packets that it gets: where they go, and what its actions write on them.

use crate::reading::PolicyModel;
use crate::sets::bdd::TooLarge;
use crate::walk::state::{Priority, State};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry};
use tidegate_policy::{Act, Control};

/// What happens to a packet that a filter matched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It takes this class.
    Class(Handle),
    /// It takes one of so many classes from this one on, by a hash or a field.
    Spread(Handle, u32),
    /// It is dropped.
    Drop,
    /// It leaves by another device.
    Redirect(String),
}

/// What an action writes on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// The mark, in the bits of a mask.
    Mark { value: u32, mask: u32 },
    /// The priority.
    Priority(u32),
    /// The mark of the packet's connection, in the bits of a mask, as the packet's.
    ConnectionMark { mask: u32 },
    /// The DSCP that the bits of the first mask hold in the mark of the packet's connection; where the second
    /// is not 0, only if one of its bits is set there.
    ConnectionDscp { mask: u32, state: u32 },
}

impl Write {
    /// What is on a packet after it.
    pub(super) fn on(self, state: State) -> State {
        match self {
            Write::Mark { value, mask } => State { mark: state.mark & !mask | value & mask, ..state },
            Write::Priority(number) => State { priority: Priority::Is(number), ..state },
            Write::ConnectionMark { mask } => State { mark: state.connmark & mask, ..state },
            Write::ConnectionDscp { mask, state: flag } if flag == 0 || state.connmark & flag != 0 => {
                let dscp = (state.connmark & mask).checked_shr(mask.trailing_zeros()).unwrap_or(0) as u8;
                State { ds: state.ds.then(0xfc, dscp << 2), ..state }
            }
            Write::ConnectionDscp { .. } => state,
        }
    }

    /// Does it ask for the packet's connection? Without one it writes nothing.
    pub(super) fn asks_connection(self) -> bool {
        matches!(self, Write::ConnectionMark { .. } | Write::ConnectionDscp { .. })
    }
}

/// Is what an action writes among what is followed?
pub(crate) fn followed(act: &Act) -> bool {
    writes(act).is_ok()
}

fn writes(act: &Act) -> Result<Vec<Write>, TooLarge> {
    match act {
        Act::Skbedit(edit) if edit.inherit_dsfield => Err(TooLarge),
        Act::Skbedit(edit) => {
            let mark = edit.mark.map(|(value, mask)| Write::Mark { value, mask: mask.unwrap_or(u32::MAX) });
            Ok(edit.priority.map(Write::Priority).into_iter().chain(mark).collect())
        }
        Act::Connmark(mark) if mark.zone == 0 => Ok(vec![Write::ConnectionMark { mask: u32::MAX }]),
        Act::Ctinfo(info) if info.zone == 0 => {
            let dscp = info.dscp.map(|(mask, state)| Write::ConnectionDscp { mask, state });
            let mark = info.mark.map(|mask| Write::ConnectionMark { mask });
            Ok(dscp.into_iter().chain(mark).collect())
        }
        Act::Connmark(_) | Act::Ctinfo(_) | Act::Ct(_) => Err(TooLarge),
        Act::Nat(_) | Act::Pedit(_) | Act::Skbmod(_) | Act::Vlan(_) | Act::Mpls(_) => Err(TooLarge),
        _ => Ok(Vec::new()),
    }
}

/// Where the packets go that a filter matched, and with what.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Of several, which it is only the engine knows.
    pub(super) verdicts: Vec<Verdict>,
    /// All or some go on to the filters behind it.
    pub(super) passes: bool,
    /// What is written on all but those that are dropped.
    pub(super) writes: Vec<Write>,
    /// Whether the filter matches is not known.
    pub(super) doubtful: bool,
}

impl Outcome {
    /// What actions make of a filter's verdict. One that changes a packet in another way than [`Write`] is
    /// more than this walk follows. `passed_over`: they are skipped.
    pub(super) fn of(
        actions: &[ActionDump],
        verdict: Verdict,
        passed_over: bool,
    ) -> Result<Outcome, TooLarge> {
        let mut outcome = Outcome::default();
        if passed_over {
            outcome.goes(verdict);
            return Ok(outcome);
        }
        for act in actions.iter().map(|dump| &dump.action.act) {
            let written = writes(act)?;
            // On some and not on others, it cannot be told of which.
            if !written.is_empty() && outcome.survivors() > 0 {
                return Err(TooLarge);
            }
            outcome.writes.extend(written);
            match act {
                // It is among those that arrive there.
                Act::Mirred(mirred) if !mirred.copy && mirred.arrives => {
                    outcome.goes(Verdict::Drop);
                    return Ok(outcome);
                }
                Act::Mirred(mirred) if !mirred.copy => {
                    outcome.goes(Verdict::Redirect(mirred.to.clone()));
                    return Ok(outcome);
                }
                _ => {}
            }
            if outcome.decided_by(&act.controls(), &verdict)? {
                return Ok(outcome);
            }
        }
        outcome.goes(verdict);
        Ok(outcome)
    }

    /// Nothing: the filter only counts.
    pub(super) fn none() -> Outcome {
        Outcome { passes: true, ..Outcome::default() }
    }

    /// The same of packets of which it is not known whether the filter matches.
    pub(super) fn in_doubt(&self) -> Outcome {
        Outcome { passes: true, doubtful: true, ..self.clone() }
    }

    /// How many ways there are for packets that are not dropped.
    pub(super) fn survivors(&self) -> usize {
        let kept = self.verdicts.iter().filter(|verdict| **verdict != Verdict::Drop).count();
        kept + usize::from(self.passes)
    }

    /// Is it the engine's to decide among several?
    pub(super) fn is_open(&self) -> bool {
        self.verdicts.len() + usize::from(self.passes) > 1
    }

    fn goes(&mut self, verdict: Verdict) {
        if !self.verdicts.contains(&verdict) {
            self.verdicts.push(verdict);
        }
    }

    /// Takes in how packets continue after an action; true: the actions behind it are for none.
    fn decided_by(&mut self, controls: &[Control], verdict: &Verdict) -> Result<bool, TooLarge> {
        let mut ends = true;
        for control in controls {
            match control {
                // A packet that restarts classification ends here again, until the kernel gives up: unless it
                // is another one by then. A policer may decide otherwise the second time.
                Control::Reclassify if !self.writes.is_empty() => return Err(TooLarge),
                Control::Drop | Control::Reclassify => self.goes(Verdict::Drop),
                Control::Stolen | Control::Trap | Control::Number(Control::QUEUED) => {
                    self.goes(Verdict::Drop)
                }
                Control::Pass => self.goes(verdict.clone()),
                Control::Continue | Control::Number(_) => self.passes = true,
                Control::Pipe => ends = false,
                Control::Jump(_) | Control::Goto(_) => return Err(TooLarge),
            }
        }
        Ok(ends)
    }
}

/// The actions of a filter.
pub(crate) fn acts(dump: &FilterDump) -> impl Iterator<Item = &Act> {
    let actions = match &dump.entry {
        FilterEntry::Filter { actions, .. } => &actions[..],
        _ => &[],
    };
    actions.iter().map(|dump| &dump.action.act)
}

/// The actions of a filter that packets come to: none behind one from which no packet goes on.
pub(crate) fn reached_acts(dump: &FilterDump) -> impl Iterator<Item = &Act> {
    let mut goes_on = true;
    acts(dump).take_while(move |act| std::mem::replace(&mut goes_on, !is_end(act)))
}

/// Does no packet go on behind an action?
pub(crate) fn is_end(act: &Act) -> bool {
    let goes_on = |control: &Control| matches!(control, Control::Pipe | Control::Jump(_));
    match act {
        // A redirected packet is gone, whatever control is given.
        Act::Mirred(mirred) if !mirred.copy => true,
        act => !act.controls().iter().any(goes_on),
    }
}

/// The devices that a filter redirects packets to.
pub(crate) fn redirects(dump: &FilterDump) -> impl Iterator<Item = &str> {
    reached_acts(dump).filter_map(Act::redirects_to)
}

/// Does a filter write what packets carry?
pub(crate) fn rewrites_any(dump: &FilterDump) -> bool {
    acts(dump).any(|act| writes(act).is_ok_and(|writes| !writes.is_empty()))
}

/// Does any filter write marks?
pub(crate) fn rewrites_marks(reading: &PolicyModel) -> bool {
    let marks = |act: &Act| match act {
        Act::Skbedit(edit) => edit.mark.is_some(),
        Act::Connmark(_) => true,
        Act::Ctinfo(info) => info.mark.is_some(),
        _ => false,
    };
    reading.filters.iter().flat_map(acts).any(marks)
}

/// Does any filter ask for the connections of packets?
pub(crate) fn asks_connections(reading: &PolicyModel) -> bool {
    let asks = |act: &Act| matches!(act, Act::Connmark(_) | Act::Ctinfo(_) | Act::Ct(_));
    reading.filters.iter().flat_map(acts).any(asks)
}
