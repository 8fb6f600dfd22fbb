//! The tools' answers to words no one meant: never a panic, always an answer, and the machine stays whole.

use tidegate_packet::{Pool, Seeded};
use tidegate_shims::Machine;
use tidegate_shims::{Answer, Call};

const TOOLS: [&str; 13] = [
    "tc",
    "ip",
    "ifconfig",
    "ethtool",
    "modprobe",
    "rmmod",
    "insmod",
    "lsmod",
    "sysctl",
    "iptables",
    "ip6tables",
    "iptables-save",
    "nft",
];

/// Words that mean something to some tool, and some that mean nothing to any.
const WORDS: &str = "add del delete set show list link addr address route tunnel tuntap qdisc class filter \
rule replace change flush get dev eth0 eth1 ifb0 dummy0 tun1 br0 nope lo name type ifb dummy bridge veth \
vlan ipip sit gre id peer master nomaster up down mtu txqueuelen qlen 0 1 7 68 1500 70000 4294967295 -1 \
0x10 via default 10.0.0.1 10.0.0.0/8 192.0.2.9/24 fe80::1/64 ::/0 src metric mode remote local ttl root \
parent handle 1: 1:1 1:10 htb sfq pfifo tbf fq_codel drr prio rate ceil 1mbit limit default burst protocol \
ip u32 match tos fw flow flowid classid hash keys divisor -s -j -d -o -4 -6 -br -batch - -V -h --help help \
-K -k -G -g -A -a -C -c -i -S -l tx rx tso gso on off tx-usecs -w -n -e -q -p -a net.ipv4.ip_forward \
net.ipv4.ip_forward=1 net.core.x= = a.b.c=d sch_htb ifb numifbs=2 numifbs=x -r -q netmask 255.255.255.0 \
broadcast hw ether -t mangle -F -N -X -D -I OUTPUT QOS -j MARK --set-mark ACCEPT ! --dport 22 -p tcp é \
\u{0} '' %s";

#[test]
fn any_words_get_an_answer() {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut machine = Machine::for_script(["eth0", "eth1"]);
    let (mut pool, mut draws) = (Pool::new(16), Seeded::new(7));
    let mut face = machine.shim(&mut pool, &mut draws);
    face.world(&["eth0".to_owned(), "eth1".to_owned()]);
    // A plain congruence: the same calls on every machine.
    let mut state = 2026_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut succeeded = 0;
    for _ in 0..40_000 {
        let tool = TOOLS[next(TOOLS.len())];
        let mut args: Vec<String> = (0..next(9)).map(|_| words[next(words.len())].to_owned()).collect();
        // Half of the calls begin sensibly, so that more than the first word is reached.
        let begin = [
            "link set",
            "link add",
            "link del",
            "addr add",
            "route add",
            "qdisc add dev",
            "class add dev",
            "-K eth0",
        ];
        if next(2) == 0 {
            args.splice(0..0, begin[next(begin.len())].split(' ').map(String::from));
        }
        let stdin = (next(4) == 0).then(|| args.join(" ").into_bytes());
        let reply = face.answer(&Call { tool: tool.into(), args, stdin, cwd: "/".into(), netns: None });
        succeeded += usize::from(reply.code == 0);
    }
    let files = [
        ("/sys/class/net/eth0/tx_queue_len", "99999999999"),
        ("/sys/class/net//mtu", ""),
        ("/sys/class/net/eth0", "x"),
    ];
    face.files_written(&files.map(|(path, text)| (path.to_owned(), text.to_owned())));
    assert!(succeeded > 5_000, "only {succeeded} succeeded: the words are too wild to test much");
    let devices: Vec<String> =
        machine.gateway.devices().map(|id| machine.gateway.name(id).to_owned()).collect();
    assert!(devices.contains(&"eth0".to_owned()), "what was not made cannot be deleted");
    let mut unique = devices.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), devices.len(), "no name stands twice");
}
