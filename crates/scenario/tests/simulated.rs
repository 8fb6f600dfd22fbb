//! Scenarios carried out: what each must show is in it as expectations.

use std::path::Path;
use tidegate_scenario::{NoFiles, RunError, parse, simulate};

/// Does everything hold that the scenario expects? And does it expect anything?
fn check(name: &str, text: &str) {
    let path = Path::new(name);
    let mut scenario =
        parse(path, text, &NoFiles).unwrap_or_else(|wrong| panic!("{}", wrong.shown(path, text)));
    let experiment = simulate(&mut scenario, &NoFiles).unwrap_or_else(|error| panic!("{error}"));
    let required: Vec<_> = experiment.comparisons.iter().filter(|one| one.gated).collect();
    assert!(!required.is_empty(), "{name} expects nothing");
    let failed: Vec<_> = required.iter().filter(|one| !one.held).collect();
    assert!(failed.is_empty(), "{name}: {failed:#?}");
}

/// A host, a gateway, a slow line, a server.
const LINE: &str = include_str!("data/line.toml");

/// A mark and a priority belong to one machine; fields of the packet do not.
#[test]
fn a_packet_comes_to_the_next_machine_as_a_stranger() {
    let classes = |field: &str| {
        format!(
            "'tc qdisc add dev eth1 root handle 1: prio bands 3 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2',\n\
             'tc filter add dev eth1 parent 1: protocol ip prio 1 handle 7 fw flowid 1:1',\n{field}"
        )
    };
    let tos = "'tc filter add dev eth1 parent 1: protocol ip prio 2 u32 match ip tos 0xb8 0xff flowid 1:2'";
    let text = format!(
        "warm-up = '0s'\nduration = '5s'\n\
         [links.one]\nbetween = ['a', 'first:eth0']\n\
         [links.two]\nbetween = ['first:eth1', 'second:eth0']\nrate = '10mbit'\n\
         [links.three]\nbetween = ['second:eth1', 'server']\nrate = '10mbit'\n\
         [policies.marks]\n\
         first = ['iptables -t mangle -A FORWARD -p udp -j MARK --set-mark 7',\n\
         'iptables -t mangle -A FORWARD -p icmp -j DSCP --set-dscp-class ef',\n{}]\n\
         second = [{}]\n\
         [[traffic]]\nudp = 'a -> server'\nevery = '100ms'\nid = 'marked'\n\
         [[traffic]]\nping = 'a -> server'\nevery = '100ms'\n\
         [[expect]]\nwhat = 'the mark on the machine that gave it'\nfigure = 'class first:eth1 \
         1:1.packets'\nwithin = [49, 50]\n\
         [[expect]]\nwhat = 'and on the next one'\nfigure = 'class second:eth1 1:1.packets'\nwithin = [0, \
         0]\n\
         [[expect]]\nfigure = 'class second:eth1 1:3.packets'\nwithin = [49, 50]\n\
         [[expect]]\nwhat = 'the DS field on the next one'\nfigure = 'class second:eth1 \
         1:2.packets'\nwithin = [49, 50]\n\
         [[expect]]\nfigure = 'ping.loss'\nbelow = 0.0\n",
        classes(tos),
        classes(tos),
    );
    check("sim-stranger", &text);
}

#[test]
fn tunnels_lead_from_machine_to_machine() {
    let text = "
warm-up = '0s'
duration = '10s'
[links.lan]
between = ['a', 'gateway:eth0']
[links.up]
between = ['gateway:eth1', 'middle:eth0']
rate = '10mbit'
[links.down]
between = ['middle:eth1', 'far:eth0']
rate = '10mbit'
[links.home]
between = ['far:eth1', 'server']
[machines.gateway.devices]
tun0 = { on = 'eth1', tunnel = 'ipip', local = '192.0.2.1', remote = '198.51.100.9' }
[machines.far.devices]
tun0 = { on = 'eth0', tunnel = 'ipip', local = '198.51.100.9', remote = '192.0.2.1' }
[policies.count]
gateway = ['tc qdisc add dev tun0 root handle 5: tbf rate 5mbit burst 20k latency 1s']
middle = ['tc qdisc add dev eth1 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2',
  'tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip protocol 4 0xff match ip dst \
  198.51.100.9/32 flowid 1:1']
[[traffic]]
ping = 'a -> server'
every = '100ms'
[[traffic]]
ping = 'middle -> server'
id = 'outside'
every = '100ms'
[[expect]]
what = 'what passes the machine between is wrapped'
figure = 'class middle:eth1 1:1.packets'
within = [99, 100]
[[expect]]
what = 'each is 20 bytes longer than 98'
figure = 'class middle:eth1 1:1.sent'
within = ['11682 bytes', '11800 bytes']
[[expect]]
what = 'what begins between is not'
figure = 'class middle:eth1 1:3.packets'
within = [99, 100]
[[expect]]
what = 'the tunnel has a policy of its own'
figure = 'class gateway:tun0 5:.packets'
within = [99, 100]
[[expect]]
figure = 'ping.loss'
below = 0.0
[[expect]]
figure = 'outside.loss'
below = 0.0
";
    check("sim-tunnels", text);
}

#[test]
fn pppoe_is_taken_off_where_another_machine_begins() {
    let text = "
warm-up = '0s'
duration = '5s'
[links.lan]
between = ['a', 'gateway:eth0']
[links.cable]
between = ['gateway:eth1', 'modem']
rate = '100mbit'
[links.dsl]
between = ['modem', 'isp:eth0']
rate = '10mbit'
[links.internet]
between = ['isp:eth1', 'server']
rate = '10mbit'
[machines.gateway]
devices = { ppp0 = { on = 'eth1' } }
[policies.count]
gateway = ['tc qdisc add dev ppp0 root handle 1: pfifo', 'tc qdisc add dev eth1 root handle 2: pfifo']
isp = ['tc qdisc add dev eth1 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2',
  'tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip protocol 1 0xff flowid 1:1']
[[traffic]]
ping = 'a -> server'
every = '100ms'
[[traffic]]
tcp = 'a -> server'
bytes = '100kB'
[[expect]]
figure = 'ping.loss'
below = 0.0
[[expect]]
what = 'pings without PPPoE'
figure = 'class isp:eth1 1:1.sent'
within = ['4802 bytes', '4900 bytes']
[[expect]]
what = 'ppp0 sees IP packets'
figure = 'class gateway:ppp0 1:.packets'
above = 100
[[expect]]
figure = 'upload.time'
below = '2s'
";
    check("sim-pppoe", text);
}

/// The driver's ring is a queue beneath every policy; `ethtool -G` makes it short.
#[test]
fn a_long_ring_hides_from_the_policy() {
    let ring = LINE.replace("buffer = '64kB'", "ring = 64\nbuffer = '64kB'");
    let text = format!(
        "{ring}[policies.fifo]\ngateway = ['tc qdisc add dev eth1 root pfifo limit 2']\n\
         [loads.up]\ntraffic = [{{ tcp = 'a -> server' }}]\n\
         [[at]]\ntime = '7s'\nrun = 'ethtool -G eth1 tx 1'\n\
         [[expect]]\nfigure = 'ping.p95'\nbetween = ['3s', '7s']\nabove = '200ms'\n\
         [[expect]]\nfigure = 'ping.p95'\nbetween = ['8s', '12s']\nbelow = '60ms'\n"
    );
    check("sim-ring", &text);
}

/// A transmit queue that is taken away leaves the card's ring alone to hold packets.
#[test]
fn a_transmit_queue_changes_its_length() {
    let text = format!(
        "{}[policies.none]\n[loads.up]\ntraffic = [{{ udp = 'a -> server', rate = '4mbit' }}]\n\
         [[at]]\ntime = '6s'\nrun = 'ifconfig eth1 txqueuelen 0'\n\
         [[expect]]\nfigure = 'ping.p95'\nbetween = ['1500ms', '2500ms']\nabove = '900ms'\n\
         [[expect]]\nfigure = 'ping.p95'\nbetween = ['7s', '12s']\nbelow = '60ms'\n\
         [[expect]]\nfigure = 'udp.rate'\nbetween = ['7s', '12s']\nwithin = ['1.8mbit', '2mbit']\n",
        LINE.replace("buffer = '64kB'", "ring = 2")
    );
    check("sim-txqueuelen", &text);
}

#[test]
fn which_direction_loses_is_known() {
    let text = "
warm-up = '0s'
duration = '100s'
[links.line]
between = ['a', 'b']
rate = '10mbit'
delay = '10ms'
up = { loss = { every = 100 } }
down = { loss = { pattern = '.........x' } }
[[traffic]]
ping = 'a -> b'
every = '100ms'
[[expect]]
figure = 'ping.there-loss'
within = ['1%', '1%']
[[expect]]
figure = 'ping.back-lost'
within = [99, 99]
[[expect]]
figure = 'ping.lost'
within = [109, 109]
[[expect]]
figure = 'ping.there-mean'
within = ['10ms', '10.2ms']
";
    check("sim-directions", text);
}

#[test]
fn a_login_comes_before_a_copy() {
    let text = format!(
        "{LINE}[loads.copies]\ntraffic = [{{ scp = 'a -> server', bytes = '100kB' }}, \
        {{ tcp = 'a -> server', bytes = '100kB', id = 'bare' }}]\n\
         [[expect]]\nwhat = 'seven turns, and what both sides think'\nfigure = 'scp.time'\nover = \
         'bare.time of none/copies'\nabove = 1.3\n"
    );
    check("sim-scp", &text);
}

/// Machines talk too: what they send passes OUTPUT, what is for them INPUT.
#[test]
fn machines_are_hosts_too() {
    let text = format!(
        "{LINE}[policies.none]\n[policies.rules]\ngateway = ['iptables -A OUTPUT -p tcp --dport 5001 -j \
        DROP', 'iptables -A INPUT -p icmp -s 198.51.100.0/24 -j DROP']\n\
         [loads.own]\ntraffic = [{{ tcp = 'gateway -> server' }}, \
         {{ ping = 'server -> gateway', id = 'in', every = '100ms' }}]\n\
         [[expect]]\nfigure = 'upload.rate'\nof = 'none/own'\nabove = '1.5mbit'\n\
         [[expect]]\nfigure = 'in.loss'\nof = 'none/own'\nbelow = '10%'\n\
         [[expect]]\nfigure = 'upload.rate'\nof = 'rules/own'\nwithin = [0, 0]\n\
         [[expect]]\nfigure = 'in.loss'\nof = 'rules/own'\nwithin = [1, 1]\n\
         [[expect]]\nfigure = 'ping.loss'\nof = 'rules/own'\nbelow = 0\n"
    );
    check("sim-own", &text);
}

#[test]
fn what_cannot_be_has_its_place_and_a_remedy() {
    let rows = [
        (
            "[policies.x]\ngateway = ['tc qdisc add dev eth7 root pfifo']\n",
            "gateway: Cannot find device \"eth7\"",
        ),
        ("[policies.x]\ngateway = ['tc qdisc add dev eth1 root tbf rate fast']\n", "gateway: "),
        ("[policies.x]\nserver = ['tc qdisc add dev eth1 root pfifo']\n", "unknown machine `server`"),
        ("[[expect]]\nfigure = 'pnig.mean'\n", "no measurement is named `pnig.mean`"),
        ("[[expect]]\nfigure = 'ping.p95'\nbelow = '90 %'\n", "`ping.p95` is not in that unit"),
        ("[[expect]]\nfigure = 'ping.loss'\nwithin = ['0', '3ms']\n", "`ping.loss` is not in that unit"),
        ("[[expect]]\nfigure = 'ping.qoo-call'\nabove = '90 %'\n", "`ping.qoo-call` is not in that unit"),
        (
            "[[traffic]]\nudp = 'a -> server'\n[[programs]]\non = 'a'\nrun = 'true'\n",
            "simulated hosts run no programs",
        ),
    ];
    for (more, reason) in rows {
        let text = format!("{LINE}{more}");
        let wrong = match parse(Path::new("x.toml"), &text, &NoFiles) {
            Err(wrong) => wrong,
            Ok(mut scenario) => match simulate(&mut scenario, &NoFiles) {
                Err(RunError::Scenario(wrong)) => wrong,
                Err(error) => panic!("{error}"),
                Ok(_) => panic!("{more}: nothing is wrong"),
            },
        };
        assert!(wrong.reason.starts_with(reason), "{}\ninstead of {reason}", wrong.reason);
        assert!(wrong.at.start > LINE.len() && !wrong.remedy.is_empty(), "{wrong:?}");
    }
}

/// As in a script, to clear away what is not there is no mistake; what should have been made is.
#[test]
fn a_policy_may_first_clear_away_what_is_not_there() {
    let of = |first: &str| {
        let text = format!(
            "{LINE}[policies.x]\ngateway = ['{first}', 'tc qdisc add dev eth1 root pfifo']\n\
             [loads.one]\ntraffic = [{{ tcp = 'a -> server' }}]\n"
        );
        let mut scenario = parse(Path::new("x.toml"), &text, &NoFiles).expect("a scenario");
        simulate(&mut scenario, &NoFiles).is_ok()
    };
    assert!(of("tc qdisc del dev eth1 root") && of("iptables -t mangle -D POSTROUTING -j ACCEPT"));
    assert!(!of("tc class add dev eth1 parent 1: classid 1:1 htb rate 1mbit"));
}

#[test]
fn the_same_text_and_seed_give_the_same_document() {
    let loads = "[loads.busy]\ntraffic = [{ tcp = 'a -> server', count = 2 }, { tcp = 'a <- server' }]\n";
    let text = format!(
        "repeats = 2\n{LINE}[policies.fq]\ngateway = ['tc qdisc add dev eth1 root fq_codel']\n{loads}"
    );
    let run = |text: &str| {
        let mut scenario = parse(Path::new("x.toml"), text, &NoFiles).expect("a scenario");
        simulate(&mut scenario, &NoFiles).expect("it runs")
    };
    let first = run(&text);
    assert_eq!(first, run(&text));
    assert_ne!(first.runs, run(&format!("seed = 2\n{text}")).runs);
}

/// What a run records is bounded before anything runs, whatever a stranger's file requests.
#[test]
fn runs_too_large_for_any_machine_are_refused() {
    let refused = |text: &str| {
        let path = Path::new("large.toml");
        let mut scenario = parse(path, text, &NoFiles).expect("it is a scenario");
        match simulate(&mut scenario, &NoFiles) {
            Err(RunError::Scenario(why)) => why.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let home = "[home]\nup = '1mbit'\ndown = '5mbit'\n[policies.none]\n[[traffic]]\n";
    let steps = refused(&format!("duration = '168h'\nstep = '1ms'\n{home}voip = 'b -> server'\n"));
    assert!(steps.contains("steps, more than 250000"), "{steps}");
    for traffic in
        ["ping = 'a -> server'\nevery = '1ns'\n", "udp = 'a -> server'\nrate = '100tbit'\nsize = 1\n"]
    {
        let packets = refused(&format!("duration = '2s'\n{home}{traffic}"));
        assert!(packets.contains("more than 50000000 packets"), "{packets}");
    }
}
