//! What a packet that has not passed the hooks yet will be known as behind them.

use super::table::Conntrack;
use super::tuple::tuple;
use crate::headers::Outer;
use tidegate_packet::{Addrs, Pkt, Pool, Time};

impl Conntrack {
    /// Notes the untranslated ends of its connection in a packet that is redirected before the hooks: a queue
    /// there may distinguish hosts that share one outside address. (Linux's CAKE looks this up for IPv4
    /// only.)
    pub fn see_inside(&mut self, now: Time, pool: &mut Pool, pkt: &Pkt) {
        if self.index.is_empty() || pool.meta(pkt).connection != 0 {
            return;
        }
        let Some(tuple) = tuple(&Outer::of(pool, pkt)).filter(|tuple| !tuple.v6) else { return };
        let found = self.lookup(now, &tuple);
        let ends = found.map(|found| {
            let other = self.entries[found.at as usize].tuples[usize::from(!found.reply)];
            let v4 = |address: [u8; 16]| [address[12], address[13], address[14], address[15]];
            (Addrs::V4(v4(other.destination), v4(other.source)), (other.dport, other.sport))
        });
        pool.set_inside(pkt, ends);
    }
}
