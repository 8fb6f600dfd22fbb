//! What is known about a kind whatever its parameters, and how it is requested.

/// What classes a kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassLayout {
    /// None.
    None,
    /// One for each flow; they come and go with packets, and are no part of what was configured.
    Flows,
    /// One for each priority of packets.
    Priorities,
    /// One, which may hold another qdisc.
    One,
    /// As many as the options give.
    Bands,
    /// Those that are made by command.
    Made,
}

/// Where filters may be attached.
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

/// How other values are given to an installed qdisc.
#[derive(Clone, Copy, Debug)]
pub enum Changes {
    /// Not at all, or not all of them: it must be made again.
    Recreate,
    /// One `change` sets all of them.
    InPlace,
    /// As [`InPlace`](Self::InPlace), while certain values stay as they are: see
    /// [`QdiscParams::fixed`](crate::QdiscParams::fixed).
    InPlaceIfSame,
    /// By repeating the command that made it, because dumps do not report all of its options.
    AsMade,
}

/// When a qdisc reports to its parent, while it is made with options, the packets that no longer fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reports {
    /// Never: nothing is dropped then, or the drop is not reported.
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
    /// The same estimate for a queue that no class and no rate serves.
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
        /// Flows that it tells apart at most, where that is few.
        flows: Option<u32>,
    },
    /// So little that a delay is held as long as senders heed drops and marks.
    ShortDelay {
        /// The delay, µs.
        us: u32,
        /// It drops nothing while no more than a frame waits, however long that takes.
        spares_frame: bool,
    },
}
