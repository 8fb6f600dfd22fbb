//! Names in tc, iptables and nft, numbers of the kernel's headers, and what each kind does first with a
//! packet that waits.

use std::sync::Arc;
use tidegate_policy::netfilter::{ChainType, Choice, Connstate, Connstates, Family, Hook, Translator};
use tidegate_policy::spec::{
    ACTIONS, FLOWER, REFUSED_ACTIONS, REFUSED_FILTERS, ValueKind, action_kind, help_options, why_not,
};
use tidegate_policy::{
    Act, Action, CakeAckFilter, CakeFlows, CakeFraming, CakeTins, CardCounts, Changes, Control, CustomParams,
    EmatchCompare, FilterParams, FlowKeySet, FlowerField, FlowerKey, FlowerParams, GredParams, GredSetup,
    Kind, Layer, LinkDriver, LinkLayer, MetaId, NetemDistribution, PacketType, PeditHeader, QdiscParams,
    RedCurve, RedParams, Ticks, Tunnel, TunnelMode, Width,
};

/// `TC_ACT_*` of linux/pkt_cls.h: -1 to 8 are plain decisions; 0x10000000 is a jump, 0x20000000 a chain.
#[test]
fn decisions_have_the_kernels_numbers() {
    let table = [
        (-1, Control::Continue, "continue"),
        (0, Control::Pass, "pass"),
        (1, Control::Reclassify, "reclassify"),
        (2, Control::Drop, "drop"),
        (3, Control::Pipe, "pipe"),
        (4, Control::Stolen, "stolen"),
        (8, Control::Trap, "trap"),
        (0x1000_0003, Control::Jump(3), "jump"),
        (0x1fff_ffff, Control::Jump(0x0fff_ffff), "jump"),
        (0x2000_0007, Control::Goto(7), "goto"),
        (5, Control::Number(5), "number"),
        (9, Control::Number(9), "number"),
        (-2, Control::Number(-2), "number"),
        (0x3000_0001, Control::Number(0x3000_0001), "number"),
    ];
    for (number, control, name) in table {
        let read = Control::of_number(number);
        assert_eq!((read, control.number(), control.name()), (control, number, name), "{number:#x}");
    }
}

/// tc-cake(8), tc-actions(8), tc-pedit(8), tc-skbedit(8), tc-stab(8), tc-ematch(8), nft(8),
/// iptables-extensions(8).
#[test]
fn names_are_those_of_the_tools() {
    let tins = [
        CakeTins::Diffserv3,
        CakeTins::Diffserv4,
        CakeTins::Diffserv8,
        CakeTins::BestEffort,
        CakeTins::Precedence,
    ];
    assert_eq!(tins.map(CakeTins::name), ["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"]);
    let flows = [
        (CakeFlows::Blind, "flowblind"),
        (CakeFlows::SourceHosts, "srchost"),
        (CakeFlows::DestinationHosts, "dsthost"),
        (CakeFlows::Hosts, "hosts"),
        (CakeFlows::Flows, "flows"),
        (CakeFlows::DualSource, "dual-srchost"),
        (CakeFlows::DualDestination, "dual-dsthost"),
        (CakeFlows::Triple, "triple-isolate"),
    ];
    for (mode, name) in flows {
        assert_eq!(mode.name(), name);
    }
    let filters = [CakeAckFilter::Off, CakeAckFilter::On, CakeAckFilter::Aggressive].map(CakeAckFilter::name);
    assert_eq!(filters, ["no-ack-filter", "ack-filter", "ack-filter-aggressive"]);
    assert_eq!(
        [CakeFraming::None, CakeFraming::Atm, CakeFraming::Ptm].map(CakeFraming::name),
        ["noatm", "atm", "ptm"]
    );
    let card = [CardCounts::Any, CardCounts::Immediate, CardCounts::Delayed, CardCounts::Disabled];
    assert_eq!(card.map(CardCounts::name), [None, Some("immediate"), Some("delayed"), Some("disabled")]);
    let types = [PacketType::Host, PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost];
    assert_eq!(types.map(PacketType::name), ["host", "broadcast", "multicast", "otherhost"]);
    let headers = [
        (PeditHeader::Network, "network"),
        (PeditHeader::Ethernet, "eth"),
        (PeditHeader::Ipv4, "ipv4"),
        (PeditHeader::Ipv6, "ipv6"),
        (PeditHeader::Tcp, "tcp"),
        (PeditHeader::Udp, "udp"),
    ];
    for (header, name) in headers {
        assert_eq!(header.name(), name);
    }
    assert_eq!([LinkLayer::Ethernet, LinkLayer::Atm].map(LinkLayer::name), ["ethernet", "atm"]);
    assert_eq!(
        [EmatchCompare::Eq, EmatchCompare::Gt, EmatchCompare::Lt].map(EmatchCompare::name),
        ["eq", "gt", "lt"]
    );
    let widths = [(Width::U8, "u8", 1), (Width::U16, "u16", 2), (Width::U32, "u32", 4)];
    for (width, name, bytes) in widths {
        assert_eq!((width.name(), width.bytes()), (name, bytes));
    }
    assert_eq!([Layer::Link, Layer::Network, Layer::Transport].map(Layer::number), [0, 1, 2]);
    assert_eq!([Family::Ipv4, Family::Ipv6, Family::Inet].map(Family::name), ["ip", "ip6", "inet"]);
    assert_eq!(Hook::ALL.map(Hook::name), ["prerouting", "input", "forward", "output", "postrouting"]);
    assert_eq!(
        [ChainType::Filter, ChainType::Route, ChainType::Nat].map(ChainType::name),
        ["filter", "route", "nat"]
    );
    let translators = [
        (Translator::Source, "SNAT", "--to-source", true),
        (Translator::Destination, "DNAT", "--to-destination", false),
        (Translator::Masquerade, "MASQUERADE", "--to-ports", true),
        (Translator::Redirect, "REDIRECT", "--to-ports", false),
    ];
    for (translator, name, option, is_source) in translators {
        assert_eq!(
            (translator.name(), translator.option(), translator.is_source()),
            (name, option, is_source)
        );
    }
    let choices = [Choice::Plain, Choice::Random, Choice::RandomFully, Choice::Persistent];
    assert_eq!(choices.map(Choice::word), ["", "random", "random-fully", "persistent"]);
}

/// tc-ematch(8), meta: `tc filter add … basic match 'meta(list)'` prints them; nf_mark is called fwmark, too.
#[test]
fn names_of_what_meta_compares() {
    for (name, id) in MetaId::NAMES {
        assert_eq!((MetaId::from_name(name), id.name()), (Some(id), Some(name)));
    }
    for name in MetaId::SOCKET {
        assert_eq!(MetaId::from_name(name).and_then(MetaId::name), Some(name));
    }
    assert_eq!(MetaId::from_name("fwmark"), Some(MetaId::Mark));
    assert_eq!(MetaId::from_name("vla"), None);
}

#[test]
fn families_have_packets_of_their_versions() {
    let has = |family: Family| [false, true].map(|v6| family.has(v6));
    assert_eq!(
        [Family::Ipv4, Family::Ipv6, Family::Inet].map(has),
        [[true, false], [false, true], [true, true]]
    );
    assert_eq!([false, true].map(Family::of), [Family::Ipv4, Family::Ipv6]);
    let states = Connstates(Connstate::New as u8 | Connstate::Related as u8);
    use Connstate::{Established, Invalid, New, Related, Untracked};
    let found = [New, Established, Related, Invalid, Untracked].map(|state| states.has(state));
    assert_eq!(found, [true, false, true, false, false]);
}

#[test]
fn numbers_are_compared() {
    let table = [(1, 2, [false, false, true]), (2, 2, [true, false, false]), (3, 2, [false, true, false])];
    for (left, right, expected) in table {
        let found =
            [EmatchCompare::Eq, EmatchCompare::Gt, EmatchCompare::Lt].map(|how| how.matches(left, right));
        assert_eq!(found, expected, "{left} {right}");
    }
}

/// Bits of each field: RFC 791, 8200, 9293, 826, IEEE 802.1Q, and the conntrack state and mark of
/// linux/pkt_cls.h.
#[test]
fn fields_of_flower() {
    use FlowerField as F;
    let table: [(&[F], u32); 7] = [
        (&[F::VlanPrio, F::CvlanPrio], 3),
        (&[F::NumVlans, F::IpProto, F::IpTos, F::IpTtl, F::IcmpType, F::IcmpCode, F::ArpOp], 8),
        (&[F::VlanId, F::CvlanId, F::TcpFlags], 12),
        (&[F::EthType, F::VlanEthtype, F::CvlanEthtype, F::DstPort, F::SrcPort, F::CtState], 16),
        (&[F::ArpSip, F::ArpTip, F::IpFlags, F::CtMark], 32),
        (&[F::DstMac, F::SrcMac, F::ArpSha, F::ArpTha], 48),
        (&[F::DstIp, F::SrcIp], 128),
    ];
    for (fields, bits) in table {
        for field in fields {
            let all = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
            assert_eq!((field.bits(), field.all()), (bits, all), "{field:?}");
        }
    }
    let key = |field: F, value: u128| FlowerKey { field, value, mask: field.all(), range: false };
    let mut params = FlowerParams::default();
    for (field, value) in [(F::DstPort, 80), (F::IpProto, 6), (F::SrcIp, 1), (F::DstPort, 443)] {
        params.set(key(field, value));
    }
    assert_eq!(params.keys.len(), 3, "a field is set once");
    assert!(params.keys.is_sorted_by_key(|key| key.field));
    let value = |field| params.key(field).map(|key| key.value);
    assert_eq!([F::DstPort, F::IpProto, F::SrcIp, F::DstIp].map(value), [Some(443), Some(6), Some(1), None]);
}

#[test]
fn kinds_of_filters_and_actions() {
    let filters = [
        (FilterParams::Fw(Default::default()), "fw"),
        (FilterParams::U32(Default::default()), "u32"),
        (FilterParams::Flow(Default::default()), "flow"),
        (FilterParams::Matchall(Default::default()), "matchall"),
        (FilterParams::Basic(Default::default()), "basic"),
        (FilterParams::Flower(Default::default()), "flower"),
        (FilterParams::Cgroup(Default::default()), "cgroup"),
        (FilterParams::Route(Default::default()), "route"),
    ];
    for (params, name) in filters {
        assert_eq!(params.kind(), name);
    }
    let keys = FlowKeySet(0b101);
    assert_eq!([0, 1, 2, 3, 31].map(|bit| keys.has(bit)), [true, false, true, false, false]);
    assert_eq!(Act::decide(Control::Drop).kind(), "gact");
    assert_eq!(Act::redirect("ifb0").redirects_to(), Some("ifb0"));
    assert_eq!(Action::from(Act::decide(Control::Drop)).act.controls(), [Control::Drop]);
    for (name, _) in ACTIONS.iter().chain(REFUSED_ACTIONS) {
        assert_eq!(action_kind(name), Some(*name));
    }
    assert_eq!(["gac", "", "GACT"].map(action_kind), [None; 3], "the proper name only");
    assert_eq!(
        why_not(REFUSED_FILTERS, "bpf"),
        Some("BPF programs are not run; flower and u32 match addresses, protocols and ports")
    );
    assert_eq!(why_not(REFUSED_FILTERS, "u32"), None);
}

/// What a device is taken for whose name alone is known; ip6tnl may enter four more tunnels (RFC 2473 section
/// 6.6).
#[test]
fn devices_by_their_names() {
    let tunnels = [("gre1", TunnelMode::Gre), ("ip6tnl1", TunnelMode::Ip6tnl), ("sit0", TunnelMode::Sit)];
    for (name, mode) in tunnels {
        let LinkDriver::Tunnel(tunnel) = LinkDriver::of_name(name) else { panic!("{name} is a tunnel") };
        let v6 = mode == TunnelMode::Ip6tnl;
        assert_eq!((tunnel.mode, tunnel.local.is_ipv6(), tunnel.remote.is_ipv6()), (mode, v6, v6), "{name}");
        assert_eq!(tunnel.encap_limit, v6.then_some(4), "{name}");
        assert_eq!(tunnel, Tunnel::unsaid(mode));
    }
    assert_eq!(LinkDriver::of_name("dummy0"), LinkDriver::Dummy);
}

fn red(idle: Option<Box<tidegate_policy::IdleTable>>) -> QdiscParams {
    let curve = RedCurve::default();
    QdiscParams::Red(RedParams {
        limit: 8000,
        curve,
        idle,
        ecn: false,
        harddrop: false,
        adaptive: false,
        nodrop: false,
    })
}

/// What may go before a packet that waits, by the defaults of tc's manual pages: limits of packets and bytes,
/// quanta, and the delays that AQMs aim at.
#[test]
fn what_goes_before_a_packet() {
    let output_of = |params: QdiscParams, kind: Kind| format!("{:?}", kind.ahead(&params));
    let table = [
        (
            QdiscParams::Codel(Default::default()),
            Kind::Codel,
            "[ShortDelay { us: 5000, spares_frame: true }]",
        ),
        (QdiscParams::Pie(Default::default()), Kind::Pie, "[ShortDelay { us: 15000, spares_frame: false }]"),
        (
            QdiscParams::DualPi2(Default::default()),
            Kind::DualPi2,
            "[ShortDelay { us: 15000, spares_frame: false }]",
        ),
        (
            QdiscParams::FqCodel(Default::default()),
            Kind::FqCodel,
            "[Turns { quantum: 1514, flows: None }, ShortDelay { us: 5000, spares_frame: true }]",
        ),
        (
            QdiscParams::FqPie(Default::default()),
            Kind::FqPie,
            "[Turns { quantum: 1514, flows: None }, ShortDelay { us: 15000, spares_frame: false }]",
        ),
        (
            QdiscParams::Fq(Default::default()),
            Kind::Fq,
            "[Turns { quantum: 3028, flows: None }, Packets { queue: \"flow's own queue\", limit: 100 }]",
        ),
        (QdiscParams::Fifo(Default::default()), Kind::Pfifo, "[Packets { queue: \"queue\", limit: 1000 }]"),
        (QdiscParams::Fifo(Default::default()), Kind::Bfifo, "[]"),
        (QdiscParams::Hhf(Default::default()), Kind::Hhf, "[Packets { queue: \"queue\", limit: 1000 }]"),
        (
            QdiscParams::Skbprio(Default::default()),
            Kind::Skbprio,
            "[Packets { queue: \"queue\", limit: 64 }]",
        ),
        (
            QdiscParams::Htb(Default::default()),
            Kind::Htb,
            "[Unserved { queue: \"direct queue\", limit: 1000 }]",
        ),
    ];
    for (params, kind, expected) in table {
        assert_eq!(output_of(params, kind), expected, "{kind:?}");
    }
    let fifo = |limit| QdiscParams::Fifo(tidegate_policy::FifoParams { limit: Some(limit) });
    assert_eq!(output_of(fifo(7), Kind::Bfifo), "[Bytes { queue: \"queue\", limit: 7 }]");
    let tbf = tidegate_policy::TbfParams { limit: 9000, ..Default::default() };
    assert_eq!(output_of(QdiscParams::Tbf(tbf), Kind::Tbf), "[Bytes { queue: \"queue\", limit: 9000 }]");
    assert_eq!(output_of(red(None), Kind::Red), "[Bytes { queue: \"queue\", limit: 8000 }]");
    let sfq = |limit, depth| {
        let params =
            tidegate_policy::SfqParams { quantum: 1514, limit, depth, flows: 127, ..Default::default() };
        output_of(QdiscParams::Sfq(params), Kind::Sfq)
    };
    let turns = |limit: u32| {
        let own = format!("Packets {{ queue: \"flow's own queue\", limit: {limit} }}");
        format!("[Turns {{ quantum: 1514, flows: Some(127) }}, {own}]")
    };
    assert_eq!([sfq(127, 20), sfq(10, 127), sfq(0, 127)], [turns(20), turns(10), turns(1)]);
}

/// What a dump leaves out, and a command that makes the same again needs.
#[test]
fn what_dumps_leave_out() {
    let average = Some("how its average falls while it is idle");
    assert_eq!(Kind::Red.untold(&red(None)), average);
    assert_eq!(Kind::Codel.untold(&QdiscParams::Codel(Default::default())), None);
    let netem = |jitter_ns, known: bool| {
        let distribution = known.then(|| NetemDistribution([0].into()));
        let params = tidegate_policy::NetemParams { jitter_ns, distribution, ..Default::default() };
        Kind::Netem.untold(&QdiscParams::Netem(Box::new(params)))
    };
    assert_eq!([netem(0, false), netem(0, true), netem(5, true)], [None; 3]);
    assert_eq!(netem(5, false), Some("the distribution of its delays"));
}

/// What `change` refuses to hear again: the numbers of flows of fq_codel and fq_pie, as Linux 6.1 answers.
#[test]
fn what_change_refuses_to_hear_again() {
    let flows = |kind: Kind, mut params: QdiscParams| {
        assert!(matches!(kind.changes(), Changes::InPlaceIfSame), "{kind:?}");
        let before = params.fixed();
        params.leave_out_fixed();
        (before, params.fixed())
    };
    let fq_codel = tidegate_policy::FqCodelParams { flows: Some(64), ..Default::default() };
    assert_eq!(flows(Kind::FqCodel, QdiscParams::FqCodel(fq_codel)), (Some(64), None));
    let fq_pie = tidegate_policy::FqPieParams { flows: Some(32), ..Default::default() };
    assert_eq!(flows(Kind::FqPie, QdiscParams::FqPie(fq_pie)), (Some(32), None));
}

/// tc-cake(8): tins by their names, and what keeps flows and hosts apart.
#[test]
fn what_cake_keeps_apart() {
    let tins = [
        (CakeTins::Diffserv3, 3, Some("Bulk")),
        (CakeTins::Diffserv4, 4, Some("Bulk")),
        (CakeTins::Diffserv8, 8, None),
        (CakeTins::BestEffort, 1, None),
        (CakeTins::Precedence, 8, None),
    ];
    for (mode, count, first) in tins {
        assert_eq!((mode.count(), mode.labels().map(|labels| labels[0])), (count, first), "{mode:?}");
        assert!(mode.labels().is_none_or(|labels| labels.len() == count), "{mode:?}");
    }
    // By conversation, hosts that send share, hosts that are sent to share, by who sends, by who is sent to.
    let flows = [
        (CakeFlows::Blind, [false, false, false, false, false]),
        (CakeFlows::SourceHosts, [false, false, false, true, false]),
        (CakeFlows::DestinationHosts, [false, false, false, false, true]),
        (CakeFlows::Hosts, [false, false, false, true, true]),
        (CakeFlows::Flows, [true, false, false, false, false]),
        (CakeFlows::DualSource, [true, true, false, false, false]),
        (CakeFlows::DualDestination, [true, false, true, false, false]),
        (CakeFlows::Triple, [true, true, true, false, false]),
    ];
    for (mode, expected) in flows {
        let found = [
            mode.by_conversation(),
            mode.shares_source(),
            mode.shares_destination(),
            mode.by_source(),
            mode.by_destination(),
        ];
        assert_eq!(found, expected, "{mode:?}");
    }
}

/// A tick of the packet schedulers is 64 ns (`/proc/net/psched`); gred and prio report what a change must
/// keep.
#[test]
fn ticks_bands_and_virtual_queues() {
    assert_eq!(Ticks(1000).duration(), tidegate_packet::Nanos(64_000));
    let setup = GredSetup { limit: Some(60_000), ..GredSetup::default() };
    let gred = QdiscParams::Gred(GredParams::InForce(setup, Vec::new()));
    assert_eq!(format!("{:?}", Kind::Gred.ahead(&gred)), "[Bytes { queue: \"queue\", limit: 60000 }]");
    assert_eq!(Kind::Gred.untold(&gred), Some("how its averages fall while it is idle"));
    assert!(matches!(Kind::Prio.changes(), Changes::InPlaceIfSame));
    let prio = tidegate_policy::PrioParams { bands: 5, ..Default::default() };
    assert_eq!(QdiscParams::Prio(prio).fixed(), Some(5));
    let keeping: Vec<&str> = Kind::every().filter(|kind| kind.keeps_rate()).map(Kind::name).collect();
    assert!(keeping.contains(&"tbf") && !keeping.contains(&"fq_codel"), "{keeping:?}");
}

#[test]
fn a_qdisc_of_a_program_of_its_own() {
    let of =
        |name: &str, words: &str, maker: u8| CustomParams::new(name.into(), words.into(), Arc::new(maker));
    let one = of("mine", "limit 5", 1);
    assert_eq!((one.name(), one.words(), one.maker().downcast_ref()), ("mine", "limit 5", Some(&1_u8)));
    assert!(one == of("mine", "limit 5", 2), "the same name and words");
    assert!(one != of("mine", "limit 6", 1) && one != of("yours", "limit 5", 1));
}

/// Every kind that queues, and every option in the help: its names, what it takes, what it does, its default.
#[test]
fn help_names_every_option() {
    assert!(Kind::ALL.contains(&Kind::Htb) && Kind::ALL.contains(&Kind::Pfifo));
    assert!(!Kind::ALL.contains(&Kind::Noqueue) && !Kind::ALL.contains(&Kind::Clsact));
    assert!(Kind::ALL.is_sorted_by_key(|kind| *kind as usize), "in the order of the enum, each once");
    for kind in Kind::every() {
        assert_eq!(Kind::ALL.contains(&kind), kind.spec().queues, "{kind:?}");
        for options in [kind.spec().qdisc, kind.spec().class].into_iter().flatten() {
            let mut help = String::new();
            help_options(options, &mut help);
            assert_eq!(help.lines().count(), options.len(), "{kind:?}");
            for (line, option) in help.lines().zip(options) {
                let names: Vec<&str> =
                    line.split_whitespace().next().unwrap_or_default().split('|').collect();
                assert!(names[0] == option.key && names[1..] == *option.aliases, "{line}");
                assert!(line.contains(option.doc) && line.contains(option.value.words()), "{line}");
                let default = match option.default {
                    "this" => " (default)".to_owned(),
                    other => format!(" (default {other})"),
                };
                assert_eq!(line.ends_with(&default), !option.default.is_empty(), "{line}");
            }
        }
    }
    let mut help = String::new();
    let options = Kind::Codel.spec().qdisc.expect("codel has options");
    help_options(options, &mut help);
    assert!(help.starts_with("  limit N "), "{help}");
    let words = [
        ValueKind::Flag,
        ValueKind::Decimal,
        ValueKind::Hex16,
        ValueKind::Size,
        ValueKind::Rate,
        ValueKind::Nanos,
        ValueKind::Percent,
    ];
    assert_eq!(words.map(ValueKind::words), ["", "N", "HEX", "SIZE", "RATE", "TIME", "PERCENT"]);
    let flower = FLOWER.help();
    assert!(flower.starts_with("flower: ") && flower.contains("\noptions:\n"), "{flower}");
}
