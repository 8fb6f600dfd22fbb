//! What filters and actions are given, and their results.

use tidegate_packet::{Handle, LinuxVersion, Pkt, RandomSource, Time, Wheel};
use tidegate_policy::Control;

/// What the filters decide about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// It takes this class.
    Class(Handle),
    /// It is dropped.
    Drop,
    /// It is consumed, and counted as dropped nowhere.
    Stolen,
    /// It is another device's.
    Redirect(Redirect),
}

/// Where a packet is redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The device's number ([`tidegate_policy::Act::NOWHERE`]: one that is gone).
    pub to: u32,
    /// It arrives there; otherwise it leaves there.
    pub arrives: bool,
    /// The place in the table of the action that redirects it: see [`crate::Actions::note_refused`].
    pub by: u32,
}

/// What actions must know of the packet and the moment.
#[derive(Clone, Copy, Debug)]
pub struct ActionInput {
    /// The packet's bytes, as they are counted where it is.
    pub len: u32,
    /// The length with a link header that was removed on arrival: what a policer's mtu is compared with.
    pub whole: u32,
    /// The present time.
    pub now: Time,
    /// The actions of the next filter that matches and has some are skipped: the packet came back from the
    /// device to which they redirected it.
    pub passed_over: bool,
    /// The release of Linux that actions follow.
    pub linux: LinuxVersion,
}

/// A packet on its way to another device: a copy that an action made, or the packet itself where it was
/// redirected while it moved inside its device's tree.
#[derive(Debug)]
pub struct Outgoing {
    /// The packet, which the caller must offer or release.
    pub pkt: Pkt,
    /// The device that it goes to, and in which direction.
    pub way: Redirect,
    /// Is it a copy?
    pub is_copy: bool,
}

/// The result of one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterResult {
    /// It does not match.
    No,
    /// It matches, and the packet's way is decided.
    Decided(FilterVerdict),
    /// Classification starts again from the first filter.
    Restart,
    /// Classification continues in this chain.
    Goto(u32),
}

/// What an action makes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Things continue so.
    Control(Control),
    /// The packet is another device's.
    Away(FilterVerdict),
}

/// Randomness for filters, with the memory that the first flow filter on a machine draws a key that later
/// ones share.
pub struct FilterRandom<'a> {
    /// Where draws come from.
    pub source: &'a mut dyn RandomSource,
    /// Has that key been drawn?
    pub flow_key_drawn: &'a mut bool,
}

impl FilterRandom<'_> {
    pub(crate) fn word(&mut self) -> u64 {
        self.source.word()
    }

    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.source.below(n)
    }

    /// The seed of a new flow filter.
    pub(crate) fn flow_seed(&mut self) -> u32 {
        self.source.word() as u32
    }

    pub(crate) fn first_flow_filter(&mut self) {
        if !*self.flow_key_drawn {
            *self.flow_key_drawn = true;
            let _ = self.source.key();
        }
    }
}

/// What a filter list needs to know of its owner.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    /// The qdisc's handle.
    pub qdisc: Handle,
    /// The qdisc or class whose list it is.
    pub holder: Handle,
    /// Does this class exist in it?
    pub has_class: &'a dyn Fn(Handle) -> bool,
    /// The present time.
    pub now: Time,
    /// Where timers are armed.
    pub wheel: &'a Wheel,
}
