//! `tidegate serve` and `tidegate measure`: over a line whose truth is known, and on bad days.

mod common;

use common::{Place, TIDEGATE, skip};
use std::net::IpAddr;
use std::process::{Command, Output};
use tidegate_analysis::experiment::from_json;
use tidegate_measure::experiment::{Experiment, RunRecord, figure};
use tidegate_probe_wire::{Quotas, Token};
use tidegate_prober::serve::{Server, Serving};

fn tidegate(words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).env_remove("TIDEGATE_TOKEN").output().expect("tidegate runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Behind a line of 5 Mbit/s up, 20 Mbit/s down, 20 ms, with a modem that holds 256 kB; `far` runs at its
/// other end.
fn behind_a_line(far: &str, program: &[&str]) -> Output {
    let mut words =
        vec!["shell", "--up", "5mbit", "--down", "20mbit", "--buffer", "256kB", "--far", far, "--", TIDEGATE];
    words.extend(program);
    tidegate(&words)
}

fn run<'e>(of: &'e Experiment, load: &str) -> &'e RunRecord {
    of.runs.iter().find(|run| run.load == load).unwrap_or_else(|| panic!("{load}"))
}

fn number(run: &RunRecord, name: &str) -> f64 {
    figure(run, name, run.window).map_or(f64::NAN, |value| value.number)
}

/// A server in this process.
fn serve(token: Option<&str>) -> (Server, String) {
    let at: IpAddr = [127, 0, 0, 1].into();
    let token = token.and_then(Token::new);
    let server = Server::start(&Serving { at: vec![at], port: 0, token, quotas: Quotas::default() })
        .expect("a server");
    let port = server.at()[0].port().to_string();
    (server, port)
}

#[test]
fn a_bloated_line_shows_its_queue_each_way() {
    if skip() {
        return;
    }
    let place = Place::new("measure-bloat");
    let token = place.file("token", "A good secret, that is 24 or more long");
    let token = token.to_str().expect("text");
    let (page, flent) = (place.0.join("a.html"), place.0.join("a.flent.gz"));
    let far = format!("{TIDEGATE} serve --quiet --token {token}");
    let files = ["-o", page.to_str().expect("text"), "-o", flent.to_str().expect("text")];
    let mut words = vec!["measure", "server", "--duration", "4s", "--idle", "2s", "--token", token, "--json"];
    words.extend(files);
    let output = behind_a_line(&far, &words);
    assert!(output.status.success(), "{}", stderr(&output));
    let of = from_json(&String::from_utf8_lossy(&output.stdout)).expect("a result");
    // Wide bounds: the machine that tests may be busy. Exactness is proved in virtual time.
    let idle = number(run(&of, "idle"), "udp.median");
    assert!((0.019..0.080).contains(&idle), "{idle}");
    let way = |load: &str, way: &str| number(run(&of, load), &format!("udp-{way}.median"));
    assert!(way("up", "up") > way("up", "down") + 0.05, "{} {}", way("up", "up"), way("up", "down"));
    assert!(
        way("down", "down") > way("idle", "down") + 0.005,
        "{} {}",
        way("down", "down"),
        way("idle", "down")
    );
    let rate = |load: &str, group: &str| number(run(&of, load), &format!("{group}.rate")) / 1e6;
    assert!((2.0..5.0).contains(&rate("up", "upload")), "{}", rate("up", "upload"));
    assert!((8.0..20.0).contains(&rate("down", "download")), "{}", rate("down", "download"));
    let minute = |load: &str| run(&of, load).responsiveness().unwrap_or(0.0);
    assert!(minute("idle") > 2.0 * minute("up"), "{} {}", minute("idle"), minute("up"));
    let samples = &run(&of, "down").transfers[0];
    assert!(
        samples.cwnd.iter().any(|n| *n > 0) && samples.delivery_bits.iter().any(|n| *n > 0),
        "the server's own account"
    );
    assert!(std::fs::read_to_string(page).is_ok_and(|page| page.contains("</html>")));
    assert!(std::fs::metadata(flent).is_ok_and(|file| file.len() > 1000));
}

#[test]
fn bleached_marks_are_reported() {
    if skip() {
        return;
    }
    let far = format!("{TIDEGATE} serve --open --quiet");
    let wash = "tc qdisc add dev eth0 root cake bandwidth 5mbit wash";
    let words = [
        "shell",
        "--tc",
        wash,
        "--far",
        &far,
        "--",
        TIDEGATE,
        "measure",
        "server",
        "ping",
        "--duration",
        "1s",
        "--dscp",
        "EF,NQB,L4S",
    ];
    let output = tidegate(&words);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    let message = text.lines().find(|line| line.contains("sent with code point")).unwrap_or_default();
    assert!(
        message.contains("UDP EF up") && message.ends_with("packets sent with code point 46 arrived with 0."),
        "{text}"
    );
    // wash clears the code point and leaves ECN alone; nothing is washed on the way down.
    let kept =
        text.lines().find(|line| line.starts_with("Marks that arrived unchanged: ")).unwrap_or_default();
    for probe in ["UDP EF down (", "UDP NQB down (", "UDP L4S up (", "UDP L4S down ("] {
        assert!(kept.contains(probe), "{probe}: {text}");
    }
    assert!(!kept.contains("UDP NQB up"), "{text}");
}

#[test]
fn a_server_that_is_killed_in_the_middle_leaves_a_partial_result() {
    if skip() {
        return;
    }
    let far = format!("timeout -s KILL 4 {TIDEGATE} serve --open --quiet");
    let output = behind_a_line(&far, &["measure", "server", "ping", "--duration", "20s"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}{}", stderr(&output));
    assert!(text.contains(", partial") && text.contains("the server is gone"), "{text}");
    assert!(text.contains("UDP down") && !text.contains("UDP up"), "what is not known is not told: {text}");
}

#[test]
fn a_refused_client_gets_the_reason() {
    let place = Place::new("measure-token");
    let (right, wrong) = (
        place.file("right", "A good secret, that is 24 or more long"),
        place.file("wrong", "Another secret, that is 24 or more long"),
    );
    let (_server, port) = serve(Some("A good secret, that is 24 or more long"));
    let [right, wrong] = [&right, &wrong].map(|path| path.to_str().expect("text"));
    let cases: [(&[&str], &str); 5] = [
        (&[], "the server wants a token"),
        (&["--token", wrong], "the token is not the server's"),
        (&["--token", "/no/such/file"], "/no/such/file"),
        (&["--dscp", "XX"], "is not a DS field"),
        (&["-o", "result.txt"], "must end in .json"),
    ];
    for (more, expected) in cases {
        let mut words = vec!["measure", "127.0.0.1", "ping", "--duration", "1s", "--port", &port];
        words.extend(more);
        let output = tidegate(&words);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr(&output).contains(expected), "{more:?}: {}", stderr(&output));
    }
    let words = ["measure", "127.0.0.1", "ping", "--duration", "1s", "--port", &port, "--token", right];
    let output = tidegate(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("round trip"));
}

#[test]
fn a_failed_load_is_reported_as_partial() {
    let (_server, port) = serve(None);
    let words = [
        "measure",
        "127.0.0.1",
        "tcp_2up",
        "--duration",
        "1s",
        "--idle",
        "1s",
        "--port",
        &port,
        "--control",
        "nonesuch",
    ];
    let output = tidegate(&words);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("an upload ended: cannot choose the congestion control") && text.contains("idle  "),
        "{text}"
    );
}

#[test]
fn a_missing_server_is_reported() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("a port")
        .port();
    let free = free.to_string();
    let cases: [(&[&str], &str); 3] = [
        (&["no-such-host.invalid"], "no address is known for `no-such-host.invalid`"),
        (&["127.0.0.1", "--port", &free], "no program listens"),
        (&["127.0.0.1", "rrull"], "is not a test; there are rrul"),
    ];
    for (words, expected) in cases {
        let output = tidegate(&[&["measure"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    }
    let output = tidegate(&["serve"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--open"), "{}", stderr(&output));
}

#[test]
fn marks_and_calls_have_their_own_rows() {
    let (_server, port) = serve(None);
    let words =
        ["measure", "127.0.0.1", "voip", "--duration", "1s", "--port", &port, "--dscp", "EF,CS1", "--json"];
    let output = tidegate(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    let of = from_json(&String::from_utf8_lossy(&output.stdout)).expect("a result");
    let voip = run(&of, "voip");
    let ids: Vec<&str> =
        voip.probes.iter().map(|probe| probe.id.as_str()).filter(|id| *id != "icmp").collect();
    let expected = [
        "voip-up",
        "voip-down",
        "udp-ef",
        "udp-ef-up",
        "udp-ef-down",
        "udp-cs1",
        "udp-cs1-up",
        "udp-cs1-down",
    ];
    assert_eq!(ids, expected);
    // 172 bytes of payload each 20 ms; each mark arrived as it was sent.
    let rate = number(voip, "voip-up.rate");
    assert!((rate - 68_800.0).abs() < 4000.0, "{rate}");
    for probe in voip.probes.iter().filter(|probe| probe.unit == "one way") {
        let arrived = probe.arrivals.as_ref().map(|arrivals| &arrivals.ds_fields[..]);
        assert!(
            matches!(arrived, Some([(ds, _)]) if *ds == u64::from(probe.dscp) << 2),
            "{}: {arrived:?}",
            probe.id
        );
    }
}
