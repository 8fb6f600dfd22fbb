//! Measurements as a program makes them, against a server in the same process.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tidegate_measure::experiment::figure;
use tidegate_probe_wire::{Quotas, Token};
use tidegate_prober::serve::{Server, Serving};
use tidegate_prober::{AddressFamily, ServerTarget};
use tidegate_sessions::Error;
use tidegate_sessions::doctor::{DoctorOptions, diagnose};
use tidegate_sessions::measure::Measurement;
use tidegate_sessions::measure::plan::{NamedMark, Wishes, plan};

static STOP: AtomicBool = AtomicBool::new(false);

fn measurement(target: ServerTarget) -> Measurement {
    let wishes = Wishes {
        length: Some(Duration::from_millis(500)),
        idle: Duration::from_millis(500),
        every: Duration::from_millis(20),
        streams: 1,
        marks: vec![NamedMark { name: "EF".to_owned(), dscp: 46, ecn: 0 }],
        flood: 1e6,
    };
    Measurement {
        target,
        test: Some("ping".to_owned()),
        plan: plan(Some("ping"), &wishes).expect("there is such a test"),
        name: "now".to_owned(),
        control: String::new(),
        repeat: 1,
        again: "again".to_owned(),
    }
}

fn target(port: u16, token: Option<Token>) -> ServerTarget {
    ServerTarget { host: "127.0.0.1".to_owned(), port, token, family: AddressFamily::Any }
}

#[test]
fn a_test_becomes_a_document() {
    let token = Token::new("A good secret, that is 24 or more long");
    let at: IpAddr = [127, 0, 0, 1].into();
    let serving = Serving { at: vec![at], port: 0, token: token.clone(), quotas: Quotas::default() };
    let server = Server::start(&serving).expect("a server");
    let measurement = measurement(target(server.at()[0].port(), token));
    let shown = std::cell::RefCell::new(Vec::new());
    let progress = |title: &str, _: Duration| -> Box<dyn std::any::Any> {
        shown.borrow_mut().push(title.to_owned());
        Box::new(())
    };
    let experiment = measurement.carry_out(&STOP, &progress).expect("it is measured");
    assert_eq!(shown.into_inner(), ["nothing but probes"]);
    assert_eq!((experiment.again.as_str(), experiment.runs.len()), ("again", 1));
    let run = &experiment.runs[0];
    assert_eq!((run.policy.as_str(), run.load.as_str(), run.cut), ("now", "ping", false));
    let probe = run.probes.iter().find(|probe| probe.id == "udp-ef").expect("the mark that was asked for");
    // Half a second before and after it is pinged too, every 20 ms.
    assert_eq!((probe.dscp, probe.answers.len()), (46, 75));
    assert!(figure(run, "udp-ef.median", run.window).is_ok_and(|median| median.number > 0.0));
}

#[test]
fn a_server_that_is_not_there_is_an_error_of_sockets() {
    // No one listens at a port that was just given back.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let error =
        measurement(target(port, None)).carry_out(&STOP, &|_, _| Box::new(())).expect_err("nobody is there");
    assert!(matches!(error.field(), Some(tidegate_prober::Error::NoReply { .. })), "{error:?}");
}

#[test]
fn a_missing_device_is_reported_without_a_probe() {
    let options =
        |dev, seconds| DoctorOptions { dev, seconds, host: None, again: String::new(), stop: || &STOP };
    let refused = |options: DoctorOptions<'_>| match diagnose(&options) {
        Err(Error::Invalid(words)) => words,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(options(Some("nowhere0"), 0.1)),
        "there is no device `nowhere0`; `ip link` lists them"
    );
    assert_eq!(refused(options(None, 0.0)), "--duration is from 100ms to 1h");
}
