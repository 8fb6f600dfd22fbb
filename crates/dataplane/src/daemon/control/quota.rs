//! Who may connect, and how often strangers may send requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections reserved for root and the daemon's owner.
const TRUSTED: usize = 32;
/// Places of all others together, and of one user.
const STRANGERS: usize = 16;
const OF_ONE_USER: usize = 4;
/// Requests of one user at once, and how long it takes until there may be another.
const BURST: u32 = 20;
const EVERY: Duration = Duration::from_millis(50);
/// The most users whose requests are counted; the one idle longest is forgotten first.
const USERS: usize = 1024;

/// All connected clients.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientQuota(Arc<Mutex<QuotaTable>>);

#[derive(Debug, Default)]
struct QuotaTable {
    trusted: usize,
    strangers: BTreeMap<u32, usize>,
    /// By user, when his requests would have been answered one by one.
    requests: BTreeMap<u32, Instant>,
}

impl ClientQuota {
    /// A place for a user; it is free again when what is returned goes.
    ///
    /// # Errors
    /// There is none for him: why.
    pub(super) fn place(&self, uid: u32, trusted: bool) -> Result<ConnectionSlot, String> {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if trusted {
            if book.trusted >= TRUSTED {
                return Err(format!("{TRUSTED} connections of root and the daemon's owner are open already"));
            }
            book.trusted += 1;
        } else {
            if book.strangers.values().sum::<usize>() >= STRANGERS {
                return Err(format!("{STRANGERS} connections of other users are open already"));
            }
            let own = book.strangers.entry(uid).or_default();
            if *own >= OF_ONE_USER {
                return Err(format!("user {uid} has {OF_ONE_USER} connections already"));
            }
            *own += 1;
        }
        Ok(ConnectionSlot { guests: self.clone(), uid, trusted })
    }

    /// How long a user's next request must wait.
    fn turn(&self, uid: u32, now: Instant) -> Duration {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if book.requests.len() >= USERS {
            book.requests.retain(|_, until| *until > now);
        }
        let until = book.requests.entry(uid).or_insert(now);
        let next = (*until).max(now) + EVERY;
        *until = next;
        next.saturating_duration_since(now + EVERY * BURST)
    }
}

/// A connection's place.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    guests: ClientQuota,
    uid: u32,
    trusted: bool,
}

impl ConnectionSlot {
    /// Waits until this user may ask again: the daemon's thread, which answers, is not kept from its packets.
    pub(super) fn wait_for_turn(&self) {
        if !self.trusted {
            std::thread::sleep(self.guests.turn(self.uid, Instant::now()));
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut book = self.guests.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.trusted {
            book.trusted -= 1;
        } else if let Some(own) = book.strangers.get_mut(&self.uid) {
            *own -= 1;
            if *own == 0 {
                book.strangers.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_per_user() {
        let guests = ClientQuota::default();
        let first: Vec<ConnectionSlot> =
            (0..OF_ONE_USER).map(|_| guests.place(1000, false).expect("a place")).collect();
        assert_eq!(guests.place(1000, false).expect_err("no more"), "user 1000 has 4 connections already");
        let others: Vec<ConnectionSlot> = (1001..).map_while(|uid| guests.place(uid, false).ok()).collect();
        assert_eq!(first.len() + others.len(), STRANGERS);
        let trusted: Vec<ConnectionSlot> = std::iter::from_fn(|| guests.place(0, true).ok()).collect();
        assert_eq!(trusted.len(), TRUSTED);
        drop(first);
        drop(guests.place(1000, false).expect("they have left"));
        drop((others, trusted));
        let book = guests.0.lock().expect("nobody panicked");
        assert_eq!((book.trusted, book.strangers.len()), (0, 0));
    }

    #[test]
    fn requests_have_a_rate_for_each_user() {
        let (guests, now) = (ClientQuota::default(), Instant::now());
        assert!((0..BURST).all(|_| guests.turn(1000, now).is_zero()));
        assert_eq!(guests.turn(1000, now), EVERY);
        assert_eq!(guests.turn(1000, now), 2 * EVERY);
        assert!(guests.turn(1001, now).is_zero());
        let later = now + EVERY * (BURST + 10);
        assert!(guests.turn(1000, later).is_zero());
        for uid in 0..10 * USERS as u32 {
            guests.turn(uid, later + EVERY * 100 + EVERY * uid);
        }
        assert!(guests.0.lock().expect("nobody panicked").requests.len() <= USERS);
    }
}
