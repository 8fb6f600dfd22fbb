//! `tidegate run`, end to end: scripts on the model machine. Needs namespaces, and is skipped with a message
//! where there are none.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(script: &Path, words: &[&str]) -> Output {
    Command::new(TIDEGATE).arg("run").arg(script).args(words).output().expect("tidegate runs")
}

/// As an ordinary user; `None`, with the reason printed, where we cannot become one.
fn run_as_user(place: &Place, script: &Path, words: &[&str]) -> Option<Output> {
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new("setpriv").args(user).arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: only root can become another user (setpriv)");
        return None;
    }
    let executable = place.copy_of(Path::new(TIDEGATE));
    let mut command = Command::new("setpriv");
    Some(
        command
            .args(user)
            .arg(&executable)
            .arg("run")
            .arg(script)
            .args(words)
            .current_dir("/")
            .output()
            .expect("it runs"),
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A gateway's script as people write them: several tools, pipelines, functions, devices made and taken away
/// again.
const GATEWAY: &str = r#"#!/bin/sh
TC=$(which tc)
IPT=/sbin/iptables
WAN=eth1
IFB=ifb4$WAN

leaf() {
  $TC class add dev $WAN parent 1:1 classid 1:$1 htb rate $2 ceil 1440kbit prio $3
  $TC qdisc add dev $WAN parent 1:$1 handle $1: $4
  $TC filter add dev $WAN parent 1:0 protocol ip prio 1 handle $1 fw flowid 1:$1
}
stop() {
  $TC qdisc del dev $WAN root 2>/dev/null
  ip link set dev $IFB down 2>/dev/null && ip link del $IFB
  $IPT -t mangle -F
}
case "$1" in
start)
  stop
  ifconfig $WAN | grep -o 'txqueuelen [0-9]*'
  ethtool $WAN | grep Speed | tr -d '\t'
  [ "$(cat /sys/module/sch_htb/parameters/htb_hysteresis)" = 0 ] && echo exact
  ip route show default | awk '{print $5}'
  [ -d /sys/class/net/$IFB ] || ip link add name $IFB type ifb
  ip link set dev $IFB up
  cat /sys/class/net/*/tx_queue_len | sort -n | tr '\n' ' '; echo
  ifconfig $WAN txqueuelen 10
  echo 20 > /sys/class/net/$WAN/tx_queue_len
  $TC qdisc add dev $WAN root handle 1: htb default 30 r2q 40
  $TC class add dev $WAN parent 1: classid 1:1 htb rate 1440kbit
  leaf 10 160kbit 1 'pfifo limit 10'
  leaf 20 400kbit 2 'sfq perturb 10 limit 32'
  leaf 30 700kbit 3 fq_codel
  $TC filter add dev $WAN parent 1: protocol ip prio 9 u32 match ip tos 0x10 0xff flowid 1:10
  tc -batch - <<END
# the second class gets a little more
class change dev $WAN parent 1:1 classid 1:20 htb rate 500kbit ceil 1440kbit prio 2
END
  $IPT -t mangle -A POSTROUTING -o $WAN -p tcp --dport 22 -j MARK --set-mark 10
  echo started > /var/run/gateway
  ;;
show)
  cat /var/run/gateway
  $TC class show dev $WAN | grep -c htb
  $IPT -t mangle -L POSTROUTING -v -n | tail -1 | tr -s ' '
  ;;
stop)
  stop
  $TC qdisc show dev $WAN | cut -d' ' -f1-3
  ls /sys/class/net | tr '\n' ' '; echo
  ;;
*) echo "usage: $0 start|show|stop" >&2; exit 3 ;;
esac
"#;

#[test]
fn a_gateway_is_started_shown_and_stopped_by_root_and_by_others() {
    if skip() {
        return;
    }
    let place = Place::new("gateway");
    let script = place.script("gateway.sh", GATEWAY);
    let words = ["--then", "show", "--then", "stop", "--", "start"];
    let wanted = "txqueuelen 1000
Speed: 1000Mb/s
exact
eth1
32 1000 1000 
started
4
 0 0 MARK 6 -- * eth1 0.0.0.0/0 0.0.0.0/0 tcp dpt:22 MARK set 0xa
qdisc pfifo_fast 0:
eth1 lo 
";
    let output = run(&script, &words);
    assert_eq!(
        (text(&output.stdout), output.status.code()),
        (wanted.to_owned(), Some(0)),
        "{}",
        text(&output.stderr)
    );
    assert!(!Path::new("/var/run/gateway").exists(), "what is written stays inside");
    if let Some(output) = run_as_user(&place, &script, &words) {
        assert_eq!(
            (text(&output.stdout), output.status.code()),
            (wanted.to_owned(), Some(0)),
            "{}",
            text(&output.stderr)
        );
    }
    let output = run(&script, &[]);
    assert_eq!(output.status.code(), Some(3), "the code is the script's own");
}

#[test]
fn what_was_carried_out_is_printed_flat_and_can_be_run_again() {
    if skip() {
        return;
    }
    let place = Place::new("again");
    let script = place.script("gateway.sh", GATEWAY);
    let flat = run(&script, &["--print", "tc", "--", "start"]);
    let commands = text(&flat.stdout);
    let wanted = "iptables -t mangle -F
ip link add name ifb4eth1 type ifb
ip link set dev ifb4eth1 up
ip link set dev eth1 txqueuelen 10
ip link set dev eth1 txqueuelen 20
tc qdisc add dev eth1 root handle 1: htb default 30 r2q 40
tc class add dev eth1 parent 1: classid 1:1 htb rate 1440kbit
tc class add dev eth1 parent 1:1 classid 1:10 htb rate 160kbit ceil 1440kbit prio 1
tc qdisc add dev eth1 parent 1:10 handle 10: pfifo limit 10
tc filter add dev eth1 parent 1:0 protocol ip prio 1 handle 10 fw flowid 1:10
";
    assert!(commands.starts_with(wanted), "{commands}");
    let end = "tc class change dev eth1 parent 1:1 classid 1:20 htb rate 500kbit ceil 1440kbit prio 2
iptables -t mangle -A POSTROUTING -o eth1 -p tcp --dport 22 -j MARK --set-mark 10
";
    assert!(commands.ends_with(end), "{commands}");
    // The flat script leaves the machine as the script does.
    let again = place.script("flat.sh", &commands);
    let state = |script: &Path, words: &[&str]| {
        let output = run(script, &[&["--print", "json", "--"], words].concat());
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        ["qdiscs", "classes", "filters", "netfilter", "devices"].map(|key| document[key].clone())
    };
    let first = state(&script, &["start"]);
    assert!(first == state(&again, &[]), "the flat script came to something else");
    let [qdiscs, classes, filters, _, devices] =
        first.each_ref().map(|list| list.as_array().map_or(0, Vec::len));
    assert_eq!([qdiscs, classes, filters, devices], [5, 4, 7, 3]);
    assert!(first[3].to_string().contains("--dport 22 -j MARK"), "{}", first[3]);
    // So does the batch, for what is tc's.
    let batch = text(&run(&script, &["--print", "batch", "--", "start"]).stdout);
    assert!(batch.contains("\nclass add dev eth1 parent 1: classid 1:1 htb rate 1440kbit\n"), "{batch}");
    assert!(batch.contains("\n# ip link set dev eth1 txqueuelen 20\n"), "{batch}");
    let batch = format!(
        "ip link set eth1 txqueuelen 20\nip link add ifb4eth1 type ifb\ntc -batch - <<'END'\n{batch}END\n"
    );
    let [qdiscs, classes, filters, ..] = state(&place.script("batch.sh", batch), &[]);
    assert!(
        [&qdiscs, &classes, &filters] == [&first[0], &first[1], &first[2]],
        "the batch came to something else"
    );
}

#[test]
fn the_document_names_each_call_with_its_line_and_answer() {
    if skip() {
        return;
    }
    let place = Place::new("document");
    let script = place.script(
        "x.sh",
        "tc qdisc add dev eth0 root handle 1: htb\ntc qdisc del dev eth0 root handle 9: 2>/dev/null\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
         tc filter add dev eth0 parent 1: protocol ip u32 match ip tos 8 0xff match ip protocol 6 0xff \
         flowid 1:1\n\
         iptables -t mangle -A OUTPUT -m dscp --dscp 8 -j ACCEPT\n",
    );
    let output = run(&script, &["--print", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let calls = document["runs"][0]["calls"].as_array().expect("a list");
    let lines: Vec<String> =
        calls.iter().map(|call| format!("{} {} {}", call["line"], call["tool"], call["code"])).collect();
    assert_eq!(lines, ["1 \"tc\" 0", "2 \"tc\" 2", "3 \"tc\" 0", "4 \"tc\" 0", "5 \"iptables\" 0"]);
    assert_eq!(calls[1]["silenced"], true);
    assert_eq!(document["commands"].as_array().map(Vec::len), Some(4));
    assert_eq!(document["classes"][0]["rate"], 125_000);
    let filter = document["filters"].as_array().and_then(|all| all.last()).expect("a filter");
    assert_eq!(filter["options"]["match"].as_array().map(Vec::len), Some(2), "{filter}");
}

#[test]
fn the_tree_shows_where_packets_go() {
    if skip() {
        return;
    }
    let place = Place::new("tree");
    let output = run(&place.script("gateway.sh", GATEWAY), &["--print", "tree", "--", "start"]);
    let wanted = "\
eth1  mtu 1500, txqueuelen 20
└─ htb 1: r2q 40 default 0x30
   └─ 1:1  rate 1440Kbit  ceil 1440Kbit
      ├─ 1:10  prio 1  rate 160Kbit  ceil 1440Kbit  → pfifo 10: limit 10p
      │     ◂ fw mark 10  (ip, prio 1)
      │     ◂ u32 tos 0x10/0xff  (ip, prio 9)
      ├─ 1:20  prio 2  rate 500Kbit  ceil 1440Kbit  → sfq 20: limit 32p perturb 10sec
      │     ◂ fw mark 20  (ip, prio 1)  [no packet comes to it]
      └─ 1:30  prio 3  rate 700Kbit  ceil 1440Kbit  → fq_codel 30:
            ◂ fw mark 30  (ip, prio 1)  [no packet comes to it]
            ◂ all that no filter leads elsewhere
";
    assert_eq!(text(&output.stdout), wanted);
}

#[test]
fn the_tree_shows_what_arrives_too() {
    if skip() {
        return;
    }
    let place = Place::new("arrives");
    let script = place.script(
        "x.sh",
        "ip link add ifb0 type ifb; tc qdisc add dev eth0 ingress; tc qdisc add dev eth1 clsact
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip src 10.0.0.0/8 flowid :1 action mirred \
egress redirect dev ifb0
tc filter add dev eth1 egress prio 3 handle 7 fw action drop
tc qdisc add dev ifb0 root handle 1: htb default 1
tc class add dev ifb0 parent 1: classid 1:1 htb rate 1mbit
tc filter add dev ifb0 parent 1: protocol ip u32 match ip dport 22 0xffff flowid 1:7\n",
    );
    let wanted = "\
eth0  mtu 1500, txqueuelen 1000
└─ ingress ffff:
   └─ ◂ u32 src 10.0.0.0/8  (ip, prio 1) ⇒ to ifb0
eth1  mtu 1500, txqueuelen 1000
└─ clsact ffff:
   └─ ◂ egress: fw mark 7  (all, prio 3) ⇒ drop
ifb0  mtu 1500, txqueuelen 32
└─ htb 1: default 0x1
   ├─ ◂ u32 dport 22  (ip, prio 49152) to 1:7, which is not there
   └─ 1:1  rate 1Mbit  ceil 1Mbit
         ◂ all that no filter leads elsewhere
";
    assert_eq!(text(&run(&script, &["--print", "tree"]).stdout), wanted);
}

/// Qdiscs know their own classes only: in Linux 6.1 the ICMP packets are in 1:1, those for 1:9 in 1:2, and
/// those for 1: pass all classes.
#[test]
fn the_tree_draws_filters_where_they_lead() {
    if skip() {
        return;
    }
    let place = Place::new("led");
    let script = place.script(
        "x.sh",
        "tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1
tc qdisc add dev eth0 parent 1:2 handle 20: htb default 1
tc class add dev eth0 parent 20: classid 20:1 htb rate 4mbit
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 20:1
tc filter add dev eth0 parent 1: protocol ip prio 3 fw
tc filter add dev eth0 parent 20: protocol ip prio 4 u32 match ip dport 23 0xffff flowid 20:0
tc filter add dev eth0 parent 20: protocol ip prio 5 u32 match ip dport 24 0xffff flowid 1:1\n",
    );
    let wanted = "\
eth0  mtu 1500, txqueuelen 1000
└─ prio 1: bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1
   ├─ ◂ fw: the mark is the class's number  (ip, prio 3)
   ├─ 1:1
   │     ◂ u32 protocol icmp  (ip, prio 2) names 20:1: only the number behind the colon counts
   │     ◂ the rest of priorities 6-7
   └─ 1:2
      │  ◂ the rest of priorities 0-5, 8-15
      └─ htb 20: default 0x1
         ├─ ◂ u32 dport 23  (ip, prio 4) past all classes
         ├─ ◂ u32 dport 24  (ip, prio 5) to 1:1, which is no class of 20:
         └─ 20:1  rate 4Mbit  ceil 4Mbit
               ◂ all that no filter leads elsewhere
";
    assert_eq!(text(&run(&script, &["--print", "tree"]).stdout), wanted);
}

/// What tools answer: what they print (both streams), and their code. Taken from iproute2 6.1, net-tools
/// 2.10, kmod 30, procps 4 and ethtool 6.1 where they print the same for the same machine.
const ANSWERS: &[(&str, u8, &str)] = &[
    ("tc qdisc del dev eth0 root 2>&1 | head -1", 0, "Error: Cannot delete qdisc with handle of zero."),
    ("tc qdisc del dev eth0 root >/dev/null 2>&1", 2, ""),
    ("tc qdisc add sfq help 2>&1 | grep -c perturb", 0, "1"),
    ("tc -V", 0, "tc utility, iproute2-6.1.0, libbpf 1.1.2"),
    ("tc qdisc add dev d$((1+6)) root pfifo", 0, ""),
    ("tc qdisc add dev ifb$((1+6)) root pfifo 2>&1 | head -1", 0, "Cannot find device \"ifb7\""),
    (
        "ip link add d0 type dummy; tc qdisc show dev d0; ip link set d0 up; tc qdisc show dev d0 | cut -d' \
        ' -f2; ip link del d0",
        0,
        "noqueue",
    ),
    ("ip link show ifb0", 1, "Device \"ifb0\" does not exist."),
    ("ip link add name ifb0 type ifb; ip link add name ifb0 type ifb", 2, "RTNETLINK answers: File exists"),
    (
        "cat /sys/class/net/ifb0/operstate; ip link set ifb0 up; cat /sys/class/net/ifb0/tx_queue_len",
        0,
        "down\n32",
    ),
    ("grep -c ifb0: /proc/net/dev", 0, "1"),
    ("ip link set ifb0 name in0", 2, "RTNETLINK answers: Device or resource busy"),
    ("ip link set ifb0 down; ip link set ifb0 name in0; ls -d /sys/class/net/in0", 0, "/sys/class/net/in0"),
    (
        "ip link del in0; ls -d /sys/class/net/in0 2>/dev/null; tc qdisc add dev in0 root pfifo 2>&1 | head -1",
        0,
        "Cannot find device \"in0\"",
    ),
    ("ip -o link show eth0 | cut -d' ' -f2-5", 0, "eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500"),
    (
        "ip -o -4 addr show eth0",
        0,
        "2: eth0    inet 192.0.2.2/24 scope global eth0\\       valid_lft forever preferred_lft forever",
    ),
    ("ip route show default", 0, "default via 192.0.2.1 dev eth0 "),
    (
        "ip -o route get 198.51.100.1",
        0,
        "198.51.100.1 via 192.0.2.1 dev eth0 src 192.0.2.2 uid 0 \\    cache ",
    ),
    // The first takes the place of the route that is only assumed.
    (
        "ip route add default via 192.0.2.9; ip route add default via 192.0.2.8",
        2,
        "RTNETLINK answers: File exists",
    ),
    ("ip route add 10.0.0.0/8 via 203.0.113.1", 2, "Error: Nexthop has invalid gateway."),
    ("ip addr add 192.0.2.2/24 dev eth0", 2, "Error: ipv4: Address already assigned."),
    (
        "ip tunnel add t1 mode ipip remote 198.51.100.9 local 192.0.2.2; ip tunnel show t1",
        0,
        "t1: ip/ip remote 198.51.100.9 local 192.0.2.2 ttl inherit",
    ),
    ("cat /sys/class/net/t1/mtu", 0, "1480"),
    (
        "printf 'link set eth0 mtu 1400\\nlink show nope\\n' | ip -batch - 2>&1; cat /sys/class/net/eth0/mtu",
        0,
        "Device \"nope\" does not exist.\nCommand failed -:2\n1400",
    ),
    ("ip frob", 1, "Object \"frob\" is unknown, try \"ip help\"."),
    ("ifconfig nope", 1, "nope: error fetching interface information: Device not found"),
    ("ifconfig eth0 | head -1", 0, "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1400"),
    ("ifconfig -a | grep -c txqueuelen", 0, "4"),
    (
        "ifconfig eth0 10.7.7.1 netmask 255.255.0.0; ip -br addr show eth0",
        0,
        "eth0             UP             10.7.7.1/16 ",
    ),
    ("ethtool eth0 | grep Speed", 0, "\tSpeed: 1000Mb/s"),
    ("ethtool nope 2>&1 | tail -1", 0, "No data available"),
    ("ethtool -G eth0 tx 64; ethtool -g eth0 | grep -c ^TX:.*64", 0, "1"),
    (
        "ethtool -K eth0 tso off gso off; ethtool -k eth0 | grep segm",
        0,
        "tcp-segmentation-offload: off\ngeneric-segmentation-offload: off",
    ),
    (
        "ethtool -K eth0 frob off",
        92,
        "netlink error: bit name not found (offset 56)\nnetlink error: Operation not supported",
    ),
    ("sysctl -w net.ipv4.ip_forward=1; cat /proc/sys/net/ipv4/ip_forward", 0, "net.ipv4.ip_forward = 1\n1"),
    ("echo 0 > /proc/sys/net/ipv4/ip_forward; sysctl -n net.ipv4.ip_forward", 0, "0"),
    (
        "sysctl -qw net.core.default_qdisc=fq_codel; sysctl net.core.default_qdisc",
        0,
        "net.core.default_qdisc = fq_codel",
    ),
    ("sysctl net.frob", 1, "sysctl: tidegate: what /proc/sys/net/frob has is not known: not supported"),
    ("sysctl -w net.ipv4.route.flush=1", 0, "net.ipv4.route.flush = 1"),
    ("modprobe sch_sfq && ls -d /sys/module/sch_sfq", 0, "/sys/module/sch_sfq"),
    (
        "modprobe frobnicate",
        1,
        "modprobe: FATAL: Module frobnicate not found in directory /lib/modules/6.1.0",
    ),
    ("rmmod frobnicate", 1, "rmmod: ERROR: Module frobnicate is not currently loaded"),
    ("modprobe ifb numifbs=1; lsmod | grep -c ifb; ls -d /sys/class/net/ifb*", 0, "1\n/sys/class/net/ifb0"),
    ("sudo -n -E -u root tc qdisc show dev eth0 | cut -d' ' -f2", 0, "pfifo_fast"),
    ("ipset list", 1, "ipset: tidegate: this tool is not supported in this version"),
    ("nft add table inet q && nft list ruleset", 0, "table inet q {\n}"),
    ("nft add rule inet q c accept 2>/dev/null || echo there is no chain c", 0, "there is no chain c"),
    ("command -v conntrack >/dev/null && conntrack -L 2>/dev/null", 1, ""),
    ("cat /sys/class/net/eth0/speed /sys/class/net/eth0/address", 0, "1000\n02:00:00:00:00:02"),
];

#[test]
fn tools_answer_as_the_real_ones() {
    if skip() {
        return;
    }
    let place = Place::new("answers");
    // The lines are in a file of their own, so that nothing is read from them before.
    let mut lines = String::new();
    for (line, ..) in ANSWERS {
        lines.push_str(&format!("{line}\n"));
    }
    place.script("lines", lines);
    let dir = place.0.display();
    let script = place.script(
        "x.sh",
        format!(
            "while IFS= read -r line; do\n  out=$(sh -c \"$line\" 2>&1 </dev/null); printf '%s|%s§' \
        $? \"$out\"\ndone < {dir}/lines\n"
        ),
    );
    let words = ["--dev", "eth0"];
    for output in std::iter::once(run(&script, &words)).chain(run_as_user(&place, &script, &words)) {
        let printed = text(&output.stdout);
        let ours: Vec<&str> = printed.trim_end_matches('§').split('§').collect();
        assert_eq!(ours.len(), ANSWERS.len(), "{printed}");
        let mut wrong = Vec::new();
        for ((line, code, wanted), ours) in ANSWERS.iter().zip(ours) {
            // `$(…)` takes the last end of line away.
            if ours != format!("{code}|{wanted}") {
                wrong.push(format!("{line}\n  wanted {code}|{wanted}\n  got    {ours}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn the_directory_for_passing_files_is_private() {
    if skip() {
        return;
    }
    let (place, other) = (Place::new("private"), Place::new("other"));
    other.script("conf", "RATE=1mbit\n");
    let script = place.script(
        "x.sh",
        "ls /tmp; . ./lib; [ -n \"$1\" ] && . $1; echo $RATE $MORE; echo x > /tmp/y && cat /tmp/y\n",
    );
    place.script("lib", "MORE=more\n");
    let own = place.0.file_name().expect("it has a name").to_string_lossy().into_owned();
    let both =
        format!("{}\n{own}\n1mbit more\nx\n", other.0.file_name().expect("it has a name").to_string_lossy());
    let conf = other.0.join("conf");
    let run = |words: &[&Path]| {
        let output = Command::new(TIDEGATE)
            .arg("run")
            .arg(&script)
            .arg("--")
            .args(words)
            .current_dir(&place.0)
            .output()
            .expect("it runs");
        text(&output.stdout)
    };
    if !std::env::temp_dir().starts_with("/tmp") {
        eprintln!("SKIPPED: temporary files are elsewhere");
        return;
    }
    assert_eq!(run(&[]), format!("{own}\nmore\nx\n"));
    assert_eq!(run(&[&conf]), both, "what an argument names is seen");
}

#[test]
fn a_directory_may_have_any_name() {
    if skip() {
        return;
    }
    let place = Place::new("odd, as: this\\one");
    let script =
        place.script("x y.sh", "cd \"$(dirname \"$0\")\" && echo made > out && cat out && . './lib $1'\n");
    place.script("lib $1", "tc qdisc add dev eth0 root pfifo && echo shaped\n");
    let output = run(&script, &[]);
    assert_eq!(text(&output.stdout), "made\nshaped\n", "{}", text(&output.stderr));
    assert!(!place.0.join("out").exists(), "what is written stays inside");
}

/// Scripts no one should write: their output, the code, and the messages.
#[test]
fn bad_scripts_are_answered_or_named_and_nothing_hangs() {
    if skip() {
        return;
    }
    let place = Place::new("bad");
    let cases: &[(&str, &[u8], i32, &str)] = &[
        (
            "question",
            b"#!/bin/sh\nset -e\necho 'Which device?'\nread DEV\ntc qdisc add dev $DEV root pfifo\n",
            1,
            "line 4 asks a question (`read DEV`), and here standard input is empty",
        ),
        (
            "patient",
            b"#!/bin/sh\nuntil [ \"$ok\" = y ]; do\n  read -r ok\ndone\n",
            124,
            "line 3 asks a question (`read -r ok`)",
        ),
        (
            "asleep",
            b"tc qdisc add dev eth0 root pfifo\nsleep 1000\n",
            124,
            "did not end within 1 s; it was running `sleep 1000`",
        ),
        (
            "watcher",
            b"while :; do tc -s qdisc show dev eth0 >/dev/null; sleep 0.01; \
        done\n",
            124,
            "did not end within",
        ),
        (
            "binary",
            b"printf '\\377\\376\\000\\001\\033[2J'\ntc qdisc add dev eth0 root pfifo\n",
            0,
            "1 command carried out",
        ),
        (
            "toolless",
            b"frobnicate --all\n",
            127,
            "frobnicate: there is no such tool on this machine, and tidegate does not emulate it",
        ),
        (
            "unplayed",
            b"ipset create x || exit 7\n",
            7,
            "ipset: tidegate: this tool is not supported in this version",
        ),
        (
            "lacking",
            b"iptables -t mangle -A FORWARD -m hashlimit --hashlimit-above 9/sec --hashlimit-name x -j \
            ACCEPT\n",
            2,
            "the script may be right: tidegate lacks what this command needs",
        ),
        ("outside", b"set -e\necho x > /etc/tidegate-was-here\nrm -rf /var/log\n", 0, "code 0"),
        ("selfish", b"#!/bin/sh\necho '# more' >> \"$0\"\nsed -i s/pfifo/bfifo/ \"$0\"\n", 0, "code 0"),
        ("windows", b"#!/bin/sh\r\ntc qdisc show\r\n", 126, "windows:1: the lines end in CR LF"),
        ("empty", b"", 0, "0 calls"),
        ("lost", b"#!/opt/no/such/shell\n", 126, "lost:1: the script needs /opt/no/such/shell"),
        ("program", b"\x7fELF\0\0\0", 126, "program: this is not text"),
        ("killed", b"kill -9 $$\n", 137, "ended by signal 9"),
        ("unclosed", b"if true; then\n  tc qdisc show\n", 2, "unclosed:2: sh: the script ended with code 2"),
        ("many", b"for d in eth0 ppp0 wlan0; do tc qdisc add dev $d root sfq; done\n", 0, "ppp0: sfq 8002:"),
        (
            "crowd",
            b"i=0\nwhile [ $i -lt 2500 ]; do sleep 100 & i=$((i+1)); done\nwait\n",
            125,
            "more than 1000 processes at once",
        ),
    ];
    for (name, bytes, code, message) in cases {
        let script = place.script(name, bytes);
        let limit = match (*name, *code) {
            ("crowd", _) => "60s",
            ("watcher", _) => "100ms",
            (_, 124) => "1s",
            _ => "20s",
        };
        let output = run(&script, &["--timeout", limit]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{name}: {stderr}");
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert_eq!(&fs::read(&script).expect("it is there"), bytes, "{name} is as it was");
    }
    assert!(!Path::new("/etc/tidegate-was-here").exists() && Path::new("/var/log").exists());
    // No one needs to have made it executable, or to have written a first line.
    let plain = place.0.join("plain");
    fs::write(&plain, "tc qdisc add dev eth0 root pfifo\n").expect("a file");
    assert_eq!(run(&plain, &[]).status.code(), Some(0));
    assert_eq!(run(&place.0.join("nowhere"), &[]).status.code(), Some(127));
    assert_eq!(run(&plain, &["--print", "poem"]).status.code(), Some(2));
}

/// What the kernel accepts silently though it cannot do what was meant: carried out, with a caveat.
const CAVEATS: &[(&str, &str)] = &[
    ("qdisc add dev eth0 root handle 1: htb default 10", ""),
    ("class add dev eth0 parent 1: classid 1:1 htb rate 2mbit", ""),
    (
        "class add dev eth0 parent 1:7 classid 1:10 htb rate 1mbit",
        "there is no class 1:7 on eth0: 1:10 is under the root and cannot borrow",
    ),
    (
        "class add dev eth0 parent 1:1 classid 1:11 htb rate 2mbit ceil 1mbit",
        "ceil 1 Mbit/s is below rate 2 Mbit/s: the class never gets its rate",
    ),
    (
        "class add dev eth0 parent 1:1 classid 1:12 htb rate 1mbit burst 200",
        "burst or cburst is 200 bytes, less than half a frame (1514): give about rate / 250 bytes, at least 1514",
    ),
    (
        "qdisc add dev eth0 parent 1:10 tbf rate 1mbit burst 1000 limit 10k",
        "burst 1000 is less than a frame of eth0 (1514 bytes): longer packets are dropped",
    ),
    (
        "qdisc add dev eth0 parent 1:11 codel target 200ms",
        "target (200000 us) is not below interval (100000 us): a queue is accepted for longer than it is \
        watched",
    ),
    ("qdisc add dev eth0 parent 1:12 pfifo limit 0", "limit 0 drops every packet"),
    ("qdisc replace dev eth0 parent 1:12 pfifo limit 10", ""),
];

/// Scripts of today find out by trying: whether the kernel has cake, what tc is, how large frames are,
/// whether a redirect is installed.
#[test]
fn a_script_that_probes_the_machine_gets_answers() {
    if skip() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/both-ways.sh");
    let output = run(&script, &["--print", "tree"]);
    let (tree, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("shaping eth0 with cake, mtu 1500"), "{stderr}");
    assert!(stderr.contains("3 refused as the script expects; code 0"), "{stderr}");
    assert!(tree.contains("cake 8002: bandwidth 9500Kbit nat ack-filter noatm overhead 44"), "{tree}");
    assert!(tree.contains("◂ everything  (all, prio 10) ⇒ to ifb4eth0"), "{tree}");
}

/// A command that is refused because something is missing gets that reason, where the script does not give
/// it.
#[test]
fn deleting_nothing_is_distinguished_from_failing() {
    if skip() {
        return;
    }
    let place = Place::new("nothing");
    let script = place.0.join("nothing.sh");
    let undo = "tc qdisc del dev eth0 root\niptables -t mangle -X QOS\n";
    fs::write(&script, format!("#!/bin/sh\n{undo}tc qdisc add dev eth0 root fq_codel\n")).expect("a script");
    let stderr = text(&run(&script, &[]).stderr);
    assert!(stderr.contains("2 refused because there was nothing to delete; code 0"), "{stderr}");
    fs::write(&script, format!("#!/bin/sh\n{undo}tc qdisc add dev eth0 root fq_coddle\n")).expect("a script");
    let stderr = text(&run(&script, &[]).stderr);
    assert!(stderr.contains("3 refused, 2 of them because there was nothing to delete"), "{stderr}");
}

#[test]
fn what_cannot_work_is_carried_out_with_a_caveat() {
    if skip() {
        return;
    }
    let place = Place::new("caveats");
    let script = place
        .script("x.sh", CAVEATS.iter().map(|(command, _)| format!("tc {command}\n")).collect::<String>());
    let output = run(&script, &["--dev", "eth0"]);
    let stderr = text(&output.stderr);
    let warned: Vec<&str> =
        stderr.lines().filter_map(|line| line.strip_prefix("tidegate: warning: ")).collect();
    let wanted: Vec<&str> =
        CAVEATS.iter().map(|(_, caveat)| *caveat).filter(|caveat| !caveat.is_empty()).collect();
    assert_eq!(warned, wanted, "{stderr}");
    assert_eq!(output.status.code(), Some(0));
}

/// `tc monitor` waits as the real one does: in the background until the script ends, otherwise until it is
/// killed.
#[test]
fn tc_monitor_waits_and_shows_nothing() {
    if skip() {
        return;
    }
    let place = Place::new("run-monitor");
    let script =
        "tc monitor &\ntc qdisc add dev eth0 root fq_codel\ntimeout 0.2 tc monitor; echo \"ended $?\"\n";
    let output = run(&place.script("monitor.sh", format!("#!/bin/sh\n{script}")), &[]);
    let (printed, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((printed.as_str(), output.status.code()), ("ended 124\n", Some(0)), "{stderr}");
    assert_eq!(stderr.matches("tidegate: tc monitor prints no events here").count(), 2, "{stderr}");
}

/// Every command reports a script without traffic control, and only `run`, whose code is the script's, calls
/// that a success.
#[test]
fn every_command_reports_a_policy_without_traffic_control() {
    if skip() {
        return;
    }
    let place = Place::new("run-nothing");
    place.file("empty", "");
    place.script("comments.sh", "#!/bin/sh\n# tc qdisc add dev eth0 root pfifo\n");
    place.script("other.sh", "#!/bin/sh\nip link set lo up\necho hello\n");
    place.script("elsewhere.sh", "#!/bin/sh\nchroot /nowhere tc qdisc add dev eth0 root pfifo || true\n");
    place.script("shows.sh", "#!/bin/sh\ntc qdisc show\n");
    let packet = "udp 10.0.0.1:5 > 10.0.0.2:53 out eth0";
    let tidegate = |words: &[&str]| {
        let output =
            Command::new(TIDEGATE).args(words).current_dir(&place.0).output().expect("tidegate runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for file in ["/dev/null", "empty", "comments.sh", "other.sh", "elsewhere.sh"] {
        let commands: [(&[&str], i32); 5] = [
            (&["run", file], 0),
            (&["check", file], 2),
            (&["explain", file, packet], 2),
            (&["graph", file], 2),
            (&["try", file, "--up", "1mbit", "--down", "1mbit"], 2),
        ];
        for (words, code) in commands {
            let (found, text) = tidegate(words);
            assert_eq!(found, Some(code), "{words:?}: {text}");
            assert_eq!(text.matches("no traffic control command was run").count(), 1, "{words:?}: {text}");
            let wrapped = "elsewhere.sh:2: `chroot` runs tc somewhere else";
            assert_eq!(text.contains(wrapped), file == "elsewhere.sh", "{words:?}: {text}");
        }
    }
    for words in [["run", "shows.sh"], ["check", "shows.sh"], ["graph", "shows.sh"]] {
        let (found, text) = tidegate(&words);
        assert!(
            found == Some(0) && !text.contains("no traffic control command was run"),
            "{words:?}: {text}"
        );
    }
}

#[test]
fn links_are_made_by_any_name() {
    if skip() {
        return;
    }
    let place = Place::new("any-name");
    let script = place.script(
        "links.sh",
        "tc qdisc del dev up0 root 2>/dev/null\nip link add dev up0 type ifb\nip link set dev up0 up\n\
         ip link add dmz0 type veth peer name dmz1\nip link add link eth0 name vlan10 type vlan id 10\n\
         NAME=lan$((1 + 1)); ip link set $NAME mtu 1400; ip link add dev $NAME type dummy\n\
         for DEV in up0 dmz0 dmz1 vlan10 eth0; do tc qdisc add dev $DEV root handle 1: prio; done\n",
    );
    let stderr = text(&run(&script, &[]).stderr);
    assert!(stderr.contains("12 calls, 11 commands carried out, 1 refused"), "{stderr}");
    assert!(!stderr.contains("File exists"), "{stderr}");
}

#[test]
fn a_missing_device_name_is_reported_as_tc_does() {
    if skip() {
        return;
    }
    let place = Place::new("no-name");
    let script = place.script(
        "unset.sh",
        "tc qdisc add dev $UNSET root handle 1: prio\ntc filter add dev $UNSET parent 1: fw\n",
    );
    let stderr = text(&run(&script, &[]).stderr);
    for told in
        ["Cannot find device \"root\"", "Cannot find device \"parent\"", "Is the variable there empty?"]
    {
        assert!(stderr.contains(told), "{told}: {stderr}");
    }
}

/// What was cut may have called tc later, and a device file has no siblings that someone would miss.
#[test]
fn unobserved_effects_are_not_reported() {
    if skip() {
        return;
    }
    let place = Place::new("cut");
    let endless =
        place.script("endless.sh", "#!/bin/sh\nwhile :; do :; done\ntc qdisc add dev eth0 root fq\n");
    let cut = text(&run(&endless, &["--timeout", "300ms"]).stderr);
    assert!(cut.contains("did not end within 0.3 s") && !cut.contains("no traffic control command"), "{cut}");
    let nothing = text(&run(Path::new("/dev/null"), &[]).stderr);
    assert!(
        nothing.contains("no traffic control command") && !nothing.contains("/dev of the host"),
        "{nothing}"
    );
}

/// Background processes are ended with the script, and every command reports it; those that end with their
/// script are not reported.
#[test]
fn background_processes_are_reported() {
    if skip() {
        return;
    }
    let place = Place::new("unfinished");
    let left = place.script(
        "left.sh",
        "#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\n(sleep 1000; tc qdisc replace dev eth0 root pfifo) &\n",
    );
    let name = left.to_str().expect("a name");
    let commands: [&[&str]; 6] = [
        &["run"],
        &["check"],
        &["graph"],
        &["import"],
        &["policy", "from"],
        &[
            "try",
            "--up",
            "1mbit",
            "--down",
            "1mbit",
            "--duration",
            "1s",
            "--load",
            "empty",
            "--report",
            "none",
        ],
    ];
    for words in commands {
        let output = Command::new(TIDEGATE).args(words).arg(name).output().expect("tidegate runs");
        let stderr = text(&output.stdout) + &text(&output.stderr);
        let message = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            message.contains("still running when the script ended and were ended with it"),
            "{words:?}: {stderr}"
        );
        assert!(message.contains("`sleep 1000`"), "{words:?}: {stderr}");
        assert!(message.contains("what they would have done is not in this"), "{words:?}: {stderr}");
    }
    for (name, script) in [
        ("waits.sh", "(tc qdisc add dev eth0 root fq_codel) &\nwait\n"),
        ("log.sh", "exec > >(cat >&2)\ntc qdisc add dev eth0 root fq_codel\necho done\n"),
    ] {
        let script = place.script(name, format!("#!/bin/bash\n{script}"));
        let output = run(&script, &[]);
        let stderr = text(&output.stderr);
        assert!(output.status.success() && !stderr.contains("still running"), "{name}: {stderr}");
    }
}

#[test]
fn a_script_that_stops_or_kills_itself_is_reported() {
    if skip() {
        return;
    }
    let place = Place::new("stops");
    let stopped = place.script("stop.sh", "#!/bin/sh\ntc qdisc add dev eth0 root sfq\nkill -STOP $$\n");
    let stderr = text(&run(&stopped, &["--timeout", "300ms"]).stderr);
    assert!(
        stderr.contains("is stopped by a signal (SIGSTOP or SIGTSTP) that something in it sent"),
        "{stderr}"
    );
    let killed = place.script("kill.sh", "#!/bin/sh\ntc qdisc add dev eth0 root sfq\nkill -KILL 0\n");
    let stderr = text(&run(&killed, &[]).stderr);
    assert!(stderr.contains("was ended by signal 9, which it or something it started sent"), "{stderr}");
}

/// The first device that a script names has the address; what is printed names it first, too, and its text is
/// the same.
#[test]
fn what_is_printed_leaves_the_same_machine_whatever_was_refused() {
    if skip() {
        return;
    }
    let place = Place::new("print-order");
    let script = place.script(
        "order.sh",
        "#!/bin/sh\ntc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\nip link add ifb0 type ifb\n\
         ip link set dev ifb0 up\ntc qdisc add dev eth1 root sfq\ntc qdisc add dev eth0 handle ffff: \
         ingress\n\
         iptables -A OUTPUT -m comment --comment \"$(printf 'a\\033b\\342\\200\\256c')\" -j ACCEPT\n",
    );
    let printed = text(&run(&script, &["--print", "tc"]).stdout);
    assert!(
        printed.starts_with("ip link show dev eth0 > /dev/null\nip link show dev eth1 > /dev/null\n"),
        "{printed}"
    );
    let again = place.script("again.sh", format!("#!/bin/sh\n{printed}"));
    let state = |script: &Path| {
        let output = run(script, &["--print", "json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        ["qdiscs", "classes", "filters", "netfilter", "devices"].map(|key| document[key].clone())
    };
    let [first, second] = [state(&script), state(&again)];
    assert!(
        first[3].to_string().contains("\u{1b}") || first[3].to_string().contains("\\u001b"),
        "{}",
        first[3]
    );
    assert_eq!(first, second, "{printed}");
}
