//! Echo requests at an interval, whether they are answered or not.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_sys::socket::{self, EchoSocket};

use super::clock::{LOOK, LoadClock, lock, spawn};
use crate::host::LabHost;

/// Pings to be.
#[derive(Clone, Copy, Debug)]
pub struct PingPlan {
    /// The host that replies.
    pub to: IpAddr,
    /// Bytes of data.
    pub data: u32,
    /// ns between two.
    pub every: u64,
    /// ns: the first.
    pub start: u64,
    /// ns: none from then on.
    pub stop: u64,
    /// The DS field.
    pub dsfield: u8,
}

/// Pings.
#[derive(Debug)]
pub struct PingLoad {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Of each request when it was sent and how long its answer took, ns.
    answers: Vec<(u64, Option<u64>)>,
    problem: Option<String>,
}

impl PingLoad {
    /// Sets them going.
    ///
    /// # Errors
    /// The host may not ping.
    pub fn begin(clock: &LoadClock, host: &LabHost, plan: PingPlan) -> io::Result<PingLoad> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (own, clock) = (Arc::clone(&seen), clock.clone());
        host.go(move || {
            let echo = EchoSocket::open(plan.to)?;
            socket::ds_field(&echo, plan.to.is_ipv6(), plan.dsfield)?;
            spawn(clock, "ping", move |clock| {
                if let Err(error) = go_on(clock, &echo, plan, &own) {
                    lock(&own).problem = Some(error.to_string());
                }
            })
        })??;
        Ok(PingLoad { seen })
    }

    /// When each was sent, and how long its answer took.
    pub fn answers(&self) -> Vec<(u64, Option<u64>)> {
        lock(&self.seen).answers.clone()
    }

    /// Why it ended early, if it did.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.seen).problem.clone()
    }
}

fn go_on(clock: &LoadClock, echo: &EchoSocket, plan: PingPlan, seen: &Mutex<Seen>) -> io::Result<()> {
    let mut due = plan.start;
    while !clock.is_over() {
        if clock.now() >= due && due < plan.stop {
            due += plan.every.max(1);
            let number = {
                let answers = &mut lock(seen).answers;
                answers.push((clock.now(), None));
                answers.len() - 1
            };
            // A full queue drops it, as any other packet.
            let _ = echo.send_request(number as u16, plan.data);
        }
        let wait = if due < plan.stop { clock.until(due).min(LOOK) } else { LOOK };
        if wait > Duration::ZERO
            && let Some(number) = echo.reply(wait)?
        {
            note(&mut lock(seen).answers, number, clock.now());
        }
    }
    Ok(())
}

/// Notes an answer at the last request that had this number, of which only sixteen bits travel.
fn note(answers: &mut [(u64, Option<u64>)], number: u16, now: u64) {
    let mut take = answers.iter_mut().enumerate().rev().take(1 << 16);
    if let Some((_, (sent, took))) = take.find(|(n, _)| *n as u16 == number) {
        took.get_or_insert(now.saturating_sub(*sent));
    }
}
