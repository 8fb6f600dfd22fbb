//! `deadline` in a run such as `tidegate try` makes, and in listings.

use crate::common::{Leaf, machine, tried};
use tidegate_custom_qdisc::Deadline;
use tidegate_measure::trial::TrialDocument;
use tidegate_packet::{Nanos, Pool, Seeded};

const KIND: Deadline = Deadline { limit: 1000, deadline: Nanos::millis(60) };

/// The 95th percentile of the pings' round trips beside the upload with the policy, ns.
fn p95(document: &TrialDocument) -> u64 {
    let run = &document.runs[1];
    run.probes[0].figures(run.window).rtt.percentile(95.0).expect("pings come back")
}

#[test]
fn an_upload_waits_no_longer_than_the_deadline() {
    let (pfifo, deadline) = (tried(Leaf::Pfifo(KIND.limit)), tried(Leaf::Deadline(KIND)));

    // The shaper sends a frame of 1,514 bytes in 12 ms; the link beneath adds some 30 ms to a round trip.
    const MS: u64 = 1_000_000;
    let (long, short) = (p95(&pfifo), p95(&deadline));
    assert!(short < (60 + 12 + 30) * MS, "{short} ns");
    assert!(long > 3 * short, "a pfifo of the same length lets pings wait: {long} ns, deadline {short} ns");
}

#[test]
fn a_listing_shows_its_name_and_parameters() {
    let mut machine = machine(Leaf::Deadline(KIND));
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut shim = machine.shim(&mut pool, &mut draws);
    let mut shown = |words: &str| {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        String::from_utf8(shim.tc(&words, None).stdout).expect("text")
    };

    let text = shown("qdisc show dev eth0");
    assert!(text.contains("qdisc custom 10: parent 1:1 deadline limit 1000 deadline 60000us"), "{text}");
    let json = shown("-j qdisc show dev eth0");
    assert!(
        json.contains(r#""options":{"name":"deadline","words":"limit 1000 deadline 60000us"}"#),
        "{json}"
    );
    // Below it nothing can be attached, and tc cannot make one.
    let refused = |shim: &mut tidegate_shims::ToolShim<'_>, line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        shim.tc(&words, None).code
    };
    assert_ne!(refused(&mut shim, "qdisc add dev eth0 parent 10:1 pfifo"), 0);
    assert_ne!(refused(&mut shim, "qdisc replace dev eth0 root custom"), 0);
}
