//! The party behind an address that a router put in the place of another one.

use std::collections::{HashMap, VecDeque};

use tidegate_sim::Ends;

/// The most conversations that are remembered; the oldest are forgotten first.
const MOST: usize = 65_536;

/// For conversations whose addresses were translated on the way: the sender of each arrived packet, so that
/// replies come back to it.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    senders: HashMap<Key, usize>,
    order: VecDeque<Key>,
}

/// Ends and protocol of an answer.
type Key = (std::net::IpAddr, std::net::IpAddr, u16, u16);

/// Echoes have one number for both directions.
fn key(ends: Ends) -> Key {
    let Ends { src, dst, sport, dport } = ends;
    if dport == 0 { (src, dst, sport, sport) } else { (src, dst, sport, dport) }
}

impl Conversations {
    /// A packet with these ends arrived, which `sender` sent.
    pub(crate) fn note(&mut self, ends: Ends, sender: usize) {
        let answer = match ends.dport {
            0 => key(Ends { src: ends.dst, dst: ends.src, ..ends }),
            _ => key(ends.back()),
        };
        if self.senders.insert(answer, sender).is_none() {
            self.order.push_back(answer);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.senders.remove(&oldest);
        }
    }

    /// The party that gets a reply with these ends.
    pub(crate) fn sender(&self, ends: Ends) -> Option<usize> {
        self.senders.get(&key(ends)).copied()
    }
}
