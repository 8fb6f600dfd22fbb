//! What is in a packet of its connection ([`Meta::connection`]): which one, its direction, its state.

use tidegate_packet::Meta;
use tidegate_policy::netfilter::Connstate as State;

/// A connection of a packet: number and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    pub(super) at: u32,
    /// It goes against the direction the connection began in.
    pub reply: bool,
}

/// In [`Meta::connection`]: an action looked the packet up, so the hooks do not.
pub(super) const BY_ACTION: u32 = 1 << 31;

/// What a packet's place in its connection looks like in [`Meta::connection`]: nothing, or number, direction
/// and state.
pub(super) fn pack(state: State, membership: Option<Membership>) -> u32 {
    let state = match state {
        State::New => 1,
        State::Established => 2,
        State::Related => 3,
        State::Invalid => 4,
        State::Untracked => 5,
    };
    let member = membership.map_or(0, |m| (m.at + 1) << 4 | u32::from(m.reply) << 3);
    member | state
}

/// The connection of a packet.
pub(super) fn membership(meta: &Meta) -> Option<Membership> {
    let at = ((meta.connection & !BY_ACTION) >> 4).checked_sub(1)?;
    Some(Membership { at, reply: meta.connection & 8 != 0 })
}

/// A packet comes to the hooks: what is known about it from before is forgotten, unless an action looked it
/// up.
pub fn begin_hooks(meta: &mut Meta) {
    if meta.connection & BY_ACTION == 0 {
        meta.connection = 0;
    }
}

/// Switches tracking off for a packet: it has no connection, and is untracked to all conditions.
pub fn untrack(meta: &mut Meta) {
    meta.connection = pack(State::Untracked, None);
}

/// The number of a packet's connection.
pub(crate) fn number(meta: &Meta) -> Option<u32> {
    membership(meta).map(|m| m.at)
}

/// What a packet is to its connection.
pub fn state(meta: &Meta) -> State {
    match meta.connection & 7 {
        1 => State::New,
        2 => State::Established,
        3 => State::Related,
        5 => State::Untracked,
        // A rule of the table raw comes before the lookup, so it finds no connection.
        _ => State::Invalid,
    }
}

/// Bytes of a network packet.
pub(crate) fn network_len(meta: &Meta) -> u64 {
    u64::from(meta.frame_len).saturating_sub(tidegate_packet::Head::ETHERNET as u64)
}

/// Did an action look the packet up, or take what it had, so that the hooks leave it as it is?
pub(super) fn is_settled(meta: &Meta) -> bool {
    meta.connection & BY_ACTION != 0 && (membership(meta).is_some() || state(meta) == State::Untracked)
}
