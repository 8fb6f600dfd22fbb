use super::*;

#[test]
fn a_listing_becomes_commands_in_an_order_that_works() {
    let text = "\
qdisc fq_codel 8001: dev eth0 parent 1:10 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms \
memory_limit 32Mb ecn drop_batch 64 
qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0 ver 3.17 direct_qlen 1000
qdisc pfifo_fast 0: dev eth1 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
class htb 1:10 parent 1:1 leaf 8001: prio 2 quantum 2000 rate 300Kbit overhead 18 ceil 1Mbit linklayer \
ethernet burst 1599b/1 mpu 0b cburst 1599b/1 mpu 0b level 0 
class htb 1:1 root rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b 
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
filter parent 1: protocol ip pref 10 u32 chain 0 
filter parent 1: protocol ip pref 10 u32 chain 0 fh 800: ht divisor 1 
filter parent 1: protocol ip pref 10 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:10 \
not_in_hw 
  match 00100000/00fc0000 at 0
  match 00160000/ffff0000 at nexthdr+0
filter parent 1: protocol ip pref 11 fw chain 0 handle 0x7/0xff classid 1:10 
";
    let listed: Vec<String> =
        read_listing(text).expect("is read").iter().map(|one| one.args.join(" ")).collect();
    assert_eq!(
        listed,
        [
            "qdisc add dev eth0 root handle 1: htb r2q 10 default 20 direct_qlen 1000",
            "class add dev eth0 parent 1: classid 1:1 htb rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b",
            "class add dev eth0 parent 1:1 classid 1:10 htb prio 2 quantum 2000 rate 300Kbit overhead \
                18 ceil 1Mbit burst 1599b cburst 1599b",
            "qdisc add dev eth0 parent 1:10 handle 8001: fq_codel limit 10240 flows 1024 quantum 1514 \
                target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64",
            "filter add dev eth0 parent 1: protocol ip pref 10 u32 match u32 0x00100000 0x00fc0000 at 0 \
                match u32 0x00160000 0xffff0000 at nexthdr+0 flowid 1:10",
            "filter add dev eth0 parent 1: protocol ip pref 11 handle 0x7/0xff fw classid 1:10",
        ]
    );
}

#[test]
fn children_of_classes_that_come_by_themselves_and_words_that_listings_leave_out() {
    let text = "qdisc prio 1: dev eth0 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n\
                    qdisc tbf 2: dev eth0 parent 1:1 rate 1Mbit burst 10Kb lat 30ms \n\
                    qdisc fq_codel 3: dev eth0 parent 2:1 limit 10240p flows 1024 quantum 1514 target 5ms \
                    interval 100ms memory_limit 32Mb drop_batch 64 \n\
                    qdisc fq 4: dev eth0 parent 1:2 limit 1000p flow_limit 50p buckets 1024\n";
    let listed: Vec<String> =
        read_listing(text).expect("is read").iter().map(|one| one.args.join(" ")).collect();
    assert_eq!(listed.len(), 4, "{listed:?}");
    assert!(listed[1].starts_with("qdisc add dev eth0 parent 1:1 handle 2: tbf rate 1Mbit"), "{listed:?}");
    assert!(listed[2].ends_with("memory_limit 32Mb drop_batch 64 noecn"), "{listed:?}");
    assert!(listed[3].ends_with("fq limit 1000 flow_limit 50 buckets 1024"), "{listed:?}");
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let wrong = |text: &str| read_listing(text).expect_err("cannot be read");
    assert_eq!(wrong("class htb 1:1 root rate 1Mbit\n").line, 1);
    assert!(wrong("qdisc sfq 2: dev eth0 parent 1:1 limit 127p\n").why.contains("tc qdisc show"));
    let within = "qdisc htb 1: dev eth0 root\nqdisc sfq 2: dev eth0 parent 1:1 limit 127p\n";
    assert!(wrong(within).why.contains("tc class show"));
    assert!(
        wrong("# dev eth0\nfilter parent 1: protocol ip pref 1 bpf chain 0 handle 0x1 x.o\n")
            .why
            .contains("bpf")
    );
    let twice = wrong("qdisc sfq 2: dev eth0 root\nqdisc sfq 2: dev eth0 root\n");
    assert!(twice.why.contains("is listed twice, in line 1 and in line 2"), "{twice:?}");
    let shared = "# dev eth0\nfilter parent ffff: protocol all pref 1 matchall chain 0 \n\
                  filter parent ffff: protocol all pref 1 matchall chain 0 handle 0x1 \n\
                  \taction order 1:  police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b \n\
                  \tref 2 bind 2 \n";
    let shared = wrong(shared);
    assert!(shared.line == 3 && shared.why.contains("share its policer"), "{shared:?}");
}

/// `match` is before `link` and `offset`: tc refuses a `match mark` behind them (recorded: tc 6.1).
#[test]
fn matches_of_u32_are_before_its_offset() {
    let text = "# dev eth0 parent 1:\nfilter protocol all pref 1 u32 chain 0 \n\
                filter protocol all pref 1 u32 chain 0 fh 103: ht divisor 1 \n\
                filter protocol all pref 1 u32 chain 0 fh 800: ht divisor 1 \n\
                filter protocol all pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 link 103: \n  \
                mark 0x0001 0xffff (success 0)\n    offset 0f00>>6 at 0  eat \n";
    let last = read_listing(text).expect("is read").pop().expect("a command").args.join(" ");
    assert_eq!(
        last,
        "filter add dev eth0 parent 1: protocol all pref 1 u32 match mark 0x0001 0xffff link 103: offset at 0 mask \
         0f00 shift 6 eat"
    );
}

/// A listing that was copied with a margin is the same.
#[test]
fn a_margin_of_blanks_is_none_of_the_listing() {
    let text = "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x30\n\nqdisc fq_codel 2: dev eth1 root refcnt 2 limit \
                10240p flows 1024\n";
    let args =
        |text: &str| read_listing(text).expect("is read").into_iter().map(|one| one.args).collect::<Vec<_>>();
    let plain = args(text);
    assert_eq!(plain.len(), 2);
    for blanks in [" ", "\t", "    "] {
        let shifted: String = text.lines().map(|line| format!("{blanks}{line}\n")).collect();
        assert_eq!(args(&shifted), plain);
    }
}
