use super::*;
use crate::files::NoFiles;

const GOOD: &str = "\
duration = '30s'

[links.lan]
between = ['a', 'b', 'gateway:eth0']
rate = '100mbit'

[links.dsl]
between = ['gateway:eth1', 'isp']
delay = '8ms'
up = { rate = '128kbit' }
down = { rate = '1mbit', buffer = '64kB' }

[links.internet]
between = ['isp', 'server']

[policies.none]
[policies.tbf]
gateway = ['tc qdisc add dev eth1 root tbf rate 100kbit burst 2048 latency 50ms']

[loads.upload]
traffic = [{ tcp = 'a -> server', count = 2 }]

[[traffic]]
ping = 'b -> server'

[[at]]
time = '10s'
run = 'tc qdisc show dev eth1'

[[expect]]
figure = 'ping.mean'
of = 'tbf/upload'
over = 'ping.max of none/upload'
published = '0.5'
tolerance = '10%'
";

fn read(text: &str) -> Result<Scenario, Diagnostic> {
    parse(Path::new("x/home.toml"), text, &NoFiles)
}

/// Where a text is wrong, and why: the first line of the message, and what it underlines.
fn error(text: &str) -> String {
    match read(text) {
        Ok(_) => "nothing".to_owned(),
        Err(wrong) => {
            let shown = wrong.shown(Path::new("f"), text);
            let marked =
                text.get(wrong.at.clone()).unwrap_or_default().lines().next().unwrap_or_default().to_owned();
            format!("{} [{marked}] = {}", shown.lines().next().unwrap_or_default(), wrong.remedy)
        }
    }
}

#[test]
fn a_scenario_is_understood() {
    let scenario = read(GOOD).unwrap_or_else(|_| panic!("{}", error(GOOD)));
    let nodes: Vec<String> = scenario
        .nodes
        .iter()
        .map(|node| format!("{} {:?} {:?}", node.name, node.role, node.address))
        .collect();
    let expected = [
        "a Host Some(10.0.0.2)",
        "b Host Some(10.0.0.3)",
        "gateway Machine None",
        "isp Relay Some(198.51.100.1)",
        "server Host Some(198.51.100.2)",
    ];
    assert_eq!(nodes, expected);
    let dsl = &scenario.cables[1];
    assert_eq!(
        (dsl.up.rate, dsl.down.rate, dsl.up.delay),
        (Some(128_000), Some(1_000_000), Some(Nanos::millis(8)))
    );
    let ids: Vec<&str> = scenario.loads[0].items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!((ids, scenario.cases.len(), scenario.at.len()), (vec!["ping", "upload"], 2, 1));
    let expected = &scenario.expect[0];
    assert_eq!((expected.published, expected.within), (Some(0.5), (0.45, 0.55)));
    let over = expected.over.as_ref().map(|over| (over.name.as_str(), over.policy));
    assert_eq!((expected.figure.policy, over), (1, Some(("ping.max", 0))));
}

/// Each is the good file with one thing changed.
#[test]
fn what_is_wrong_has_its_place_and_a_remedy() {
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        error(&GOOD.replace(from, to))
    };
    let rows = [
        (with("duration", "durration"), "f:1:1: unknown key [durration] = did you mean `duration`?"),
        (with("'30s'", "'30 parsecs'"), "f:1:12: `30 parsecs` is not a time ['30 parsecs'] = write 500us"),
        (with("'100mbit'", "'fast'"), "f:5:8: `fast` is not a rate ['fast'] = write 128kbit"),
        (
            with("'100mbit'", "'0mbit'"),
            "f:5:8: a rate of zero carries nothing ['0mbit'] = write what the line",
        ),
        (with("'100mbit'", "'100'"), "f:5:8: `100` has no unit ['100'] = did you mean"),
        (
            with("['isp', 'server']", "['isq', 'server']"),
            "f:24:8: no links lead from `b` to `server` ['b -> server'",
        ),
        (
            with("'gateway:eth1', 'isp'", "'gateway:eth0', 'isp'"),
            "f:8:12: `gateway:eth0` already ends link `lan`",
        ),
        (
            with("'gateway:eth1', 'isp'", "'gateway', 'isp'"),
            "f:8:12: `gateway` is a machine: name its device",
        ),
        (with("['isp', 'server']", "['isp']"), "f:14:11: a link has two ends, or more"),
        (with("['isp', 'server']", "['isp', 'isp']"), "f:14:19: `isp` is at both ends of this link"),
        (with("'64kB'", "'64 miles'"), "f:11:35: `64 miles` is neither a size nor a time"),
        (
            with("'b -> server'", "'b -> sever'"),
            "f:24:14: unknown name `sever` [sever] = the links name a, b, gateway",
        ),
        (
            with("'b -> server'", "'b - server'"),
            "f:24:8: missing sender and receiver ['b - server'] = write `\"a -> server\"`",
        ),
        (with("'b -> server'", "'b -> b'"), "f:24:14: `b` is both sender and receiver [b]"),
        (with("tcp = ", "tpc = "), "f:21:14: unknown key [tpc] = did you mean `tcp`?"),
        (
            with("count = 2", "count = 0"),
            "f:21:43: this number is out of range [0] = write a whole number from 1",
        ),
        (with("gateway = [", "gatewy = ["), "f:18:1: unknown machine `gatewy` [gatewy]"),
        (with("tc qdisc show", "tcc qdisc show"), "f:28:7: `tcc` is no tool that a machine has here"),
        (with("tc qdisc show dev eth1", "tc qdisc show | head"), "f:28:7: only a shell understands this"),
        (with("of = 'tbf/upload'", "of = 'tbb/upload'"), "f:32:6: unknown policy `tbb`"),
        (with("of = 'tbf/upload'", "of = 'tbf/uplaod'"), "f:32:6: unknown load `uplaod`"),
        (with("'10%'", "'some'"), "f:35:13: `some` is not a figure"),
        (with("[policies.none]\n", "[policies.none\n"), "f:16:15: "),
        (error(""), "f:1:1: no links defined"),
    ];
    let others: Vec<String> = rows
        .iter()
        .filter(|(found, expected)| !found.starts_with(expected))
        .map(|(found, expected)| format!("{found}\ninstead of\n{expected}"))
        .collect();
    assert!(others.is_empty(), "{}", others.join("\n\n"));
}

#[test]
fn the_home_link_is_a_shortcut() {
    let text = "[home]\nup = '768kbit'\ndown = '4mbit'\nover = 'ppp0 on eth2'\n[loads.up]\ntraffic = \
    [{ tcp = 'a -> server' }]\n";
    let scenario = read(text).unwrap_or_else(|_| panic!("{}", error(text)));
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "gateway", "modem", "isp", "server"]);
    let devices: Vec<(&str, Option<&str>)> =
        scenario.nodes[2].machine.devices.iter().map(|d| (d.name.as_str(), d.on.as_deref())).collect();
    assert_eq!(devices, [("eth1", None), ("eth2", None), ("ppp0", Some("eth2"))]);
    // What the far side sends is a download, whichever side asks for it.
    let text = &text.replace(
        "{ tcp = 'a -> server' }",
        "{ tcp = 'server -> a' }, { tcp = 'b <- server' }, { \
        tcp = 'a -> server' }",
    );
    let scenario = read(text).unwrap_or_else(|_| panic!("{}", error(text)));
    let items: Vec<&str> = scenario.loads[0].items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(items, ["download", "download-2", "upload"]);
    let buffer = |size: &str| {
        let text = text.replace("down = '4mbit'\n", &format!("down = '4mbit'\nbuffer = '{size}'\n"));
        read(&text).map(|scenario| scenario.cables[2].up.buffer).ok().flatten()
    };
    assert_eq!(buffer("250ms"), Some(crate::model::BufferSize::Time(Nanos::millis(250))));
    assert_eq!(buffer("150000"), Some(crate::model::BufferSize::Bytes(150_000)));
    let twice = format!("{text}[links.dsl]\nbetween = ['x', 'y']\n");
    assert!(error(&twice).contains("has a link `dsl` of its own"), "{}", error(&twice));
}

/// A line that varies has its rates, delays and buffers by the preset's name; its mean stands for the rate.
#[test]
fn a_preset_is_a_line_that_varies() {
    let home = |keys: &str| format!("[home]\n{keys}\n[[traffic]]\nping = 'a -> server'\n");
    let line =
        |keys: &str| read(&home(keys)).unwrap_or_else(|_| panic!("{}", error(&home(keys)))).cables[2].clone();
    let dsl = line("preset = 'dsl-retrain'");
    assert_eq!(dsl.up.rate, dsl.up.trace.as_ref().and_then(tidegate_sim::Trace::mean_rate));
    assert!(dsl.down.trace.is_some_and(|trace| trace.has_delays()));
    assert_eq!(dsl.up.buffer, Some(crate::model::BufferSize::Time(Nanos::secs(1))));
    let other = line("preset = 'dsl-retrain'\nseed = 2\nbuffer = '100ms'");
    assert_eq!(other.up.buffer, Some(crate::model::BufferSize::Time(Nanos::millis(100))));
    assert_ne!(other.up.trace, dsl.up.trace);
    let one_way = line("up = '1mbit'\ndown = '9mbit'\ndown-line = { trace = { preset = 'dsl-retrain/up' } }");
    assert_eq!((one_way.down.trace, one_way.up.trace), (dsl.up.trace, None));
    assert!(error(&home("preset = 'isdn'")).contains("there is no preset `isdn`"));
    assert!(error(&home("preset = 'lte'\nup = '1mbit'")).contains("`up` beside `preset`"));
    let no_way = "up = '1mbit'\ndown = '9mbit'\nup-line = { trace = { preset = 'lte' } }";
    assert!(error(&home(no_way)).contains("`lte` is no direction of a preset"), "{}", error(&home(no_way)));
}

#[test]
fn a_sweep_is_one_size_after_the_other() {
    let sweep = "[[traffic]]\nudp = 'a -> server'\nrate = '1mbit'\nsizes = [0, 100]\neach = '5s'\n[[at]]";
    let text = GOOD.replacen("[[at]]", sweep, 1);
    let scenario = read(&text).unwrap_or_else(|_| panic!("{}", error(&text)));
    let items: Vec<(&str, Nanos, Option<Nanos>)> =
        scenario.loads[0].items[1..3].iter().map(|item| (item.id.as_str(), item.start, item.stop)).collect();
    let secs = Nanos::secs;
    assert_eq!(items, [("udp-0", secs(0), Some(secs(5))), ("udp-100", secs(5), Some(secs(10)))]);
}

#[test]
fn datagrams_leave_evenly_or_not() {
    use crate::model::{DatagramPacing, TrafficKind};
    for (words, pace) in [
        ("rate = '1mbit'", DatagramPacing::Even),
        ("rate = '1mbit'\nuneven = '4ms'", DatagramPacing::Late(Nanos::millis(4))),
        ("every = '11200us'\npoisson = true", DatagramPacing::Poisson),
    ] {
        let text = GOOD.replacen("[[at]]", &format!("[[traffic]]\nudp = 'a -> server'\n{words}\n[[at]]"), 1);
        let scenario = read(&text).unwrap_or_else(|_| panic!("{}", error(&text)));
        let TrafficKind::Udp { payload, every, pace: found } = scenario.loads[0].items[1].what else {
            panic!("datagrams")
        };
        assert_eq!((payload, every, found), (1400, Nanos::micros(11_200), pace));
    }
}

#[test]
fn lines_may_do_many_things() {
    use crate::model::BufferSize;
    use tidegate_sim::{Cells, LossModel};
    let with = |line: &str| {
        GOOD.replace("up = { rate = '128kbit' }", &format!("up = {{ rate = '128kbit', {line} }}"))
    };
    let up = |line: &str| {
        let text = with(line);
        read(&text).unwrap_or_else(|_| panic!("{}", error(&text))).cables[1].up.clone()
    };
    assert_eq!(up("buffer = '100 packets'").buffer, Some(BufferSize::Packets(100)));
    assert_eq!(up("buffer = '200ms'").buffer, Some(BufferSize::Time(Nanos::millis(200))));
    let loss = |line: &str| up(line).impairment.map(|what| what.loss);
    assert_eq!(loss("loss = '1%'"), Some(LossModel::Random(0.01)));
    assert_eq!(loss("loss = { pattern = '.x' }"), Some(LossModel::Pattern(vec![false, true])));
    let burst = LossModel::Burst { p: 0.01, r: 0.1, bad: 0.75, good: 0.0 };
    assert_eq!(loss("loss = { burst = { p = '1%', r = '10%', h = '25%' } }"), Some(burst));
    let framing = |line: &str| up(line).framing.map(|f| (f.overhead, f.minimum, f.cells));
    assert_eq!(framing("framing = 'pppoe-atm-llc'"), Some((26, 0, Cells::Atm)));
    assert_eq!(
        framing("framing = { overhead = 40, minimum = 64, cells = 'ptm' }"),
        Some((40, 64, Cells::Ptm))
    );
    for (line, why) in [
        ("loss = { every = 3, random = '1%' }", "one kind of loss was expected"),
        ("loss = '120%'", "`120%` is not a share"),
        ("framing = 'atm'", "unknown framing"),
        ("trace = 'nowhere.trace'", "nowhere.trace"),
    ] {
        assert!(error(&with(line)).contains(why), "{}", error(&with(line)));
    }
}

#[test]
fn events_repeat() {
    let with = |words: &str| GOOD.replace("time = '10s'\n", &format!("time = '10s'\n{words}\n"));
    let times = |words: &str| {
        let scenario = read(&with(words)).unwrap_or_else(|_| panic!("{}", error(&with(words))));
        scenario.at.iter().map(|entry| entry.time.0 / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(times("every = '5s'\nuntil = '25s'"), [10_000, 15_000, 20_000]);
    assert_eq!(times("every = '5s'\nuntil = '1s'"), [10_000]);
    assert!(error(&with("every = '5s'")).contains("missing end"), "{}", error(&with("every = '5s'")));
    let many = error(&with("every = '1ms'\nuntil = '3600s'"));
    assert!(many.contains("more than 10000 events ['1ms'] = lengthen `every`"), "{many}");
    assert!(error(&with("until = '5s'")).contains("only what repeats has an end ['5s']"));
}

#[test]
fn cases_may_be_few() {
    let case = GOOD.replace("[[expect]]", "[[case]]\npolicy = 'tbf'\n[[expect]]");
    assert!(error(&case).contains("this case is not run"), "{}", error(&case));
    let alone = case.replace("over = 'ping.max of none/upload'\n", "").replace("of = 'tbf/upload'\n", "");
    let scenario = read(&alone).unwrap_or_else(|_| panic!("{}", error(&alone)));
    assert_eq!((scenario.cases, scenario.expect[0].figure.policy), (vec![(1, 0)], 1));
}

#[test]
fn flents_tests_by_their_names() {
    for (test, count) in [("rrul", 9), ("tcp_nup", 2), ("voip", 3), ("ping", 1), ("web", 2)] {
        let traffic = format!("traffic = [{{ test = '{test}', between = ['a', 'server'] }}]");
        let text = GOOD.replace("traffic = [{ tcp = 'a -> server', count = 2 }]", &traffic);
        let text = text.replace("[[traffic]]\nping = 'b -> server'\n", "");
        let scenario = read(&text).unwrap_or_else(|_| panic!("{test}: {}", error(&text)));
        let load = &scenario.loads[0];
        assert_eq!((load.items.len(), load.test.as_deref()), (count, Some(test)));
    }
}

#[test]
fn programs_run_on_hosts() {
    let with = |programs: &str| {
        let traffic = "traffic = [{ tcp = 'a -> server', count = 2 }]";
        GOOD.replace(traffic, &format!("{traffic}\nprograms = [{{ {programs} }}]"))
    };
    let text = with("on = 'a', run = 'iperf3 -c server', start = '1s', stop = '9s'");
    let scenario = read(&text).unwrap_or_else(|_| panic!("{}", error(&text)));
    let program = &scenario.loads[0].programs[0];
    assert_eq!(
        (program.command.as_str(), program.start, program.stop),
        ("iperf3 -c server", Nanos::secs(1), Some(Nanos::secs(9)))
    );
    for (programs, why) in [
        ("on = 'nobody', run = 'true'", "unknown name `nobody`"),
        ("on = 'gateway', run = 'true'", "no program runs there"),
        ("on = 'a'", "missing command"),
        ("on = 'a', run = 'true', start = '2s', stop = '1s'", "its stop is before its start"),
    ] {
        assert!(error(&with(programs)).contains(why), "{}", error(&with(programs)));
    }
}

#[test]
fn a_title_is_one_line() {
    let forged = error(&format!("title = \"T\\n3 of 3 hold\"\n{GOOD}"));
    assert!(forged.contains("a title has no line breaks"), "{forged}");
}

/// Recordings beside a scenario.
struct Recordings;

impl crate::Files for Recordings {
    fn exists(&self, path: &Path) -> bool {
        self.text(path).is_ok()
    }

    fn text(&self, path: &Path) -> Result<String, crate::FileError> {
        match path.to_str() {
            Some("x/a.csv") => Ok("time,rate_mbit\n0,1\n1,2\n2,3\n".to_owned()),
            Some("x/b.csv") => Ok("time,rate_mbit,delay_ms\n0,1,5\n1,2,6\n".to_owned()),
            Some("x/bw_1.txt") => Ok("0\n0\n1\n2\n2\n2\n".to_owned()),
            Some("x/delay_1.txt") => Ok("24\n18\n".to_owned()),
            Some("x/77.72mbps.trace") => Ok("1\n2\n".to_owned()),
            _ => Err(crate::FileError::new("there is no such file")),
        }
    }

    fn policy(&self, _: &crate::PolicyFile) -> Result<crate::PolicyCommands, crate::FileError> {
        Err(crate::FileError::new("there are no policies here"))
    }
}

/// Recordings are cut, scaled, begun elsewhere, repeated and joined, and what is wrong is said where it is.
#[test]
fn recordings_are_composed() {
    let home = |trace: &str| {
        format!(
            "[home]\nup = '1mbit'\ndown = '9mbit'\nup-line = {{ trace = {trace} }}\n[[traffic]]\nping = 'a -> server'\n"
        )
    };
    let parsed = |trace: &str| {
        let text = home(trace);
        parse(Path::new("x/home.toml"), &text, &Recordings)
            .map(|scenario| scenario.cables[2].up.trace.clone().expect("a trace"))
            .map_err(|wrong| format!("[{}] {}; {}", &text[wrong.at], wrong.reason, wrong.remedy))
    };
    let seconds = |trace: &str| {
        let trace = parsed(trace)?;
        let carried = |n| trace.carries(Nanos::secs(n), Nanos::secs(n + 1)).unwrap_or(0) / 125_000;
        Ok::<_, String>((0..5).map(carried).collect::<Vec<u64>>())
    };
    for (trace, expected) in [
        ("{ file = 'a.csv', skip = '1s', scale = 2 }", [4, 6, 4, 6, 4]),
        ("{ file = 'a.csv', length = '2s', offset = '1s' }", [2, 1, 2, 1, 2]),
        ("{ file = 'a.csv', loop = false }", [1, 2, 3, 3, 3]),
        ("{ join = ['a.csv', { file = 'a.csv', length = '1s', loop = 2 }] }", [1, 2, 3, 1, 1]),
        ("{ join = ['a.csv', 'a.csv'], scale = 0.5, skip = '2s', length = '2s' }", [1, 0, 1, 0, 1]),
        (
            "{ join = ['a.csv', { join = ['a.csv'], skip = '2s' }], loop = false, offset = '1s' }",
            [2, 3, 3, 1, 1],
        ),
    ] {
        assert_eq!(seconds(trace), Ok(expected.to_vec()), "{trace}");
    }
    let leo = parsed("{ file = 'bw_1.txt', delays = 'delay_1.txt' }").expect("a trace");
    assert_eq!((leo.mean_rate(), leo.mean_delay()), (Some(36_000_000), Some(Nanos::millis(21))));
    for (trace, expected) in [
        ("{ join = [] }", "[[]] this is no list of recordings; write 1 to 64 recordings"),
        (
            "{ join = ['a.csv', 'b.csv'] }",
            "['b.csv'] it has delays, and the first has none; join recordings that",
        ),
        ("{ join = ['a.csv', 'none.csv'] }", "['none.csv'] x/none.csv: there is no such file"),
        ("{ join = ['a.csv'], preset = 'lte/up' }", "`join` beside `preset`"),
        ("{ join = ['a.csv'], file = 'a.csv' }", "unknown key"),
        ("{ file = 'a.csv', skip = '3s' }", "x/a.csv:1: `skip` leaves nothing of the recording"),
        ("{ join = ['a.csv'], skip = '3s' }", "it is 3 s long: nothing of it is left; skip less"),
        ("{ file = 'a.csv', loop = 0 }", "[0] "),
        ("{ file = 'a.csv', scale = 0 }", "[0] this is not a factor"),
        ("{ file = 'a.csv', length = '0s' }", "['0s'] "),
        ("{ file = 'b.csv', delays = 'delay_1.txt' }", "x/delay_1.txt:1: the recording has delays already"),
        ("{ file = 'a.csv', delays = 'a.csv' }", "['a.csv'] x/a.csv:1: `time,rate_mbit` is no delay"),
        ("{ delays = 'delay_1.txt' }", "`file` is missing"),
    ] {
        let found = parsed(trace).expect_err(trace);
        assert!(found.contains(expected), "{trace}: {found}");
    }
}

/// The emulators of Pantheon (Yan and others, 2018) are a trace, a delay, a loss and a queue in packets, and
/// docs/scenario.md says which keys these are.
#[test]
fn an_emulator_of_pantheon_is_a_link() {
    let text = "[links.emulator]\nbetween = ['client', 'server']\ndelay = '51ms'\n\
                both = { trace = '77.72mbps.trace' }\nup = { loss = '0.06%', buffer = '94 packets' }\n\
                [[traffic]]\nping = 'client -> server'\n";
    let scenario = parse(Path::new("x/p.toml"), text, &Recordings).expect("a scenario");
    let link = &scenario.cables[0];
    assert_eq!((link.up.delay, link.down.delay), (Some(Nanos::millis(51)), Some(Nanos::millis(51))));
    assert_eq!(link.up.buffer, Some(crate::model::BufferSize::Packets(94)));
    assert_eq!(
        link.up.impairment.as_ref().map(|impairment| impairment.loss.clone()),
        Some(tidegate_sim::LossModel::Random(0.0006))
    );
    assert!(link.up.trace.is_some() && link.down.trace.is_some() && link.down.impairment.is_none());
}
