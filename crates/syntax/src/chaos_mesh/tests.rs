use super::*;

/// The commands of a file, each with its line, and the notes' lines and texts.
fn commands(text: &str) -> (Vec<String>, Vec<String>) {
    let policy = read(text).unwrap_or_else(|problems| panic!("{text}{problems:?}"));
    let shown = policy
        .commands
        .iter()
        .map(|command| format!("{}: {} {}", command.line, command.tool, command.words.join(" ")));
    let notes = policy.notes.iter().map(|note| format!("{}: {}", note.span.line, note.what));
    (shown.collect(), notes.collect())
}

fn wrong(text: &str) -> Vec<(usize, String, String)> {
    let problems = read(text).expect_err(text);
    problems.into_iter().map(|problem| (problem.span.line, problem.what, problem.remedy)).collect()
}

/// An experiment with these lines behind its selector, which end with line 9 and are indented by two.
fn experiment(lines: &str) -> String {
    let mut text =
        "apiVersion: chaos-mesh.org/v1alpha1\nkind: NetworkChaos\nmetadata:\n  name: slow\nspec:\n  \
                    mode: all\n  selector:\n    labelSelectors:\n      'app': 'shop'\n"
            .to_owned();
    for line in lines.lines() {
        text += &format!("  {line}\n");
    }
    text
}

/// The options of the only command.
fn options(lines: &str) -> String {
    let (shown, _) = commands(&experiment(lines));
    assert_eq!(shown.len(), 1, "{shown:?}");
    let words = shown[0].split_once(" root handle 1: ").expect("at the root").1;
    words.to_owned()
}

#[test]
fn netem_has_the_options_of_the_daemon_in_its_order() {
    let rows = [
        ("action: delay\ndelay:\n  latency: 90ms", "netem delay 90ms"),
        (
            "action: delay\ndelay:\n  latency: \"90ms\"\n  correlation: \"25\"\n  jitter: \"30ms\"",
            "netem delay 90ms 30ms 25.000000",
        ),
        // Correlation hangs on jitter, and jitter that is 0 is none.
        ("action: delay\ndelay: {latency: 10ms, correlation: '100', jitter: 0ms}", "netem delay 10ms"),
        (
            "action: delay\ndelay:\n  latency: 1.5s\n  reorder: {reorder: '0.1', correlation: '50', gap: 5}",
            "netem delay 1.5s reorder 0.100000 50.000000 gap 5",
        ),
        ("action: loss\nloss: {loss: '25', correlation: '25'}", "netem loss 25.000000 25.000000"),
        ("action: loss\nloss:\n  loss: '0.3'", "netem loss 0.300000"),
        ("action: duplicate\nduplicate: {duplicate: '40', correlation: '0'}", "netem duplicate 40.000000"),
        ("action: corrupt\ncorrupt: {corrupt: '1.5', correlation: ''}", "netem corrupt 1.500000"),
        (
            "action: netem\nrate: {rate: 1mbps}\nloss: {loss: '5'}\ndelay: {latency: 50ms}\n\
             corrupt: {corrupt: '2'}\nduplicate: {duplicate: '3'}",
            "netem delay 50ms loss 5.000000 duplicate 3.000000 corrupt 2.000000 rate 1mbps",
        ),
        // A time of 0 is put on where nothing follows it.
        ("action: delay\ndelay: {latency: 0s}", "netem delay 0s"),
        ("action: netem\ndelay: {latency: 0s}\nloss: {loss: '5'}", "netem loss 5.000000"),
        (
            "action: bandwidth\nbandwidth: {rate: 1mbps, limit: 20971520, buffer: 10000}",
            "tbf rate 1mbps burst 10000 limit 20971520",
        ),
        (
            "action: bandwidth\nbandwidth:\n  rate: 10Mbit\n  limit: 100\n  buffer: 10000\n  peakrate: 1000000\n  \
             minburst: 1600",
            "tbf rate 10Mbit burst 10000 limit 100 peakrate 1000000 mtu 1600",
        ),
    ];
    for (lines, expected) in rows {
        assert_eq!(options(lines), expected, "{lines}");
    }
}

#[test]
fn what_is_left_out_is_told_at_its_line() {
    let rows = [
        ("action: delay\ndelay: {latency: 10ms}\nduration: 30s", 12, "it is taken off after 30s"),
        (
            "action: netem\nloss: {loss: '5'}\ndelay: {latency: 0.5ms}",
            12,
            "0.5ms is left out: Chaos Mesh 2.8 compares it as text with 0ms",
        ),
        (
            "action: delay\ndelay: {latency: 9ms, correlation: '5'}",
            11,
            "`correlation` of a delay without jitter",
        ),
        ("action: netem\ndelay: {latency: 9ms}\nloss: {loss: '0'}", 12, "`loss` is 0, and left out"),
        ("action: delay\ndelay: {latency: 9ms}\nloss: {loss: '1'}", 12, "`loss` is put on, too, although"),
        ("action: delay\ndelay: {latency: 9ms}\nbandwidth: {}", 12, "action: delay leaves `bandwidth` out"),
        (
            "action: delay\ndelay: {latency: 9ms}\nscheduler: {cron: '@every 1m'}",
            12,
            "`scheduler` is of Chaos Mesh 1",
        ),
        ("action: delay\ndelay: {latency: 9ms}", 6, "it is put on every pod that its selector fits"),
        ("action: delay\ndelay: {latency: 9ms}\nremoteCluster: b", 12, "it is put on in another cluster"),
    ];
    for (lines, line, expected) in rows {
        let (_, notes) = commands(&experiment(lines));
        let begin = format!("{line}: {expected}");
        assert!(notes.iter().any(|note| note.starts_with(&begin)), "{lines}\n{notes:?}");
    }
}

#[test]
fn targets_have_a_band_of_their_own_and_rules_that_lead_to_it() {
    let lines = "action: delay\ndelay: {latency: 90ms}\ndevice: eth1@if7\ndirection: to\nexternalTargets:\n  \
                 - 203.0.113.9\n  - 10.1.2.3/8:443\n  - example.org\ntarget:\n  mode: one\n  selector: {}";
    let (shown, notes) = commands(&experiment(lines));
    let expected = [
        "iptables -w -N CHAOS-OUTPUT",
        "iptables -w -A OUTPUT -j CHAOS-OUTPUT",
        "tc qdisc add dev eth1 root handle 1: prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        "tc qdisc add dev eth1 parent 1:1 handle 2: sfq",
        "tc qdisc add dev eth1 parent 1:2 handle 3: sfq",
        "tc qdisc add dev eth1 parent 1:3 handle 4: sfq",
        "tc qdisc add dev eth1 parent 1:4 handle 5: netem delay 90ms",
        "iptables -w -N TC-TABLES-0",
        "iptables -w -A TC-TABLES-0 -o eth1 -d 198.51.100.1/32 -j CLASSIFY --set-class 1:4",
        "iptables -w -A TC-TABLES-0 -o eth1 -d 203.0.113.9/32 -j CLASSIFY --set-class 1:4",
        "iptables -w -A TC-TABLES-0 -o eth1 -p tcp -d 10.0.0.0/8 --dport 443 -j CLASSIFY --set-class 1:4",
        "iptables -w -A TC-TABLES-0 -o eth1 -d 198.51.100.4/32 -j CLASSIFY --set-class 1:4",
        "iptables -w -A CHAOS-OUTPUT -j TC-TABLES-0",
    ];
    assert_eq!(shown, expected.map(|words| format!("10: {words}")));
    let told = [
        "17: `198.51.100.4` stands for the addresses of example.org",
        "18: `198.51.100.1` stands for the addresses of the pods of target",
    ];
    for begin in told {
        assert!(notes.iter().any(|note| note.starts_with(begin)), "{notes:?}");
    }
    // Of the other direction the other pods, and their device.
    let lines = "action: loss\nloss: {loss: '9'}\ndirection: from\ntargetDevice: net1\ntarget:\n  mode: fixed\n  \
                 value: '2'\n  selector: {namespaces: [db]}";
    let (shown, notes) = commands(&experiment(lines));
    assert!(shown[6].ends_with("qdisc add dev net1 parent 1:4 handle 5: netem loss 9.000000"), "{shown:?}");
    let put = "15: it is put on 2 pods, chosen at random, of those that target's selector fits";
    assert!(notes.iter().any(|note| note == put), "{notes:?}");
    let both = lines.replace("from", "both");
    let (shown, notes) = commands(&experiment(&both));
    assert!(shown[6].contains("dev eth0 parent 1:4"), "{shown:?}");
    assert!(notes.iter().any(|note| note.contains("puts the same on the pods of target")), "{notes:?}");
}

#[test]
fn schedules_workflows_and_several_experiments_are_read() {
    let spec = |indent: &str| {
        let lines = ["action: delay", "mode: one", "selector: {}", "delay: {latency: 9ms}"];
        lines.map(|line| format!("{indent}{line}\n")).concat()
    };
    let schedule = format!(
        "kind: Schedule\napiVersion: chaos-mesh.org/v1alpha1\nspec:\n  schedule: '@every 5m'\n  type: NetworkChaos\n  \
         networkChaos:\n{}",
        spec("    ")
    );
    let (shown, notes) = commands(&schedule);
    assert_eq!(shown, ["7: tc qdisc add dev eth0 root handle 1: netem delay 9ms"]);
    assert!(notes[0].starts_with("3: the experiment is put on again and again"), "{notes:?}");
    let workflow = format!(
        "apiVersion: chaos-mesh.org/v1alpha1\nkind: Workflow\nspec:\n  entry: all\n  templates:\n  - name: all\n    \
         children: [slow]\n  - name: slow\n    networkChaos:\n{}  - name: later\n    schedule:\n      \
         networkChaos:\n{}",
        spec("      "),
        spec("        ")
    );
    let (shown, notes) = commands(&workflow);
    let expected = [
        "10: tc qdisc add dev eth0 root handle 1: netem delay 9ms",
        "17: tc qdisc add dev eth0-2 root handle 1: netem delay 9ms",
    ];
    assert_eq!(shown, expected);
    let stands = "17: `eth0-2` stands for eth0 of the pods of later, which are other pods here";
    assert!(notes.iter().any(|note| note == stands), "{notes:?}");
    // What is no experiment of networks is told, and is all that is wrong where nothing else is there.
    let pod = "apiVersion: chaos-mesh.org/v1alpha1\nkind: PodChaos\nmetadata: {name: kill}\nspec: {}\n";
    let (shown, notes) =
        commands(&format!("{pod}---\n{}", experiment("action: delay\ndelay: {latency: 1s}")));
    assert_eq!(shown.len(), 1);
    assert_eq!(notes[0], "2: PodChaos kill is no experiment with networks, and left out");
    assert_eq!(wrong(pod)[0].1, "PodChaos kill is no experiment with networks, and left out");
    let partition = wrong(&experiment("action: partition\ndirection: to"));
    assert!(
        partition.iter().any(|(line, what, _)| *line == 10 && what.contains("puts no qdisc on")),
        "{partition:?}"
    );
}

#[test]
fn what_kubernetes_chaos_mesh_or_tc_refuse_is_an_error_at_its_line() {
    let delay = "action: delay\ndelay: {latency: 9ms}\n";
    let rows: [(&str, usize, &str, &str); 24] = [
        (
            "action: delay\ndelay: {latancy: 9ms, latency: 1s}",
            11,
            "`delay` has no key `latancy`",
            "did you mean latency?",
        ),
        (
            "action: loss\nloss:\n  loss: 50",
            12,
            "`loss` is a number here",
            "write it in quotes: loss: \"50\"",
        ),
        ("action: loss\nloss:\n  loss: '50%'", 12, "`loss` is 50%, which is no number", "write per cent"),
        ("action: loss\nloss: {loss: '101'}", 11, "`loss` is 101, which is no number from 0 to 100", "write"),
        ("action: loss\nloss: {loss: '0'}", 10, "netem is left without any option", "give delay"),
        (
            "action: loss\nloss: 5",
            11,
            "`loss` is a number, and takes a table",
            "its keys are loss, correlation",
        ),
        ("action: dealy", 10, "`action` cannot be dealy", "did you mean delay?"),
        ("delay: {latency: 9ms}", 5, "`spec` without `action`", "write action:"),
        ("action: delay\ndelay: {}", 11, "`delay` without `latency`", "write latency:"),
        ("action: delay\ndelay: {latency: 90}", 11, "`latency` is a number here", "write it in quotes"),
        (
            "action: delay\ndelay: {latency: '90'}",
            11,
            "90 is no time that Chaos Mesh takes",
            "write a number and its",
        ),
        ("action: delay\ndelay: {latency: 1m}", 11, "tc has no unit m for a time", "write seconds"),
        ("action: delay\ndelay: {latency: 1h2m}", 11, "1h2m is no time", "write a number"),
        ("action: bandwidth\n", 5, "action: bandwidth without `bandwidth`", "write bandwidth:"),
        (
            "action: bandwidth\nbandwidth: {rate: 1mbit, limit: 9}",
            11,
            "`bandwidth` needs a `buffer`",
            "write buffer",
        ),
        (
            "action: bandwidth\nbandwidth: {rate: 1.5mbit, limit: 9, buffer: 9}",
            11,
            "1.5mbit is no rate",
            "write a whole",
        ),
        (
            "action: bandwidth\nbandwidth: {rate: 1mbit, limit: '9', buffer: 9}",
            11,
            "`limit` takes a whole number",
            "write",
        ),
        (
            "action: delay\ndelay: {latency: 1s, reorder: {reorder: '5'}}",
            11,
            "`reorder` without `gap`",
            "write gap: 1",
        ),
        ("direction: from", 12, "direction: from without `target`", "write target:"),
        ("externalTargets: [10.0.0.0/33]", 12, "10.0.0.0/33 is no address, network or name", "write 203"),
        ("externalTargets: ['2001:db8::1']", 12, "2001:db8::1 is of IPv6", "leave it out"),
        ("externalTargets: [0.0.0.0/0]", 12, "0.0.0.0/0 is everything", "leave externalTargets out"),
        ("device: a/b", 12, "a/b is no name of a device", "correct it"),
        ("speed: 9", 12, "`spec` has no key `speed`", "its keys are action"),
    ];
    for (lines, line, what, remedy) in rows {
        let needs_action = !lines.contains("action") && !lines.starts_with("delay");
        let text = experiment(&format!("{}{lines}", if needs_action { delay } else { "" }));
        let problems = wrong(&text);
        let is_it = |(at, said, help): &(usize, String, String)| {
            *at == line && said.starts_with(what) && help.starts_with(remedy)
        };
        assert!(problems.iter().any(is_it), "{lines}\n{problems:?}");
    }
}

#[test]
fn modes_have_values_and_templates_and_old_versions_are_refused() {
    let delay = "action: delay\ndelay: {latency: 9ms}\n";
    let fixed = experiment(delay).replace("mode: all", "mode: fixed");
    assert!(wrong(&fixed)[0].1.starts_with("mode: fixed without a `value` that fits"));
    let percent = experiment(&format!("{delay}value: '101'")).replace("mode: all", "mode: fixed-percent");
    assert!(wrong(&percent)[0].2.ends_with("at most 100"));
    let old = experiment(delay).replace("chaos-mesh.org/", "pingcap.com/");
    assert!(wrong(&old)[0].1.starts_with("Chaos Mesh 2 knows apiVersion"));
    let template = wrong(&experiment("action: delay\ndelay:\n  latency: {{ .Values.latency }}"));
    assert!(template.iter().all(|(line, what, _)| *line == 12 && what.contains("template")), "{template:?}");
    assert_eq!(wrong("a: [1\nb: 2\n")[0].0, 2);
}
