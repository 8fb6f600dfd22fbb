//! Actions that ask what connection tracking knows of a packet.
//!
//! A packet that has not passed netfilter's hooks yet (it has just arrived) is looked up by its own
//! addresses; nothing is begun for it.

use crate::conntrack::Conntrack;
use tidegate_packet::{FwMark, Pkt, Pool, Time};
use tidegate_policy::{Connmark, Control, Ctinfo, CtinfoCounts};

/// Bits of the DS field that are not the DSCP.
const ECN: u8 = 3;

/// Gives a packet its connection's mark. The second: there was a connection.
pub(super) fn connmark(
    connmark: Connmark,
    connections: &mut Conntrack,
    pool: &mut Pool,
    pkt: &Pkt,
    now: Time,
) -> (Control, bool) {
    let found = connections.known_mark(now, pool, pkt, connmark.zone);
    if let Some(mark) = found {
        pool.meta_mut(pkt).mark = FwMark(mark);
    }
    (connmark.control, found.is_some())
}

/// Gives a packet what is written in its connection's mark.
pub(super) fn ctinfo(
    ctinfo: Ctinfo,
    counts: &mut CtinfoCounts,
    connections: &mut Conntrack,
    pool: &mut Pool,
    pkt: &Pkt,
    now: Time,
) -> Control {
    let Some(mark) = connections.known_mark(now, pool, pkt, ctinfo.zone) else { return ctinfo.control };
    let meta = pool.meta_mut(pkt);
    if let Some((mask, state)) = ctinfo.dscp
        && (state == 0 || mark & state != 0)
    {
        let dscp = ((mark & mask) >> mask.trailing_zeros()) as u8;
        let wanted = dscp << 2 | meta.dsfield & ECN;
        counts.dscp_set += u64::from(wanted != meta.dsfield);
        meta.dsfield = wanted;
    }
    if let Some(mask) = ctinfo.mark {
        meta.mark = FwMark(mark & mask);
        counts.mark_set += 1;
    }
    ctinfo.control
}
