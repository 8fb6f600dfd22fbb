#![forbid(unsafe_code)]
//! What a policy means: its mistakes, the way of a packet through it, its tree.
//!
//! Everything here begins with a [`PolicyModel`]: the machine that a policy produced, with the words of the
//! files that did so. Every claim is shown by the engine itself: a [`Finding`] that is more than a note
//! carries a [`Witness`].

pub mod bytes;
pub mod checked;
mod differ;
mod drive;
mod explain;
pub mod explained;
mod finding;
mod index;
mod l4s;
mod lost;
mod makers;
mod packet;
mod probe;
mod reach;
mod reading;
mod rules;
mod sets;
mod step;
mod tree;
mod uses;
mod walk;
mod words;

pub use differ::{ClassPair, PacketKind, pairs};
pub use explain::{EgressError, End, ExplainStep, Explainer, Scene, StepOutcome, Story};
pub use finding::{Edit, Finding, Fix, Level, Rule, Witness};
pub use packet::{ANY_PORT, CODE_POINTS, Framing, Packet, PacketError, has_ports, is_icmp, of_frame};
pub use probe::{Loss, PacketEntry, ProbeResult, Prober, Stop};
pub use reach::{Arrival, Candidate, Reached};
pub use reading::{
    CARRIED_OUT_AT, CLSACT_EGRESS, CLSACT_INGRESS, ClassNames, Frame, PolicyInput, PolicyModel, Source,
    SourceLocation, Step, Word, ignored_failures, shown_class_name,
};
pub use rules::{assumed_speeds, check, not_known, not_known_of};
pub use tree::numbered_queues;
pub use uses::{MarkingRule, Uses, asked_mark};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
