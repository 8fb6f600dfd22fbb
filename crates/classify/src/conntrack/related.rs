//! Error messages belong to the connection whose packet they quote (RFC 792, RFC 4443).

use super::membership::Membership;
use super::table::Conntrack;
use super::tuple::{Tuple, tuple};
use crate::headers::Outer;
use tidegate_packet::header::proto;
use tidegate_packet::{Pkt, Pool, Time};
use tidegate_policy::netfilter::Connstate as State;

/// Bytes of ICMP's own header before what is quoted.
const HEADER: usize = 8;

impl Conntrack {
    /// What an error message is to which connection; `None`: the packet is none.
    ///
    /// It goes the way of answers to what it quotes. It counts for nothing and keeps nothing alive.
    pub(super) fn related(
        &mut self,
        zone: u16,
        now: Time,
        outer: &Outer,
        pool: &Pool,
        pkt: &Pkt,
    ) -> Option<(State, Option<Membership>)> {
        let kind = outer.icmp?.0;
        let is_error = match outer.protocol {
            Some(proto::ICMP) => matches!(kind, 3 | 4 | 5 | 11 | 12),
            _ => matches!(kind, 1..=4),
        };
        if !is_error {
            return None;
        }
        let quoted = Outer::read(outer.payload(pool, pkt).get(HEADER..).unwrap_or(&[]));
        let quoted = tuple(&quoted).filter(|tuple| tuple.v6 == outer.v6);
        let found = quoted.and_then(|tuple| self.lookup(now, &Tuple { zone, ..tuple }.back()));
        Some(match found {
            Some(membership) => (State::Related, Some(membership)),
            None => (State::Invalid, None),
        })
    }
}
