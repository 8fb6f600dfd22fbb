//! Links: a queue, a rate, a delay. Packets in flight are in a line, so a link has one pending event however
//! many it carries; only those of a line with losses or reordering have one each.

mod change;
mod framing;
pub(crate) mod impair;
mod line;
pub(crate) mod trace;

pub use change::LinkAdjustment;
pub use framing::{Cells, LinkFraming};
pub use impair::{Impairment, LossModel, Reorder};
pub(crate) use line::{Link, Sending};
pub use line::{LinkId, LinkPeer, LinkQueue, LinkSpec, LinkStats};
pub use trace::Trace;
