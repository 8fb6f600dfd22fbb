//! nft's face: what the kernel refuses, what is listed, and what rules do to packets.

use tidegate_gateway::{EgressPath, GatewayContext};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Head, Meta, Pool, RandomSource, Seeded, Time};
use tidegate_shims::Machine;
use tidegate_shims::{Answer, Call, Reply};

/// The messages of nft 1.0.6 for commands, with a table inet t and its chains x and c.
const REFUSED: &str = include_str!("../../../syntax/tests/data/nft-refused.txt");

/// Refusals that nft marks elsewhere: at the end of a name, or at the command as a whole.
const ELSEWHERE: [&str; 8] = [
    "add chain inet t z { type route hook input priority mangle; }",
    "create table inet t",
    "create chain inet t x",
    "add rule inet t c jump x; delete chain inet t x",
    "add rule t c accept",
    "add rule ip t c accept",
    "replace rule inet t c handle 3 counter",
    "delete table t",
];

/// A machine, and nft on it.
struct Rig {
    machine: Machine,
    pool: Pool,
    draws: Seeded,
}

impl Rig {
    fn new(rules: &str) -> Rig {
        let machine = Machine::for_script(["eth0"]);
        let mut rig = Rig { machine, pool: Pool::new(64), draws: Seeded::new(1) };
        let reply = rig.feed(rules);
        assert_eq!(String::from_utf8_lossy(&reply.stderr), "");
        rig
    }

    fn call(&mut self, args: &[&str], stdin: Option<&str>) -> Reply {
        let draws: &mut dyn RandomSource = &mut self.draws;
        let mut face = self.machine.shim(&mut self.pool, draws);
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        face.answer(&Call {
            tool: "nft".into(),
            args,
            stdin: stdin.map(|text| text.as_bytes().to_vec()),
            cwd: "/".into(),
            netns: None,
        })
    }

    fn feed(&mut self, text: &str) -> Reply {
        self.call(&["-f", "-"], Some(text))
    }

    /// What `nft` prints, well or not.
    fn answer(&mut self, line: &str) -> String {
        let reply = self.call(&line.split(' ').collect::<Vec<_>>(), None);
        String::from_utf8_lossy(if reply.code == 0 { &reply.stdout } else { &reply.stderr }).into_owned()
    }

    /// Mark, priority and DS field of a packet of the machine's own when it leaves by eth0; `None`: it does
    /// not.
    fn sends(&mut self, head: Head, now: u64) -> Option<(u32, u32, u8)> {
        let pkt = self.pool.insert(Meta::of(&head, 200), head).expect("room");
        let eth0 = self.machine.gateway.device("eth0").expect("there from the start");
        let draws: &mut dyn RandomSource = &mut self.draws;
        let world = GatewayContext { now: Time(now), pool: &mut self.pool, random: draws };
        let _ = self.machine.gateway.offer(world, eth0, EgressPath::Local, pkt);
        let draws: &mut dyn RandomSource = &mut self.draws;
        let out = self
            .machine
            .gateway
            .poll(GatewayContext { now: Time(now), pool: &mut self.pool, random: draws }, eth0)?;
        let meta = self.pool.meta(&out);
        let found = (meta.mark.0, meta.priority, meta.dsfield);
        self.pool.release(out);
        Some(found)
    }
}

/// A UDP packet to a port.
fn udp(v6: bool, dport: u16, dsfield: u8) -> Head {
    let ports = [0x30, 0x39, (dport >> 8) as u8, dport as u8, 0, 8, 0, 0];
    if v6 {
        let mut bytes = [0u8; 48];
        (bytes[0], bytes[1], bytes[6]) = (0x60 | dsfield >> 4, dsfield << 4, 17);
        (bytes[8], bytes[23], bytes[24], bytes[39]) = (0xfd, 1, 0xfd, 2);
        bytes[40..].copy_from_slice(&ports);
        return Head::from_network(ethertype::IPV6, &bytes);
    }
    let mut bytes = [0u8; 28];
    (bytes[0], bytes[1], bytes[9]) = (0x45, dsfield, 17);
    bytes[12..20].copy_from_slice(&[192, 0, 2, 2, 203, 0, 113, 9]);
    bytes[20..].copy_from_slice(&ports);
    Head::from_network(ethertype::IPV4, &bytes)
}

#[test]
fn the_kernel_refuses_as_recorded() {
    let begin =
        "table inet t {\n chain x {\n }\n chain c {\n type filter hook postrouting priority mangle;\n }\n}\n";
    let (mut differing, mut compared) = (Vec::new(), 0);
    for case in REFUSED.split("\n> ").skip(1) {
        let mut lines = case.lines();
        let words = lines.next().unwrap_or_default();
        let wanted: Vec<&str> = lines.collect();
        let of_kernel =
            wanted.iter().any(|line| line.contains("No such file") || line.contains("Could not process"));
        // Families that are refused by name.
        if !of_kernel || words.contains("bridge") {
            continue;
        }
        compared += 1;
        let mut rig = Rig::new(begin);
        let reply = rig.feed(words);
        let stderr = String::from_utf8_lossy(&reply.stderr).into_owned();
        let sentences: Vec<&str> = stderr.lines().take(3).collect();
        let reason = |lines: &[&str]| lines[0].split("Error: ").nth(1).map(str::to_owned);
        let same = if ELSEWHERE.contains(&words) {
            reason(&sentences) == reason(&wanted)
        } else {
            sentences == wanted
        };
        if !same || reply.code != 1 {
            differing.push(format!("{words}\n  {}\n  {}", wanted.join("\n  "), sentences.join("\n  ")));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(compared > 15, "only {compared} commands");
}

const RULES: &str = "define voice = { 5060, 10000-20000 }\n\
    flush ruleset\n\
    table inet q {\n\
    chain mark {\n\
    type filter hook postrouting priority mangle; policy accept;\n\
    oifname != eth0 return\n\
    udp dport $voice counter meta mark set mark | 0x10 ip dscp set ef accept\n\
    ip6 dscp cs1 meta mark set 0x30\n\
    meta nfproto ipv4 udp dport 53 goto names\n\
    meta mark & 0xf0 == { 0x10, 0x30 } meta priority set 1:30\n\
    udp dport 99 drop\n\
    }\n\
    chain names {\n\
    meta mark set 5\n\
    meta mark set 6 return\n\
    meta mark set 7\n\
    }\n\
    chain first {\n\
    type filter hook output priority raw - 5;\n\
    ct state invalid udp dport 7 notrack\n\
    ct state untracked meta mark set 0x77\n\
    }\n\
    }\n";

/// Mark, priority, DS field of what leaves; `None`: nothing does.
#[test]
fn rules_do_what_they_say() {
    let mut rig = Rig::new(RULES);
    let table = [
        // A set's range; a table of both families may set the DS field of one.
        (udp(false, 10_500, 0), Some((0x10, 0, 0xb8))),
        // A packet of IPv6 is marked, and leaves the rule where IPv4 is matched.
        (udp(true, 10_500, 0), Some((0x10, 0x1_0030, 0))),
        (udp(true, 1000, 0x20), Some((0x30, 0x1_0030, 0x20))),
        (udp(false, 1000, 0x20), Some((0, 0, 0x20))),
        // A chain that is gone to does not come back.
        (udp(false, 53, 0), Some((6, 0, 0))),
        (udp(true, 53, 0), Some((0, 0, 0))),
        (udp(true, 99, 0), None),
        // Before the lookup a connection is invalid, behind notrack untracked.
        (udp(false, 7, 0), Some((0x77, 0, 0))),
    ];
    for (number, (head, wanted)) in table.into_iter().enumerate() {
        assert_eq!(rig.sends(head, 10 + number as u64), wanted, "row {number}");
    }
    assert!(
        rig.answer("list chain inet q mark")
            .contains("counter packets 2 bytes 372 meta mark set meta mark | 0x00000010")
    );
}

/// Before the lookup at -200 a packet has no connection; of chains with one priority the one made last is
/// evaluated first; a packet without a connection ends where ct mark is read. As Linux 6.18 answered.
#[test]
fn order_and_connections_are_the_kernels() {
    let mut rig = Rig::new(
        "table ip a {\n chain one {\n type filter hook output priority 0;\n meta mark set mark | 1\n }\n }\n\
         table ip b {\n chain two {\n type filter hook output priority 0;\n meta mark 1 counter comment \"later\"\n meta mark 0 counter comment \"first\"\n }\n }\n\
         table ip c {\n chain raw {\n type filter hook output priority -300;\n udp dport 7 notrack\n }\n\
         chain m {\n type filter hook output priority -150;\n counter meta mark set ct mark\n ct mark 0 counter\n ct mark != 1 counter\n\
         ct mark set 5 counter comment \"goes on\"\n ct state untracked counter\n ct bytes < 10 counter\n \
         }\n }\n",
    );
    rig.sends(udp(false, 7, 0), 5);
    let listed = rig.answer("list table ip b");
    assert!(listed.contains("meta mark 0x00000001 counter packets 0 bytes 0 comment \"later\""), "{listed}");
    assert!(
        listed.contains("meta mark 0x00000000 counter packets 1 bytes 186 comment \"first\""),
        "{listed}"
    );
    let counts: Vec<String> = rig
        .answer("list chain ip c m")
        .lines()
        .filter_map(|line| line.split_once("packets ").map(|(_, rest)| rest[..1].to_owned()))
        .collect();
    assert_eq!(counts, ["1", "0", "0", "1", "1", "0"]);
    rig.sends(udp(false, 8, 0), 6);
    assert!(rig.answer("list chain ip c m").contains("ct mark != 0x00000001 counter packets 1 bytes 186"));
}

#[test]
fn what_was_carried_out_does_the_same_again() {
    let mut rig = Rig::new(RULES);
    let changes = [
        "delete rule inet q mark handle 5",
        "insert rule inet q mark oifname lo accept",
        "add rule inet q mark index 0 meta length 40-64 meta mark set 9",
        "-e -a add rule inet q names counter packets 3 bytes 300 comment \"of names\"",
        "create chain inet q more",
        "flush chain inet q first",
        "delete chain inet q more",
    ];
    for line in changes {
        let output = rig.answer(line);
        assert!(!output.contains("Error"), "{line}: {output}");
    }
    let carried: Vec<Vec<String>> = rig.machine.carried.iter().map(|one| one.words.clone()).collect();
    let mut again = Rig::new("");
    for words in &carried {
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let reply = again.call(&words, None);
        assert_eq!(String::from_utf8_lossy(&reply.stderr), "", "{words:?}");
    }
    // All but the counts that a listing brings.
    assert_eq!(again.answer("-a -s list ruleset"), rig.answer("-a -s list ruleset"));
    let lines: Vec<Option<usize>> = rig.machine.carried.iter().take(6).map(|one| one.line).collect();
    assert_eq!(lines, [2, 3, 4, 13, 18, 6].map(Some));
    assert_eq!(rig.machine.carried.last().map(|one| one.ops), Some(rig.machine.log.len()));
    let listed = rig.answer("list ruleset");
    let mut read = Rig::new(&listed);
    assert_eq!(read.answer("list ruleset"), listed);
}

#[test]
fn a_text_is_carried_out_whole_or_not_at_all() {
    let mut rig = Rig::new(RULES);
    let before = rig.answer("list ruleset");
    let reply = rig.feed("flush ruleset\nadd table ip x\nadd rule ip x nope accept\n");
    let stderr = String::from_utf8_lossy(&reply.stderr).into_owned();
    assert!(
        stderr.starts_with(
            "/dev/stdin:3:15-18: Error: Could not process rule: No such file or directory\nadd rule ip x \
            nope accept\n"
        ),
        "{stderr}"
    );
    assert!(stderr.contains("nft: Look what there is with"), "{stderr}");
    assert_eq!(rig.answer("list ruleset"), before);
    assert_eq!(rig.answer("-c flush ruleset"), "");
    assert_eq!(rig.answer("list ruleset"), before);
    assert_eq!(rig.answer("list tables"), "table inet q\n");
}

/// iptables' tables are nft's too.
#[test]
fn tables_of_iptables_are_shown() {
    let mut rig = Rig::new("");
    let draws: &mut dyn RandomSource = &mut rig.draws;
    let mut face = rig.machine.shim(&mut rig.pool, draws);
    let words = "-t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 3";
    let args = words.split(' ').map(String::from).collect();
    assert_eq!(
        face.answer(&Call { tool: "iptables".into(), args, stdin: None, cwd: "/".into(), netns: None }).code,
        0
    );
    // As nft 1.0.6 lists it, but for the width of the mark.
    let wanted = "# Warning: table ip mangle is managed by iptables-nft, do not touch!\ntable ip mangle \
    {\n\tchain POSTROUTING {\n\t\t\
        type filter hook postrouting priority mangle; policy accept;\n\t\toifname \"eth0\" tcp dport 22 \
        counter packets 0 bytes 0 meta mark set 0x00000003\n\t}\n}\n";
    assert_eq!(rig.answer("list ruleset"), wanted);
}
