//! Names that try to become markup stay text on every page. (Trials are in `page.rs`, experiments in a test
//! of their own.)

use crate::inert::{EVIL, loose};
use tidegate_measure::overhead::{self, Size, Sweep, Swept};
use tidegate_measure::pinged::{Fault, PingRequest, PingTarget, Pinged};
use tidegate_measure::quick::{HopResult, LoadDirection, LoadPhase, NextStep, PredictedRtt, Quick, Remedy};
use tidegate_measure::replayed::{
    CaptureSummary, ClassOutcome, FlowOutcome, LADDER, OutcomeCounts, ReplayOutcome, Replayed,
};
use tidegate_report::measuring::{overhead as overhead_page, ping, quick as quick_page};
use tidegate_report::replayed;

const MS: u64 = 1_000_000;

fn evil() -> String {
    EVIL.to_owned()
}

/// Nothing of it is markup, and it is shown.
fn stays_text(page: &str) {
    assert_eq!(loose(page), Vec::<String>::new());
    assert!(page.contains("&lt;img src=x"), "it is shown as it was written");
}

#[test]
fn the_check_itself_sees_what_is_loose() {
    let page = |body: &str| loose(&format!("<body>{body}<script></script></body>"));
    assert_eq!(page("<p class=\"small\" data-tabs>a &lt;b&gt;</p>"), Vec::<String>::new());
    for bad in [
        "<img src=x>",
        "<p onfocus='x'>",
        "<b title=\"\" style=\"x\">",
        "<b",
        "\u{202e}",
        "<script></script>",
    ] {
        assert!(!page(bad).is_empty(), "{bad}");
    }
}

#[test]
fn pings() {
    let requests = (0..20)
        .map(|n| PingRequest { sent_ns: n * MS, took_ns: Some((5 + n) * MS), here_ns: None })
        .collect();
    let faults = vec![Fault { by: evil(), what: evil(), count: 1 }];
    let target =
        PingTarget { id: evil(), host: evil(), address: evil(), requests, faults, ..PingTarget::default() };
    let (version, again, notes) = (evil(), evil(), vec![evil()]);
    let pinged =
        Pinged { version, again, partial: Some(evil()), targets: vec![target], notes, ..Pinged::default() };
    stays_text(&ping::page(&pinged, true));
}

#[test]
fn a_quick_look() {
    let requests = (0..80)
        .map(|n| PingRequest { sent_ns: n * 50 * MS, took_ns: Some(20 * MS), here_ns: None })
        .collect();
    let idle = LoadPhase { window: (0, 2000 * MS), ..LoadPhase::default() };
    let up = LoadPhase {
        load: LoadDirection::Up,
        window: (2000 * MS, 4000 * MS),
        by: evil(),
        ..LoadPhase::default()
    };
    let predicted = vec![PredictedRtt { load: LoadDirection::Up, without: (MS, MS), with: (MS, MS) }];
    let quick = Quick {
        places: vec![HopResult { name: evil(), distance: Some(1), requests }],
        phases: vec![idle, up],
        partial: Some(evil()),
        remedy: Some(Remedy { policy: evil(), missing: Some(evil()), saved: Some(evil()), predicted }),
        next: vec![NextStep { what: evil(), commands: vec![evil()] }],
        notes: vec![evil()],
        again: evil(),
        version: evil(),
        ..Quick::default()
    };
    stays_text(&quick_page::page(&quick));
}

#[test]
fn an_overhead() {
    let wire = |ip: u32| f64::from(ip + 40) * 8e9 / 4e6;
    let sizes = (52..160).map(|ip| Size { ip, ns: wire(ip), error: 0.0 }).collect();
    let mut up = Sweep::of_sizes(sizes);
    up.caveats.push(evil());
    let document = overhead::OverheadDocument {
        version: evil(),
        again: evil(),
        host: evil(),
        swept: Swept { up: Some(up), cut: Some(evil()), ..Swept::default() },
        caveats: vec![evil()],
        ..overhead::OverheadDocument::default()
    };
    stays_text(&overhead_page::page(&document));
}

#[test]
fn a_capture_through_policies() {
    let waited = tidegate_measure::Durations::new((1..50).map(|n| n * MS).collect()).summary();
    let ladder = LADDER.iter().map(|p| (*p * MS as f64) as u64).collect();
    let fates = OutcomeCounts { packets: 50, sent: 49, waited, ladder, ..OutcomeCounts::default() };
    let waits: Vec<Option<u64>> = (0..20).map(|n| Some(n * MS)).collect();
    let class = ClassOutcome {
        device: evil(),
        id: evil(),
        title: evil(),
        queue: evil(),
        outcomes: fates.clone(),
        median: waits.clone(),
        longest: waits,
        ..ClassOutcome::default()
    };
    let flow = FlowOutcome { name: evil(), class: evil(), outcomes: fates.clone() };
    let outcome = ReplayOutcome {
        name: evil(),
        file: evil(),
        device: evil(),
        out: fates,
        classes: vec![class],
        flows: vec![flow],
        ..ReplayOutcome::default()
    };
    let capture = CaptureSummary {
        file: evil(),
        format: evil(),
        rule: evil(),
        broken: Some(evil()),
        ..CaptureSummary::default()
    };
    let replayed = Replayed {
        version: evil(),
        again: evil(),
        capture,
        step_ns: MS,
        policies: vec![outcome],
        notes: vec![evil()],
        ..Replayed::default()
    };
    stays_text(&replayed::page(&replayed));
}
