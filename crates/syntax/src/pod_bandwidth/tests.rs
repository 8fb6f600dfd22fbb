use super::*;

fn commands(text: &str) -> (Vec<String>, Vec<String>) {
    let policy = read(text).unwrap_or_else(|problems| panic!("{text}{problems:?}"));
    let shown = policy
        .commands
        .iter()
        .map(|command| format!("{}: {} {}", command.line, command.tool, command.words.join(" ")));
    let notes = policy.notes.iter().map(|note| format!("{}: {}", note.span.line, note.what));
    (shown.collect(), notes.collect())
}

fn wrong(text: &str) -> Vec<(usize, String)> {
    let problems = read(text).expect_err(text);
    problems.into_iter().map(|problem| (problem.span.line, problem.what)).collect()
}

fn pod(annotations: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations: {{{annotations}}}\n")
}

#[test]
fn both_directions_are_put_on_the_nodes_end_of_the_veth() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    \
                metadata:\n      annotations:\n        kubernetes.io/ingress-bandwidth: 80M\n        \
                kubernetes.io/egress-bandwidth: 1G\n    spec: {}\n";
    let (shown, notes) = commands(text);
    assert_eq!(
        shown,
        [
            "9: tc qdisc add dev veth0 root handle 1: tbf rate 80000000bit burst 536870910b limit 537120911b",
            "10: ip link add bwp0 type ifb",
            "10: ip link set bwp0 up",
            "10: tc qdisc add dev veth0 ingress",
            "10: tc filter add dev veth0 parent ffff: protocol all prio 1 u32 match u32 0 0 flowid 1:1 action mirred \
             egress redirect dev bwp0",
            "10: tc qdisc add dev bwp0 root handle 1: tbf rate 1000000000bit burst 536870875b limit 539995911b",
        ]
    );
    let stands = "9: `veth0` stands for the node's end of the veth of each pod of web";
    assert!(notes.len() == 1 && notes[0].starts_with(stands), "{notes:?}");
}

/// The numbers of Go's conversions on amd64, for rates at which they lose upper bits.
#[test]
fn bursts_lose_what_has_no_32_bits() {
    let rows = [("10M", "1250000", "193273528"), ("1M", "125000", "21474836"), ("100k", "12500", "2147483")];
    for (rate, bytes, burst) in rows {
        let (shown, notes) = commands(&pod(&format!("kubernetes.io/egress-bandwidth: {rate}")));
        let bits: u64 = bytes.parse::<u64>().expect("a number") * 8;
        let last = shown.last().expect("a qdisc");
        assert!(last.contains(&format!("tbf rate {bits}bit burst {burst}b limit")), "{rate}: {last}");
        assert!(notes.iter().any(|note| note.contains("loses its")), "{notes:?}");
    }
    let is_told = |rate: &str| {
        let (_, notes) = commands(&pod(&format!("kubernetes.io/ingress-bandwidth: {rate}")));
        notes.iter().any(|note| note.contains("loses its"))
    };
    assert_eq!(["15624999", "15625000"].map(|rate| is_told(&format!("'{rate}'"))), [true, false]);
}

#[test]
fn limits_without_effect_and_no_quantities_are_errors() {
    let quantities = [
        ("10M", Some(10_000_000)),
        ("1.5Gi", Some(1_610_612_736)),
        ("1e6", Some(1_000_000)),
        ("2E3", Some(2000)),
        ("1500m", Some(2)),
        ("100Ki", Some(102_400)),
        (".5M", Some(500_000)),
        ("10Mbps", None),
        ("10 M", None),
        ("10K", None),
        ("1.2.3M", None),
        ("-1M", None),
        ("M", None),
    ];
    for (text, expected) in quantities {
        assert_eq!(quantity(text), expected, "{text}");
    }
    let rows = [
        (pod("kubernetes.io/ingress-bandwidth: 10Mbps"), 5, "10Mbps is no quantity that"),
        (
            pod("kubernetes.io/ingress-bandwidth: 1000000"),
            5,
            "`kubernetes.io/ingress-bandwidth` is a number here",
        ),
        (pod("kubernetes.io/ingress-bandwidth: 100"), 5, "`kubernetes.io/ingress-bandwidth` is a number"),
        (pod("kubernetes.io/ingress-bandwidth: 10m"), 5, "10m is 1 bits a second, and not from 1k to 1T"),
        (
            pod("kubernetes.io/ingress-bandwidth: 1M").replace("Pod", "Deployment"),
            5,
            "kubernetes.io/ingress-bandwidth stands at the Deployment itself",
        ),
        ("kind: Pod\nspec: {}\n".to_owned(), 1, "no pod of this file has limits"),
    ];
    for (text, line, what) in rows {
        let problems = wrong(&text);
        assert!(problems[0].0 == line && problems[0].1.starts_with(what), "{text}{problems:?}");
    }
    let cron = "kind: CronJob\nspec:\n  jobTemplate:\n    spec:\n      template:\n        metadata:\n          \
                annotations: {kubernetes.io/ingress-bandwidth: 20M}\n";
    assert_eq!(commands(cron).0.len(), 1);
    // Each pod of a file has a veth of its own.
    let two = format!(
        "{}---\n{}",
        pod("kubernetes.io/ingress-bandwidth: 1G"),
        pod("kubernetes.io/egress-bandwidth: 1G")
    );
    assert!(commands(&two).0.last().expect("a qdisc").contains("dev bwp1 root"));
}
