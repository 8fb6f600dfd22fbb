//! What pings showed, as one document. Tables, pages, pictures and JSON are made from this and nothing else.
//!
//! Times are nanoseconds from the beginning, unless a field has another unit.

use crate::{Durations, Jitter, Pings, Summary, deviation};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Hosts that were pinged repeatedly, and their replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinged {
    /// The version of tidegate that measured.
    pub version: String,
    /// The command that measures again.
    pub again: String,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// Why it ended before its time, if it did.
    pub partial: Option<String>,
    /// The targets, in the order of the command line.
    pub targets: Vec<PingTarget>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A target that was pinged, by one method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingTarget {
    /// What it is called.
    pub id: String,
    /// The host as it was named.
    pub host: String,
    /// The target's address.
    pub address: String,
    /// How it was pinged.
    pub way: PingMethod,
    /// The DS field of the requests, with ECN.
    pub ds_field: u8,
    /// Bytes of data in a request.
    pub size: u16,
    /// The hop limit of the requests, if not the usual one: then the router at that hop is measured.
    pub hop_limit: Option<u8>,
    /// From one request to the next, ns.
    pub interval_ns: u64,
    /// Every request, in order.
    pub requests: Vec<PingRequest>,
    /// Replies to requests that had one already.
    pub duplicates: u64,
    /// Answers that were ICMP errors, which is what they should be (port unreachable, time exceeded).
    pub errors_for_answers: u64,
    /// Times for a request that were passed over because this computer was too late for them.
    pub passed_over: u64,
    /// Errors that came instead of replies, from routers or from this computer.
    pub faults: Vec<Fault>,
}

/// The method of a ping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PingMethod {
    /// By an ICMP echo request.
    #[default]
    Icmp,
    /// By a datagram to this UDP port.
    Udp(u16),
}

/// One request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingRequest {
    /// When it was sent, ns from the beginning.
    pub sent_ns: u64,
    /// The round trip, ns; `None`: no reply came.
    pub took_ns: Option<u64>,
    /// How much of the round trip passed before this computer's driver got the request, ns, where the kernel
    /// reports it.
    pub here_ns: Option<u64>,
}

/// An error that came instead of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Who reported it: an address, or `this computer`.
    pub by: String,
    /// The error's text.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// What the requests to a target come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingSummary {
    /// Requests sent.
    pub sent: u64,
    /// Requests without an answer.
    pub lost: u64,
    /// The share of requests without a reply, 0 to 1.
    pub loss: f64,
    /// Between which shares the loss lies with 95 % confidence, if the requests are a sample (Wilson 1927).
    pub loss_interval: (f64, f64),
    /// The shortest round trip, ns.
    pub min: Option<u64>,
    /// The round trips, ns.
    pub rtt: Option<Summary>,
    /// Their standard deviation, ns: ping's mdev.
    pub mdev: Option<u64>,
    /// Their jitter (RFC 3550), the mean over the run, ns.
    pub jitter: Option<u64>,
    /// How long requests waited on this computer: the median and the 95th percentile, ns.
    pub here: Option<(u64, u64)>,
}

/// Fewer answers than this have no 99th percentile of their own.
const HUNDRED: usize = 100;

impl PingTarget {
    /// What the requests come to.
    pub fn figures(&self) -> PingSummary {
        let pings = Pings::new(self.requests.iter().map(|request| request.took_ns));
        let answered: Vec<u64> = self.requests.iter().filter_map(|request| request.took_ns).collect();
        let here = Durations::new(self.requests.iter().filter_map(|request| request.here_ns).collect());
        PingSummary {
            sent: self.requests.len() as u64,
            lost: pings.lost as u64,
            loss: pings.loss(),
            loss_interval: pings.loss_interval(),
            min: pings.rtt.min(),
            rtt: pings.rtt.summary(),
            mdev: deviation(&answered),
            jitter: Jitter::of(answered.iter().copied()).mean().map(|ns| ns as u64),
            here: here.percentile(50.0).zip(here.percentile(95.0)),
        }
    }

    /// When its figures must not be believed, and why.
    pub fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        let lost = self.requests.iter().filter(|request| request.took_ns.is_none()).count();
        let answered = self.requests.len() - lost;
        if self.errors_for_answers > 0 && lost > 0 {
            caveats.push(String::from(
                "its answers are ICMP errors, of which hosts send only so many (Linux: about one a second \
                for each receiver): what is missing may never have been sent, so this loss is no loss of \
                the path",
            ));
        }
        if answered == 0 && !self.requests.is_empty() {
            caveats.push(String::from(
                "no replies: the host may be down or unreachable, or a firewall drops such requests",
            ));
        } else if answered < HUNDRED {
            caveats.push(format!("of {answered} replies the 99th percentile is the slowest"));
        }
        if self.passed_over > 0 {
            let count = self.passed_over;
            caveats.push(format!(
                "this computer was too late for {count} requests, which were sent after the others instead"
            ));
        }
        caveats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn target(took: &[Option<u64>]) -> PingTarget {
        let request_of = |(n, took): (usize, &Option<u64>)| PingRequest {
            sent_ns: n as u64 * 1000,
            took_ns: *took,
            here_ns: took.map(|took| took / 10),
        };
        PingTarget { requests: took.iter().enumerate().map(request_of).collect(), ..PingTarget::default() }
    }

    #[test]
    fn figures_of_a_few_answers() {
        let figures = target(&[Some(20), None, Some(40), Some(40)]).figures();
        assert_eq!((figures.sent, figures.lost, figures.min, figures.loss), (4, 1, Some(20), 0.25));
        let Some(rtt) = figures.rtt else { panic!("three were answered") };
        assert_eq!(
            (rtt.mean, rtt.p50, rtt.max, figures.mdev, figures.here),
            (33, 40, 40, Some(9), Some((4, 4)))
        );
        // |40 - 20| / 16, then a sixteenth less; the mean of both, rounded down.
        assert_eq!(figures.jitter, Some(1));
    }

    #[test]
    fn nothing_answered_has_no_figures_and_a_caveat() {
        let silent = target(&[None, None]);
        let figures = silent.figures();
        assert_eq!((figures.loss, figures.rtt, figures.min, figures.jitter), (1.0, None, None, None));
        assert!(silent.caveats()[0].starts_with("no replies"), "{:?}", silent.caveats());
        assert_eq!(target(&[]).caveats().len(), 1, "of no answers there is no percentile");
    }

    #[test]
    fn errors_for_answers_have_a_caveat_where_some_are_missing() {
        let all = PingTarget { errors_for_answers: 2, ..target(&vec![Some(5); 100]) };
        assert_eq!(all.caveats(), Vec::<String>::new());
        let some = PingTarget { errors_for_answers: 1, passed_over: 3, ..target(&[Some(5), None]) };
        assert_eq!(some.caveats().len(), 3, "{:?}", some.caveats());
    }
}
