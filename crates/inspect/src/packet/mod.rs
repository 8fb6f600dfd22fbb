//! A packet as people describe it, and as the machine sees it.

mod fields;
mod frame;
mod names;
mod words;

pub use fields::{ANY_PORT, Packet, has_ports, is_icmp};
pub use frame::{Framing, of_frame};
pub use names::CODE_POINTS;
pub(crate) use names::protocol_word;
pub use words::PacketError;
pub(crate) use words::state_name;
