//! What pings showed, written and read back; files of ping-exp.

use crate::fixture::pinged::{MS, pinged};
use tidegate_analysis::ping::{from_json, from_pingexp, to_json};

#[test]
fn what_is_written_is_read_back() {
    let pinged = pinged();
    let written = to_json(&pinged);
    let old = written
        .replace("\"tidegate_ping\": 2", "\"tidegate_ping\": 1")
        .replace("\"command\": ", "\"again\": ")
        .replace("\"replies\": ", "\"answers\": ")
        .replace("\"error_replies\": ", "\"errors_for_answers\": ");
    assert_eq!(from_json(&old), Ok(pinged.clone()));
    assert_eq!(from_json(&written), Ok(pinged));
    let wrong = [
        ("\"here_ns\": [0,", "\"here_ns\": [", "targets[0].here_ns: 10 values expected, as many as replies"),
        (
            "[[0,20000000]",
            "[[9000000000000,20000000]",
            "targets[0].replies: requests are in the order in which they were sent",
        ),
        (
            "\"size\": 200",
            "\"size\": 70000",
            "targets[0].size: a number of at most 65535 expected, found 70000",
        ),
        (
            "\"tidegate_ping\": 2",
            "\"tidegate_ping\": 3",
            "tidegate_ping: form 3, where this version reads forms 1 to 2",
        ),
    ];
    for (from, to, expected) in wrong {
        assert!(written.contains(from), "{from} in {written}");
        let error = from_json(&written.replacen(from, to, 1)).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// What Python's pickle module wrote of one dictionary of ping-exp's form, by three of its protocols.
#[test]
fn files_of_ping_exp_are_read_by_any_protocol() {
    let files: [&[u8]; 3] = [
        include_bytes!("../pingexp/protocol0.data"),
        include_bytes!("../pingexp/protocol2.data"),
        include_bytes!("../pingexp/protocol4.data"),
    ];
    for bytes in files {
        let pinged = from_pingexp(bytes).expect("it is one");
        assert_eq!((pinged.began_ns, pinged.targets.len()), (1_300_000_000_250_000_000, 2));
        let [one, other] = &pinged.targets[..] else { panic!("two targets") };
        assert_eq!(
            (one.id.as_str(), one.host.as_str(), one.ds_field, other.ds_field),
            ("dest1", "192.0.2.1", 16, 184)
        );
        let asked: Vec<_> =
            one.requests.iter().map(|request| (request.sent_ns / MS, request.took_ns)).collect();
        let expected = [(200, Some(12_500_000)), (400, Some(900_000)), (600, None), (800, Some(130_000_000))];
        assert_eq!(asked, expected);
        assert_eq!((one.figures().loss, other.figures().loss), (0.25, 1.0));
    }
    let error = from_pingexp(b"no pickle at all").expect_err("it is none").to_string();
    assert!(error.contains("the pickle: byte") && error.contains("pingexp.py -w FILE"), "{error}");
    let other = from_pingexp(b"}.").expect_err("it holds nothing").to_string();
    assert!(other.starts_with("experiments: missing"), "{other}");
}
