//! Where targets are allowed: the answers of iptables 1.8.9 on a real kernel.

use tidegate_gateway::{Gateway, GatewayContext};
use tidegate_packet::{Handle, Pool, Seeded, Time};
use tidegate_policy::Op;
use tidegate_policy::netfilter::{
    Family, NetfilterRule, NetfilterTarget, NfCommand, NfOp, Translate, Translation, Translator,
};

#[test]
fn targets_have_their_tables_and_chains() {
    let translate = |how| NetfilterTarget::Translate(Translate { how, to: Translation::default() });
    let mark = NetfilterTarget::Mark { value: 1, mask: u32::MAX };
    let class = NetfilterTarget::Classify(Handle::new(1, 1));
    let table = [
        ("filter", "OUTPUT", mark.clone(), true),
        ("raw", "PREROUTING", mark, true),
        ("filter", "OUTPUT", NetfilterTarget::Dscp(1), false),
        ("raw", "PREROUTING", NetfilterTarget::Dscp(1), false),
        ("filter", "OUTPUT", NetfilterTarget::Tos(8, 255), false),
        ("mangle", "PREROUTING", NetfilterTarget::Tos(8, 255), true),
        ("filter", "OUTPUT", class.clone(), true),
        ("nat", "OUTPUT", class.clone(), true),
        ("mangle", "POSTROUTING", class.clone(), true),
        ("mangle", "INPUT", class.clone(), false),
        ("mangle", "PREROUTING", class, false),
        ("raw", "PREROUTING", NetfilterTarget::Notrack(true), true),
        ("mangle", "PREROUTING", NetfilterTarget::Notrack(true), false),
        ("mangle", "POSTROUTING", translate(Translator::Masquerade), false),
        ("nat", "POSTROUTING", translate(Translator::Masquerade), true),
        ("nat", "INPUT", translate(Translator::Masquerade), false),
        ("nat", "INPUT", translate(Translator::Source), true),
        ("nat", "PREROUTING", translate(Translator::Source), false),
        ("nat", "PREROUTING", translate(Translator::Destination), true),
        ("nat", "OUTPUT", translate(Translator::Redirect), true),
        ("nat", "POSTROUTING", translate(Translator::Redirect), false),
    ];
    let mut gateway = Gateway::new();
    for (name, chain, target, exists) in table {
        let output = format!("{name} {chain} {target:?}");
        let rule = NetfilterRule { target: Some(target), ..NetfilterRule::default() };
        let command = NfCommand::Append(chain.into(), rule);
        let op = Op::Netfilter(NfOp { family: Family::Ipv4, table: name.into(), command });
        let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
        let answer =
            gateway.apply(GatewayContext { now: Time(1), pool: &mut pool, random: &mut source }, &op);
        let message = answer.err().and_then(|error| error.message).map(|message| message.into_owned());
        let refused = format!("RULE_APPEND failed (Invalid argument): rule in chain {chain}");
        assert_eq!(message, (!exists).then_some(refused), "{output}");
    }
}

#[test]
fn chains_that_packets_come_to_lead_to_an_end() {
    let mut gateway = Gateway::new();
    let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
    let mut output_of = |command: NfCommand| {
        let op = Op::Netfilter(NfOp { family: Family::Ipv4, table: "mangle".into(), command });
        let answer =
            gateway.apply(GatewayContext { now: Time(1), pool: &mut pool, random: &mut source }, &op);
        answer.err().map(|error| {
            error.message.map_or_else(|| error.errno.text().to_owned(), |text| text.into_owned())
        })
    };
    let jump = |from: &str, to: &str| {
        NfCommand::Append(
            from.into(),
            NetfilterRule { target: Some(NetfilterTarget::Jump(to.into())), ..NetfilterRule::default() },
        )
    };
    let refused = |chain: &str| Some(format!("RULE_APPEND failed (Too many links): rule in chain {chain}"));
    for name in ["A", "B"] {
        assert_eq!(output_of(NfCommand::NewChain(name.into())), None);
    }
    // As on Linux 6.18 with iptables 1.8.9: a circle that no packet comes to may be, until one does.
    assert_eq!(
        [output_of(jump("A", "B")), output_of(jump("B", "A")), output_of(jump("OUTPUT", "A"))],
        [None, None, refused("OUTPUT")]
    );
    assert_eq!(output_of(NfCommand::Flush(Some("B".into()))), None);
    assert_eq!(
        [output_of(jump("OUTPUT", "A")), output_of(jump("B", "A")), output_of(jump("B", "B"))],
        [None, refused("B"), refused("B")]
    );
    // A chain that packets come to by a hook is led to by no rule; iptables makes it where it first needs it.
    let accept = NfCommand::Append("PREROUTING".into(), NetfilterRule::default());
    let unsupported =
        |chain: &str| Some(format!("RULE_APPEND failed (Operation not supported): rule in chain {chain}"));
    assert_eq!(
        [output_of(jump("FORWARD", "FORWARD")), output_of(jump("B", "PREROUTING")), output_of(accept)],
        [
            unsupported("FORWARD"),
            Some("RULE_APPEND failed (No such file or directory): rule in chain B".to_owned()),
            None
        ]
    );
    assert_eq!(output_of(jump("B", "PREROUTING")), unsupported("B"));
    let gone = |chain: &str, to: &str| {
        let target = Some(NetfilterTarget::Jump(to.into()));
        NfCommand::Delete(chain.into(), NetfilterRule { target, ..NetfilterRule::default() })
    };
    assert_eq!(
        [output_of(gone("A", "none")), output_of(gone("none", "A"))],
        ["Chain 'none' does not exist", "No chain/target/match by that name"]
            .map(|text| Some(text.to_owned()))
    );
    // Fifteen chains behind the first are followed, sixteen are not.
    for number in 1..=20 {
        assert_eq!(output_of(NfCommand::NewChain(format!("c{number}"))), None);
    }
    for number in 1..20 {
        assert_eq!(output_of(jump(&format!("c{number}"), &format!("c{}", number + 1))), None);
    }
    assert_eq!(
        [output_of(jump("INPUT", "c6")), output_of(jump("FORWARD", "c5"))],
        [None, refused("FORWARD")]
    );
}
