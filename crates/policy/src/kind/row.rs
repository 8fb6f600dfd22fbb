//! What is known of a kind whatever its parameters, and how it is asked for.

use super::{Kind, QdiscParams, ROWS};
use crate::spec::KindSpec;
use alloc::vec::Vec;

/// What classes a kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// None.
    None,
    /// One for each flow; they come and go with packets, and are no part of what was configured.
    Flows,
    /// One for each priority of packets.
    Priorities,
    /// One, in which another qdisc may stand.
    One,
    /// As many as its words say.
    Bands,
    /// Those that are made by command.
    Made,
}

/// Where filters may hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filters {
    /// Nowhere: it is not classful.
    None,
    /// Nowhere, though it is classful.
    Unsupported,
    /// On the qdisc.
    OfQdisc,
    /// On the qdisc and on its classes.
    OfClassesToo,
    /// On it, for what arrives at (or leaves) the device: nothing waits in it.
    OfDevice,
}

/// How packets wait that wait in it, not in a qdisc below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Until it is full: it is nothing but a queue.
    UntilFull,
    /// In a queue that drops or marks before it is full.
    KeptShort,
    /// In ways of its own, or not at all.
    Otherwise,
}

/// How it is given other values where it stands.
#[derive(Clone, Copy, Debug)]
pub enum Changes {
    /// Not at all, or not all of them: it must be made again.
    Anew,
    /// One `change` sets all of them.
    InPlace,
    /// The same, as long as something stays as it is.
    InPlaceIfSame {
        /// What must stay.
        fixed: fn(&QdiscParams) -> Option<u32>,
        /// Takes out of a command what `change` refuses to hear again.
        unsaid: fn(&mut QdiscParams),
    },
    /// By the one command that made it, because dumps do not tell all that it said.
    AsMade,
}

/// When it tells its parent, while it is made with options, what these left no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reports {
    /// Never: nothing is lost then, or no one is told.
    Never,
    /// When it accepts them.
    IfAccepted,
    /// Even when it refuses them.
    EvenIfRefused,
}

/// What may go before a packet that waits in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// As many packets as the queue holds, but one.
    Packets {
        /// What the queue is called.
        queue: &'static str,
        /// Packets that may wait in it.
        limit: u32,
    },
    /// The same, in a queue that no class and no rate serves.
    Unserved {
        /// What the queue is called.
        queue: &'static str,
        /// Packets that may wait in it.
        limit: u32,
    },
    /// All the bytes that the queue holds.
    Bytes {
        /// What the queue is called.
        queue: &'static str,
        /// Bytes that may wait in it.
        limit: u32,
    },
    /// A turn of each of the other flows.
    Turns {
        /// Bytes of a turn.
        quantum: u32,
    },
    /// So little that a delay is held as long as senders heed losses and marks.
    Held {
        /// The delay, µs.
        us: u32,
        /// It drops nothing while no more than a frame waits, however long that takes.
        spares_frame: bool,
    },
}

// A row is found by its kind's number.
const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        assert!(ROWS[at].kind as usize == at, "rows stand in the order of the enum");
        at += 1;
    }
};

/// How many kinds queue.
const QUEUEING: usize = {
    let (mut at, mut count) = (0, 0);
    while at < ROWS.len() {
        count += ROWS[at].queues as usize;
        at += 1;
    }
    count
};

const fn queueing() -> [Kind; QUEUEING] {
    let mut all = [Kind::Pfifo; QUEUEING];
    let (mut at, mut count) = (0, 0);
    while at < ROWS.len() {
        if ROWS[at].queues {
            all[count] = ROWS[at].kind;
            count += 1;
        }
        at += 1;
    }
    all
}

impl Kind {
    /// How many kinds there are, those that do not queue included: what a table indexed by kinds holds.
    pub const COUNT: usize = ROWS.len();

    /// Every kind that queues, in the order of this enum.
    pub const ALL: &[Kind] = &queueing();

    /// Every kind, in the order of this enum.
    pub fn every() -> impl Iterator<Item = Kind> {
        ROWS.iter().map(|row| row.kind)
    }

    /// What is known of it whatever its parameters.
    pub const fn spec(self) -> &'static KindSpec {
        &ROWS[self as usize]
    }

    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// What classes it has.
    pub const fn classes(self) -> Classes {
        self.spec().classes
    }

    /// Where filters may hang.
    pub const fn filters(self) -> Filters {
        self.spec().filters
    }

    /// How packets wait in it.
    pub const fn waits(self) -> Waits {
        self.spec().waits
    }

    /// How it is given other values.
    pub const fn changes(self) -> Changes {
        self.spec().changes
    }

    /// What a dump with these parameters does not tell and a command that makes the same again needs.
    pub fn untold(self, params: &QdiscParams) -> Option<&'static str> {
        (self.spec().untold)(params)
    }

    /// What may go before a packet that waits in one with these parameters.
    pub fn ahead(self, params: &QdiscParams) -> Vec<Ahead> {
        (self.spec().ahead)(params)
    }

    /// When it tells its parent what its options left no room for.
    pub const fn reports(self) -> Reports {
        self.spec().reports
    }

    /// Does it hold what it sends to a rate, whatever its parameters?
    pub const fn keeps_rate(self) -> bool {
        self.spec().keeps_rate
    }

    /// Are its classes flows, which come and go with packets? They are no part of what was configured.
    pub const fn classes_are_flows(self) -> bool {
        matches!(self.classes(), Classes::Flows)
    }

    /// Are its classes made by command?
    pub const fn classes_are_made(self) -> bool {
        matches!(self.classes(), Classes::Made)
    }

    /// Is it nothing but a place for filters on what arrives at a device, or leaves it?
    pub const fn is_hook(self) -> bool {
        matches!(self.filters(), Filters::OfDevice)
    }

    /// The kind that queues of that exact name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kind of that exact name in tc, be it one that does not queue. Qdiscs made outside have none there.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::every().find(|kind| kind.name() == name && *kind != Kind::Custom)
    }
}
