//! What the actions of a filter do with a packet, and what they write on it for the filters behind them.

use super::counted::ActionCounts;
use super::filters::Here;
use std::cell::{Cell, RefCell};
use tidegate_packet::Head;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry};
use tidegate_policy::{Act, Control, Ctinfo, Mpls, MplsHow, Skbedit, VlanHow, VlanTag};

/// How often one packet is sent from action to action (`jump`), as in the engine.
const MOST_JUMPS: usize = 32;

/// What actions write on a packet during its explanation.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The packet's EtherType as filters compare it: labels of MPLS and tags of VLANs change it.
    pub(super) ethertype: Cell<u16>,
    /// What it was before each tag that was put on.
    untagged: RefCell<Vec<u16>>,
    /// The packet's mark.
    pub(super) mark: Cell<u32>,
    /// Its connection's mark, where it has a connection.
    pub(super) connmark: Cell<u32>,
    /// The packet's priority.
    pub(super) priority: Cell<u32>,
    /// It came back from an ifb: Linux passes over the actions of the first filter that matches and has any.
    pub(super) passed_over: Cell<bool>,
}

/// What actions come to for a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It takes the filter's class.
    Stays,
    /// It is gone from here.
    Goes,
    /// Continues with the next filter.
    Next,
    /// Continues with the filters of this chain.
    Chain(u32),
    /// Begins with the first filter again.
    Again,
    /// The engine alone knows.
    Open,
}

/// What the actions do, in the order in which they are carried out.
pub(super) fn acted(actions: &[ActionDump], here: Here<'_>, counts: ActionCounts<'_>) -> (String, Effect) {
    let carried = here.carried;
    let (mut at, mut jumps) = (0, 0);
    let mut written = String::new();
    while let Some(dump) = actions.get(at) {
        match &dump.action.act {
            Act::Skbedit(edit) => written.push_str(&carried.edited(edit, here.head)),
            Act::Connmark(_) => written.push_str(&carried.restored(u32::MAX, counts.went_over(at))),
            Act::Ctinfo(Ctinfo { mark: Some(mask), .. }) => {
                written.push_str(&carried.restored(*mask, counts.marked(at)));
            }
            Act::Mpls(Mpls { how: MplsHow::Push(to, _), .. }) => {
                carried.ethertype.set(*to);
                written.push_str("a label of MPLS is put on, ");
            }
            Act::Mpls(Mpls { how: MplsHow::Pop(to), .. }) => {
                carried.ethertype.set(*to);
                written.push_str("a label of MPLS is taken off, ");
            }
            Act::Vlan(vlan) => written.push_str(&carried.tagged(vlan.how, here.head)),
            _ => {}
        }
        let (before, control) = match &dump.action.act {
            Act::Mirred(mirred) if !mirred.copy => {
                let how = if mirred.arrives {
                    "it is redirected, as if it arrived by"
                } else {
                    "it is redirected to"
                };
                return (format!("{written}{how} {}", mirred.to), Effect::Goes);
            }
            Act::Gact(gact) => match gact.random {
                Some(other) => {
                    let (one, other) = (gact.control, other.control);
                    return (
                        format!("{written}an action chooses between {one} and {other} packet by packet"),
                        Effect::Open,
                    );
                }
                None => ("", gact.control),
            },
            Act::Police(police) if counts.went_over(at) => {
                ("it is over the policer's limits (rate, burst or mtu): ", police.exceed)
            }
            Act::Police(police) => ("the policer lets it through: ", police.conform.unwrap_or_default()),
            Act::Gate(_) => {
                return (
                    format!(
                        "{written}a gate lets it pass at some times and not at others; what follows holds for one moment"
                    ),
                    Effect::Open,
                );
            }
            Act::Mpls(Mpls { how: MplsHow::Modify(_) | MplsHow::DecTtl, .. }) => {
                let text = "mpls changes its label, or drops it if there is none or its time to live ends";
                return (format!("{written}{text}"), Effect::Open);
            }
            other => ("", other.controls().first().copied().unwrap_or_default()),
        };
        at += 1;
        match control {
            Control::Pipe => {}
            Control::Jump(to) => {
                jumps += 1;
                at = to as usize;
                if at == 0 || at > actions.len() || jumps >= MOST_JUMPS {
                    break;
                }
            }
            control => {
                let (text, effect) = decided(control);
                return (format!("{written}{before}{text}"), effect);
            }
        }
    }
    (format!("{written}it passes"), Effect::Stays)
}

/// What a decision means for a packet.
fn decided(control: Control) -> (String, Effect) {
    match control {
        Control::Drop => ("it is dropped".to_owned(), Effect::Goes),
        Control::Stolen | Control::Trap | Control::Number(Control::QUEUED) => {
            ("it is taken away".to_owned(), Effect::Goes)
        }
        Control::Continue | Control::Number(_) => {
            ("the next filter is evaluated (continue)".to_owned(), Effect::Next)
        }
        Control::Reclassify => ("all filters are evaluated again (reclassify)".to_owned(), Effect::Again),
        Control::Goto(chain) => {
            (format!("the filters of chain {chain} are evaluated (goto)"), Effect::Chain(chain))
        }
        Control::Pass | Control::Pipe | Control::Jump(_) => ("it passes".to_owned(), Effect::Stays),
    }
}

/// The actions of a filter.
pub(super) fn actions_of(dump: &FilterDump) -> &[ActionDump] {
    match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions,
        _ => &[],
    }
}

/// Whether a filter writes a mark or a priority that can be followed step by step.
pub(super) fn edits(dump: &FilterDump) -> bool {
    actions_of(dump)
        .iter()
        .any(|dump| matches!(dump.action.act, Act::Skbedit(_) | Act::Connmark(_) | Act::Ctinfo(_)))
}

/// Whether a filter puts labels of MPLS or tags of VLANs on packets, or takes them off.
pub(super) fn labels(dump: &FilterDump) -> bool {
    let FilterEntry::Filter { actions, .. } = &dump.entry else { return false };
    let how = |dump: &ActionDump| match &dump.action.act {
        Act::Mpls(mpls) => matches!(mpls.how, MplsHow::Push(..) | MplsHow::Pop(_)),
        Act::Vlan(vlan) => matches!(vlan.how, VlanHow::Push(_) | VlanHow::Pop),
        _ => false,
    };
    actions.iter().any(how)
}

impl Carried {
    /// Writes what `skbedit` sets, and returns it in words: `its mark becomes 0x5, `.
    fn edited(&self, edit: &Skbedit, head: &Head) -> String {
        let mut text = String::new();
        if let Some((value, mask)) = edit.mark {
            let mask = mask.unwrap_or(u32::MAX);
            self.mark.set(self.mark.get() & !mask | value & mask);
            text.push_str(&format!("its mark becomes {:#x}, ", self.mark.get()));
        }
        let by_dsfield =
            edit.inherit_dsfield && matches!(self.ethertype.get(), ethertype::IPV4 | ethertype::IPV6);
        let inherited = by_dsfield.then(|| u32::from(head.dsfield() >> 2));
        if let Some(priority) = inherited.or(edit.priority) {
            self.priority.set(priority);
            text.push_str(&format!("its priority becomes {}, ", super::rules::priority(priority)));
        }
        text
    }

    /// Puts a VLAN's tag on or takes it off, and returns that in words; a changed one leaves the EtherType.
    fn tagged(&self, how: VlanHow, head: &Head) -> String {
        let mut before = self.untagged.borrow_mut();
        match how {
            VlanHow::Push(VlanTag { id, protocol, .. }) => {
                before.push(self.ethertype.get());
                self.ethertype.set(if protocol == 0 { VlanTag::DOT1Q } else { protocol });
                format!("a tag of VLAN {id} is put on, ")
            }
            VlanHow::Pop => {
                self.ethertype.set(before.pop().unwrap_or_else(|| head.ethertype()));
                "its outermost tag of a VLAN is taken off, ".to_owned()
            }
            VlanHow::Modify(_) => String::new(),
        }
    }

    /// Gives the packet these bits of its connection's mark, and returns that in words; nothing where it has
    /// no connection.
    fn restored(&self, mask: u32, has_connection: bool) -> String {
        if !has_connection {
            return "it has no connection whose mark it could get, ".to_owned();
        }
        self.mark.set(self.connmark.get() & mask);
        format!("its mark becomes its connection's, {:#x}, ", self.mark.get())
    }
}
