//! Actions: what a filter does with a packet beside naming a class (tc-actions(8)).

/// How things go on after an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The packet goes on its way (`pass`, `ok`).
    Pass,
    /// The packet is dropped (`drop`, `shot`).
    Drop,
    /// The filter counts as not matching (`continue`).
    Continue,
    /// All filters are asked again, from the first (`reclassify`).
    Reclassify,
    /// The filter's next action follows; after the last, the packet goes on (`pipe`).
    Pipe,
    /// The packet was taken away (`stolen`).
    Stolen,
}

impl Control {
    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            Control::Pass => "pass",
            Control::Drop => "drop",
            Control::Continue => "continue",
            Control::Reclassify => "reclassify",
            Control::Pipe => "pipe",
            Control::Stolen => "stolen",
        }
    }
}

/// An action of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What it does.
    pub act: Act,
    /// Its number among the machine's actions of its kind; 0: the machine chooses.
    pub index: u32,
}

/// What an action does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A decision and nothing else.
    Gact(Control),
    /// The packet leaves by another device (`mirred egress redirect dev X`).
    Redirect {
        /// The device's name, as given; in a dump, as it is called now (`*`: it is gone).
        to: String,
        /// Its number on the machine; [`Act::NOWHERE`] until the machine has looked it up, and when it is gone.
        device: u32,
    },
}

impl Act {
    /// No device.
    pub const NOWHERE: u32 = u32::MAX;

    /// The kind's name in tc.
    pub const fn kind(&self) -> &'static str {
        match self {
            Act::Gact(_) => "gact",
            Act::Redirect { .. } => "mirred",
        }
    }
}
