//! The kinds that Linux has or had and tidegate has not, each with the reason.

/// A kind of qdisc that tidegate does not support.
#[derive(Clone, Copy, Debug)]
pub struct UnsupportedKind {
    /// Its name in tc.
    pub name: &'static str,
    /// What the kernel answers on a device with one queue, where it refuses too.
    pub reply: Option<&'static str>,
    /// Why it is not built.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

const fn refused(name: &'static str, why: &'static str, instead: &'static str) -> UnsupportedKind {
    UnsupportedKind { name, reply: None, why, instead }
}

const NOT_HERE: &str = "RTNETLINK answers: Operation not supported";
const BY_QUEUES: &str = "it gives classes of traffic transmit queues of a network card, and which queue a \
     card serves first is not known";
const BY_THE_CLOCK: &str = "it sends at times that packets carry, by the clock of a network card; simulated \
     packets carry none";
const BY_GATES: &str = "it opens and closes gates for classes of traffic by a cyclic schedule";
const GONE: &str = "it was removed from Linux in 6.3";

/// The kinds that tidegate does not support, each with its reason and a replacement.
pub const REFUSED: &[UnsupportedKind] = &[
    UnsupportedKind {
        name: "mqprio",
        reply: Some(NOT_HERE),
        why: BY_QUEUES,
        instead: "prio or ets sort by priority in one queue",
    },
    UnsupportedKind {
        name: "taprio",
        reply: Some("Error: sch_taprio: Multi-queue device is required."),
        why: BY_GATES,
        instead: "prio or ets sort by priority, without times",
    },
    refused("etf", BY_THE_CLOCK, "netem delays packets, tbf spaces them"),
    refused(
        "cbs",
        "its credits are those of network cards for audio and video (802.1Qav)",
        "tbf or htb limit a class to a rate",
    ),
    refused(
        "teql",
        "it joins several devices into one, which needs a route to it",
        "shape each device on its own",
    ),
    refused("cbq", GONE, "htb replaces it"),
    refused("dsmark", GONE, "iptables -j DSCP sets the field, prio or htb with filters classify by it"),
    refused("atm", GONE, "htb with linklayer atm counts cells"),
    refused("rr", "it was never part of Linux itself", "drr or ets share between classes"),
];

impl UnsupportedKind {
    /// The entry of that name.
    pub fn find(name: &str) -> Option<&'static UnsupportedKind> {
        // teql's devices bring a kind of their own each: teql0, teql1.
        REFUSED.iter().find(|kind| kind.name == name || kind.name == "teql" && name.starts_with("teql"))
    }
}
