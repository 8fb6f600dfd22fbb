//! Results so small that every figure can be worked out by hand: one run of two seconds, and what is made of
//! it.

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;
use tidegate_analysis::data::Data;
use tidegate_analysis::experiment::{RunView, Under, flent_files, happened, series, tables};
use tidegate_measure::experiment::{
    Comparison, EventRecord, Experiment, LinkRecord, LinkSeries, LoadRecord, PolicyRecord, ProbeRecord,
    RunRecord, TransferRecord,
};
use tidegate_measure::trial::ClassSeries;

const MS: u64 = 1_000_000;
const STEP: u64 = 100 * MS;

/// Every 200 ms a ping of 10, 20, … ms; the fourth is lost.
fn ping() -> ProbeRecord {
    let took = |n: u64| (n != 3).then_some((n + 1) * 10 * MS);
    ProbeRecord {
        id: "ping".into(),
        title: "ping to b".into(),
        unit: "round trip".into(),
        from: "a".into(),
        to: "b".into(),
        answers: (0..10).map(|n| (n * 200 * MS, took(n))).collect(),
        ..ProbeRecord::default()
    }
}

/// A flow of 25,000 bytes a step, 2 Mbit/s, for the first second, and half of it for the second one.
fn upload() -> TransferRecord {
    let series: Vec<u64> = (0..20).map(|n| if n < 10 { 25_000 } else { 12_500 }).collect();
    TransferRecord {
        id: "upload-1".into(),
        from: "a".into(),
        to: "b".into(),
        control: "cubic".into(),
        bytes: series.iter().sum(),
        cwnd: (10..30).collect(),
        srtt_us: vec![40_000; 20],
        delivery_bits: vec![1_000_000; 20],
        retransmissions: 3,
        lost: 2,
        series,
        ..TransferRecord::default()
    }
}

/// 5,000 bytes a step, 0.4 Mbit/s, from 500 ms to 1,500 ms.
fn download() -> TransferRecord {
    TransferRecord {
        id: "download-1".into(),
        from: "b".into(),
        to: "a".into(),
        control: "bbr".into(),
        began: 500 * MS,
        finished: Some(1_500 * MS),
        bytes: 50_000,
        series: (0..15).map(|n| if n < 5 { 0 } else { 5_000 }).collect(),
        ..TransferRecord::default()
    }
}

fn run() -> RunRecord {
    let class = |id: &str, leaf, sent: u64, waits: u64| ClassSeries {
        id: format!("gw:eth0 {id}"),
        leaf,
        sent: vec![sent; 20],
        backlog: (0..20).map(|n| n * waits).collect(),
        qlen: vec![3; 20],
        dropped: vec![1; 20],
        ..ClassSeries::default()
    };
    let event = |at: u64, what: &str| EventRecord {
        at: at * MS,
        on: "gw".into(),
        what: what.into(),
        ..EventRecord::default()
    };
    RunRecord {
        policy: "fair".into(),
        load: "up".into(),
        seed: 7,
        window: (0, 2_000 * MS),
        step_ns: STEP,
        probes: vec![ping()],
        transfers: vec![upload(), download()],
        classes: vec![
            class("1:1", false, 30_000, 0),
            class("1:10", true, 25_000, 100),
            class("1:20", true, 0, 0),
        ],
        queues: vec![LinkSeries {
            link: "dsl".into(),
            up: true,
            title: "gw to isp".into(),
            sent: vec![25_000; 20],
            capacity: vec![50_000; 20],
            backlog: (0..20).map(|n| n * 1_000).collect(),
            dropped: vec![0; 20],
            ..LinkSeries::default()
        }],
        events: vec![event(1_000, "second"), event(500, "first"), event(1_050, "third")],
        ..RunRecord::default()
    }
}

fn experiment() -> Experiment {
    let cable = |name: &str, from: &str, to: &str, bits: Option<u64>| LinkRecord {
        name: name.into(),
        from: from.into(),
        to: to.into(),
        there_bits: bits,
        back_bits: bits.map(|bits| 5 * bits),
        ..LinkRecord::default()
    };
    Experiment {
        version: "0.1.0".into(),
        again: "tidegate sim x.toml".into(),
        execution: "sim".into(),
        title: "A line".into(),
        policies: vec![PolicyRecord { name: "fair".into(), title: "HTB".into(), ..PolicyRecord::default() }],
        loads: vec![LoadRecord { name: "up".into(), title: "1 upload".into(), test: None }],
        links: vec![
            cable("lan", "a", "gw:eth1", Some(100_000_000)),
            cable("dsl", "gw:eth0", "isp", Some(4_000_000)),
            cable("far", "isp", "b", None),
        ],
        runs: vec![run()],
        comparisons: vec![Comparison {
            id: "1".into(),
            what: "the longest".into(),
            unit: "s".into(),
            published: Some(0.1),
            found: Some(0.1),
            within: (0.05, 0.2),
            held: true,
            gated: true,
            ..Comparison::default()
        }],
        ..Experiment::default()
    }
}

fn flent(experiment: &Experiment) -> Value {
    let (_, packed) = &flent_files(experiment).expect("files")[0];
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

/// A value for each 200 ms, rates in Mbit/s and delays in ms, as flent's own files have them.
#[test]
fn a_file_of_flents() {
    let of = flent(&experiment());
    let nothing = || vec![Value::Null; 1];
    let values = |known: &[f64]| known.iter().map(|value| json!(value)).collect::<Vec<_>>();
    // From 400 ms to 600 ms half of a step is the download's: 5,000 of 10,000 bytes.
    let download = [values(&[0.2, 0.4, 0.4, 0.4, 0.4, 0.4])].concat();
    let download = [vec![Value::Null; 2], download, vec![Value::Null; 3]].concat();
    assert_eq!(of["results"]["TCP download BE"], json!(download));
    assert_eq!(
        of["results"]["TCP upload BE"],
        json!([values(&[2.0; 5]), values(&[1.0; 5]), nothing()].concat())
    );
    let pings =
        [values(&[10.0, 20.0, 30.0]), nothing(), values(&[50.0, 60.0, 70.0, 80.0, 90.0, 100.0]), nothing()];
    assert_eq!(of["results"]["Ping (ms) ICMP"], json!(pings.concat()));
    assert_eq!(of["results"]["TCP totals"][3], json!(2.4));
    assert_eq!(of["x_values"], json!([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]));
    // 2000-01-01 in seconds; a step's bytes are there at its end, an answer when it came.
    let sample = json!({"t": 946_684_800.1, "val": 2.0, "dur": 0.1, "tcp_cwnd": 10, "tcp_rtt": 40.0, "tcp_delivery_rate": 1.0});
    assert_eq!(of["raw_values"]["TCP upload BE"][0], sample);
    assert_eq!(of["raw_values"]["TCP upload BE"].as_array().map(Vec::len), Some(20));
    assert_eq!(of["raw_values"]["Ping (ms) ICMP"][3], json!({"seq": 5, "t": 946_684_800.85, "val": 50.0}));
    let about = &of["metadata"];
    assert_eq!(
        about["SERIES_META"]["Ping (ms) ICMP"],
        json!({"MEAN_VALUE": 56.666666, "MIN_VALUE": 10.0, "MAX_VALUE": 100.0, "PACKET_LOSS_RATE": 0.1, "UNITS": "ms"})
    );
    let upload = json!({"MEAN_VALUE": 1.5, "CONG_CONTROL": "cubic", "ID": "upload-1", "UNITS": "Mbits/s"});
    assert_eq!(about["SERIES_META"]["TCP upload BE"], upload);
    assert_eq!(about["TITLE"], "HTB, 1 upload, seed 7");
    assert_eq!(about["NOTE"], "A line (sim). Again: tidegate sim x.toml");
    assert_eq!(about["TEST_PARAMETERS"], json!({"upload_streams": "1", "download_streams": "1"}));
    assert_eq!([&about["LENGTH"], &about["TIME"]], [&json!(2), &json!("2000-01-01T00:00:00.000000Z")]);
}

/// What flent's plots are made of is found by names that depend on the test.
#[test]
fn names_of_series_in_flents_files() {
    let names = |change: &dyn Fn(&mut Experiment)| {
        let mut experiment = experiment();
        change(&mut experiment);
        let of = flent(&experiment);
        let names: Vec<String> = of["results"].as_object().expect("an object").keys().cloned().collect();
        (of["metadata"]["NAME"].as_str().expect("a name").to_owned(), names.join(", "))
    };
    fn flows(experiment: &mut Experiment, flows: &[(&str, u8)]) {
        experiment.runs[0].probes.clear();
        experiment.runs[0].transfers = flows
            .iter()
            .map(|(id, dscp)| TransferRecord {
                id: (*id).into(),
                dscp: *dscp,
                ..if id.starts_with("down") { download() } else { upload() }
            })
            .collect();
    }
    let of = |all: &'static [(&'static str, u8)], test: Option<&'static str>| {
        names(&move |experiment: &mut Experiment| {
            flows(experiment, all);
            experiment.loads[0].test = test.map(str::to_owned);
        })
    };
    let worked_out = |way: &str| format!("TCP {way} sum, TCP {way} avg, TCP {way} fairness");
    let (up, down) = (worked_out("upload"), worked_out("download"));
    let cases = [
        (of(&[("upload-1", 0)], None), "tcp_nup", format!("TCP upload::1, {up}, TCP totals")),
        (
            of(&[("upload-1", 0), ("upload-2", 0), ("download-1", 0)], None),
            "rrul_be",
            format!("TCP upload BE, TCP upload BE2, {up}, TCP download BE, {down}, TCP totals"),
        ),
        (
            of(
                &[("upload-1", 46), ("upload-2", 8), ("upload-3", 40), ("upload-4", 0), ("upload-5", 0)],
                Some("rrul"),
            ),
            "rrul",
            format!("TCP upload EF, TCP upload BK, TCP upload CS5, TCP upload BE, {up}, TCP totals"),
        ),
        (of(&[("upload-1", 0)], Some("tcp_1up")), "tcp_1up", format!("TCP upload, {up}, TCP totals")),
        (
            of(&[("upload-1", 0), ("upload-2", 0)], Some("tcp_2up")),
            "tcp_2up",
            format!("TCP upload::1, TCP upload::2, {up}, TCP totals"),
        ),
        (of(&[("flood", 0)], Some("udp_flood")), "udp_flood", "UDP upload".to_owned()),
        (of(&[], Some("web")), "http", String::new()),
    ];
    for ((test, names), expected_test, expected) in cases {
        assert_eq!((test.as_str(), names), (expected_test, expected));
    }
    let trial_of = |ids: &'static [(&'static str, &'static str)]| {
        names(&move |experiment: &mut Experiment| {
            experiment.runs[0].transfers.clear();
            let probe = |(id, unit): &(&str, &str)| ProbeRecord {
                id: (*id).into(),
                title: String::new(),
                unit: (*unit).into(),
                ..ping()
            };
            experiment.runs[0].probes = ids.iter().map(probe).collect();
        })
    };
    let cases = [
        (trial_of(&[("ping", ""), ("other", "")]), "ping", "Ping (ms) ICMP, Ping (ms) other, Ping (ms) avg"),
        (trial_of(&[("udp-1", ""), ("udp-2", "")]), "ping", "Ping (ms) UDP, Ping (ms) ICMP, Ping (ms) avg"),
        (trial_of(&[("web-page", ""), ("web-2", "")]), "http", "HTTP latency, Ping (ms) ICMP, Ping (ms) avg"),
        (
            trial_of(&[("voip-up", ""), ("voip-down", "")]),
            "voip",
            "VoIP::delay, VoIP::jitter, VoIP::loss, VoIP voip-down::delay, VoIP voip-down::jitter, VoIP \
            voip-down::loss",
        ),
        (trial_of(&[("ping-up", "one way")]), "ping", "ping-up OWD"),
    ];
    for ((test, names), expected_test, expected) in cases {
        assert_eq!((test.as_str(), names.as_str()), (expected_test, expected));
    }
}

/// Of a call flent has the delay, the jitter as RFC 3550 (section 6.4.1) works it out, and the share that was
/// lost.
#[test]
fn a_call_in_flents_file() {
    let mut experiment = experiment();
    experiment.runs[0].transfers.clear();
    experiment.runs[0].probes = vec![ProbeRecord { id: "voip".into(), ..ping() }];
    let of = flent(&experiment);
    assert_eq!(of["results"]["VoIP::loss"], json!([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, null]));
    // Differences of 10 ms: 10/16, and then what is left of it and 10/16 more.
    let jitter = of["results"]["VoIP::jitter"].as_array().expect("a list");
    assert_eq!((jitter[1].as_f64(), jitter[2].as_f64()), (Some(0.625), Some(0.625 + (10.0 - 0.625) / 16.0)));
    assert_eq!(of["results"]["VoIP::delay"][4], json!(50.0));
}

/// Up is what crosses the slowest link away from the requester, whatever it is called.
#[test]
fn up_and_down_are_parted_by_the_slowest_link() {
    let names = |from: &str, to: &str, links: usize| {
        let mut experiment = experiment();
        experiment.links.truncate(links);
        let all = &mut experiment.runs[0].transfers;
        all.truncate(1);
        (all[0].from, all[0].to) = (from.into(), to.into());
        flent(&experiment)["metadata"]["NAME"].as_str().map(str::to_owned)
    };
    let cases = [
        (("a", "b", 3), "tcp_nup"),
        (("gw", "isp", 3), "tcp_nup"),
        (("isp", "a", 3), "tcp_ndown"),
        (("b", "gw", 3), "tcp_ndown"),
        // Without links: the requester sends, or the replier receives.
        (("a", "c", 0), "tcp_nup"),
        (("c", "b", 0), "tcp_nup"),
        (("c", "d", 0), "tcp_ndown"),
    ];
    for ((from, to, links), expected) in cases {
        assert_eq!(names(from, to, links).as_deref(), Some(expected), "{from} to {to} over {links} links");
    }
}

fn lines(data: &Data) -> Vec<String> {
    let rows = data.rows.iter().map(|row| row.join(" | "));
    std::iter::once(format!("{}: {}", data.caption, data.head.join(" | "))).chain(rows).collect()
}

#[test]
fn series_as_tables() {
    let experiment = experiment();
    let under = Under::all(&experiment);
    let shown: Vec<RunView<'_>> = under[0].typical();
    let cases = [
        (
            series::answers(&shown, "ping"),
            vec!["Median reply time and loss: time | HTB", "0–1 s | 20.0 ms, 1 lost", "1–2 s | 80.0 ms"],
        ),
        (
            series::percentiles(&shown, "ping"),
            vec![
                "Percentiles of the reply times: percentile | HTB",
                "100 % | 100 ms",
                "99 % | 100 ms",
                "95 % | 100 ms",
                "90 % | 100 ms",
                "75 % | 80.0 ms",
                "50 % | 60.0 ms",
                "25 % | 30.0 ms",
                "10 % | 10.0 ms",
            ],
        ),
        (
            series::transfers(&shown[0], "upload"),
            vec!["Payload per second: time | upload-1", "0–1 s | 2.00 Mbit/s", "1–2 s | 1.00 Mbit/s"],
        ),
        (
            series::carried(&shown, "download"),
            // 25,000 bytes in each second; in the second one there are five steps.
            vec!["Payload per second: time | HTB", "0–1 s | 200 kbit/s", "1–2 s | 400 kbit/s"],
        ),
        (
            series::waiting(&shown, "dsl", true),
            vec!["Most bytes waiting: time | HTB", "0–1 s | 9.00 kB", "1–2 s | 19.0 kB"],
        ),
        (series::waiting(&shown, "dsl", false), vec!["Most bytes waiting: time", "0–1 s", "1–2 s"]),
        (
            series::classes(&shown[0], "gw:eth0", "sent"),
            vec!["Sent per second: time | 1:10", "0–1 s | 2.00 Mbit/s", "1–2 s | 2.00 Mbit/s"],
        ),
        (
            series::classes(&shown[0], "gw:eth0", "waiting"),
            vec!["Most bytes waiting: time | 1:10", "0–1 s | 900 B", "1–2 s | 1.90 kB"],
        ),
        (
            series::windows(&shown[0]),
            vec!["Largest window in segments: time | upload-1", "0–1 s | 19", "1–2 s | 29"],
        ),
    ];
    for (data, expected) in cases {
        assert_eq!(lines(&data), expected);
    }
}

/// Events in the order of time; those nearer than 3 % of the run share a mark.
#[test]
fn events_of_runs() {
    let experiment = experiment();
    let shown: Vec<RunView<'_>> = Under::all(&experiment)[0].typical();
    let found = happened(&shown);
    let events: Vec<(&str, usize)> =
        found.events.iter().map(|(event, of)| (event.what.as_str(), of.len())).collect();
    assert_eq!(events, [("first", 0), ("second", 0), ("third", 0)], "of all runs");
    let marks: Vec<(f64, &str)> =
        found.moments.iter().map(|moment| (moment.at / 1e9, moment.number.as_str())).collect();
    assert_eq!(marks, [(0.5, "1"), (1.0, "2–3")]);
}

#[test]
fn every_figure_as_a_table() {
    let all: Vec<String> = tables::tables(&experiment()).iter().flat_map(lines).collect();
    // 2 Mbit/s for a second and then one; a mean of 9,500 bytes waits where 500,000 go in a second; 1 of 10
    // is lost, between which shares that lies: Wilson's interval.
    let expected = [
        "Replies during the measurement: load | policy | probe | mean | median | 95 % | 99 % | max | \
        mdev | \
        jitter | lost | lost in all repeats (95 % interval) | sent",
        "1 upload | HTB | ping to b, round trip | 56.7 ms | 60.0 ms | 100 ms | 100 ms | 100 ms | 29.8 ms | \
        4.49 ms | 10.0 % | 10.0 % (1.8 % – 40.4 %) | 10",
        "Transfers during the measurement: load | policy | transfers | goodput | share of all | \
        duration | retransmits | lost | fairness",
        "1 upload | HTB | Upload | 1.50 Mbit/s | 88.2 % | – | 3 | 2 | 1",
        "1 upload | HTB | Download | 200 kbit/s | 11.8 % | 1.00 s | 0 | 0 | 1",
        "Links during the measurement: load | policy | link | carried | utilisation | peak backlog | mean \
        delay | dropped",
        "1 upload | HTB | dsl up, gw to isp | 2.00 Mbit/s | 50.0 % | 19.0 kB | 19.0 ms | 0",
        "Classes during the measurement: load | policy | class | sent | peak backlog | peak packets | \
        dropped",
        "1 upload | HTB | gw:eth0 1:1 | 2.40 Mbit/s | 0 B | 3 | 20",
        "1 upload | HTB | gw:eth0 1:10 | 2.00 Mbit/s | 1.90 kB | 3 | 20",
        "1 upload | HTB | gw:eth0 1:20 | 0 bit/s | 0 B | 3 | 20",
    ];
    assert_eq!(all, expected);
    let published = lines(&tables::comparisons(&experiment()));
    assert_eq!(
        published[0],
        "Published, found, and what it must lie within:  | what | published | simulated | within | "
    );
    assert_eq!(published[1], "1 | the longest | 100 ms | 100 ms | 50.0 ms to 200 ms | ok");
    assert_eq!(published.len(), 2);
}
