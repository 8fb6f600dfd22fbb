use super::rows::Makes;
use super::*;

fn commands(text: &str) -> Vec<String> {
    let policy = read(text).unwrap_or_else(|problems| panic!("{problems:?}"));
    policy.commands.iter().map(|command| format!("{}: {}", command.line, command.words.join(" "))).collect()
}

fn wrong(text: &str) -> Vec<(usize, String)> {
    let problems = read(text).expect_err(text);
    problems.into_iter().map(|problem| (problem.span.line, problem.what)).collect()
}

#[test]
fn sections_are_carried_out_parents_first() {
    let text = "[Match]\nName=eth0\n\n[HierarchyTokenBucketClass]\nParent=2:1\nClassId=2:30\nRate=1M\nCeilRate=0.5G\n\n\
                [FairQueueingControlledDelay]\nParent=2:30\nHandle=30\nTargetSec=5ms\nIntervalSec=0.1\nECN=no\n\n\
                [HierarchyTokenBucketClass]\nParent=root\nClassId=2:1\nRate=9M\nBufferBytes=2K\n\n\
                # the root\n[HierarchyTokenBucket]\nParent=root\nHandle=2\nDefaultClass=30\nRateToQuantum=20\n";
    assert_eq!(
        commands(text),
        [
            "24: qdisc replace dev eth0 root handle 2: htb default 30 r2q 20",
            "17: class replace dev eth0 root classid 2:1 htb rate 9000000bit burst 2048",
            "4: class replace dev eth0 parent 2:1 classid 2:30 htb rate 1000000bit ceil 500000000bit",
            "10: qdisc replace dev eth0 parent 2:30 handle 30: fq_codel target 5000us interval 100000us noecn",
        ]
    );
}

/// A class may hang on its qdisc by the whole name of that.
#[test]
fn a_class_may_name_its_qdisc() {
    let text = "[Match]\nName=eth0\n[HierarchyTokenBucket]\nParent=root\nHandle=1\n\
                [HierarchyTokenBucketClass]\nParent=1:0\nClassId=1:20\nRate=1G\n";
    assert_eq!(commands(text)[1], "6: class replace dev eth0 parent 1: classid 1:20 htb rate 1000000000bit");
    let missing = text.replace("Handle=1", "Handle=2");
    assert!(wrong(&missing)[0].1.contains("nothing in this file makes 1:"), "{:?}", wrong(&missing));
}

#[test]
fn values_are_those_of_systemd() {
    let of = |section: &str, lines: &str| {
        let all = commands(&format!("[Match]\nName=eth0\n[{section}]\n{lines}\n"));
        all[0].split_once(" root ").expect("at the root").1.to_owned()
    };
    let cake = "Bandwidth=1.5M\nOverheadBytes=-4\nCompensationMode=atm\nFlowIsolationMode=dual-src-host\nNAT=on\n\
                PriorityQueueingPreset=diffserv4\nWash=0\nSplitGSO=no\nAckFilter=aggressive\nUseRawPacketSize=no";
    assert_eq!(
        of("CAKE", cake),
        "cake bandwidth 1500000bit overhead -4 atm dual-srchost nat diffserv4 nowash no-split-gso \
         ack-filter-aggressive"
    );
    assert_eq!(
        of(
            "EnhancedTransmissionSelection",
            "Bands=4\nStrictBands=2\nQuantumBytes=3K\nQuantumBytes=1514\nPriorityMap=0 1 2"
        ),
        "ets bands 4 strict 2 quanta 3072 1514 priomap 0 1 2"
    );
    assert_eq!(
        of("NetworkEmulator", "DelaySec=1s 200ms\nDelayJitterSec=10ms\nLossRate=0.5%"),
        "netem delay 1200000us 10000us loss 0.5%"
    );
    assert_eq!(of("NetworkEmulator", "DelayJitterSec=10ms"), "netem delay 0us 10000us");
    assert_eq!(of("StochasticFairnessQueueing", "PerturbPeriodSec=1min"), "sfq perturb 60");
    assert_eq!(of("PIE", "PacketLimit=5\nPacketLimit=\nPacketLimit=7"), "pie limit 7");
    assert_eq!(commands("[QDisc]\nParent=clsact\n"), ["1: qdisc replace dev eth0 clsact"]);
    assert_eq!(
        of("CAKE", "FirewallMark=0xff00\nOverheadBytes=128\nUseRawPacketSize=yes"),
        "cake raw overhead 128 fwmark 65280"
    );
    // A pattern has one that stands for all, and each name its own commands.
    let policy = read("[Match]\nName=en* wlan0\n[PFIFO]\n").unwrap();
    assert_eq!(
        (policy.devices, policy.commands.len(), policy.notes.len()),
        (vec!["en0".into(), "wlan0".into()], 2, 1)
    );
}

#[test]
fn what_systemd_leaves_out_is_a_problem_with_its_place() {
    for (lines, expected) in [
        ("[CAKE]\nBandwith=9M", (2, "[CAKE] has no Bandwith=, so systemd-networkd leaves the line out")),
        (
            "[CAKE]\nBandwidth=fast",
            (2, "Bandwidth=fast is no value for it, so systemd-networkd leaves the line out"),
        ),
        (
            "[CAKE]\nBandwidth=9mbit",
            (2, "Bandwidth=9mbit is no value for it, so systemd-networkd leaves the line out"),
        ),
        (
            "[HierarchyTokenBucketClass]\nClassId=1:1\nRate=1M",
            (1, "nothing in this file makes 1:, on which this hangs: systemd-networkd waits for it"),
        ),
        (
            "[HierarchyTokenBucket]\nHandle=1\n[HierarchyTokenBucketClass]\nClassId=1:1",
            (3, "[HierarchyTokenBucketClass] without Rate=, so systemd-networkd leaves the section out"),
        ),
        ("[PFIFO]\nParent=1:", (2, "Parent=1: is not a parent, so systemd-networkd leaves the line out")),
        (
            "[PFIFO]\nParent=1:9",
            (1, "nothing in this file makes 1:9, on which this hangs: systemd-networkd waits for it"),
        ),
        ("[PFIFO]\nParent=clsact", (2, "Parent=clsact is read of [QDisc] alone")),
        ("[Cake]\nBandwidth=9M", (1, "[Cake] is no section, so systemd-networkd leaves it out")),
        (
            "[CAKE]\n[PIE]",
            (
                2,
                "another section makes something in the same place, or of the same number: \
                 only one of them can be there",
            ),
        ),
        ("Name=eth0\n[PIE]", (1, "it stands before any [Section], so systemd-networkd leaves the line out")),
        (
            "[Match]\nName=averyveryverylongname0\n[PIE]",
            (2, "Name=averyveryverylongname0 is no name of a device: it has at most 15 bytes, and no /"),
        ),
        (
            "[TrafficControlQueueingDiscipline]\nNetworkEmulatorDelaySec=50ms",
            (1, "[TrafficControlQueueingDiscipline] is of systemd 244, and is not read"),
        ),
        (
            "[PFIFO]\nPacketLimit 9",
            (2, "neither a [Section] nor KEY=VALUE, so systemd-networkd leaves the line out"),
        ),
    ] {
        assert_eq!(wrong(lines), [(expected.0, expected.1.to_owned())], "{lines}");
    }
}

/// The commands of a file, as words.
fn words_of(text: &str) -> Vec<Vec<String>> {
    read(text)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .commands
        .into_iter()
        .map(|one| one.words)
        .collect()
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let file = "[Match]\nName=eth0\n[HierarchyTokenBucket]\nHandle=1\nDefaultClass=20\nRateToQuantum=5\n\
                [HierarchyTokenBucketClass]\nParent=root\nClassId=1:1\nRate=9.5M\nCeilRate=10M\nBufferBytes=3000\n\
                [HierarchyTokenBucketClass]\nParent=1:1\nClassId=1:20\nRate=1M\nPriority=2\nQuantumBytes=2K\n\
                [NetworkEmulator]\nParent=1:20\nHandle=20\nDelayJitterSec=10ms\nLossRate=0.5%\nPacketLimit=9\n\
                [QDisc]\nParent=clsact\n";
    let first = words_of(file);
    let written = write(&first);
    assert!(written.left_out.is_empty(), "{:?}", written.left_out);
    assert_eq!(written.files.len(), 1);
    assert_eq!(words_of(&written.files[0].1), first);
    for row in SECTIONS.iter().filter(|row| matches!(row.makes, Makes::Qdisc(Some(_)))) {
        let lines: String =
            row.keys.iter().map(|key| format!("{}={}\n", key.name, key.value.sample())).collect();
        let first = words_of(&format!("[Match]\nName=eth0\n[{}]\nHandle=9\n{lines}", row.name));
        let written = write(&first);
        assert!(written.left_out.is_empty(), "{:?}", written.left_out);
        assert_eq!(words_of(&written.files[0].1), first, "{}", row.name);
    }
}

#[test]
fn commands_that_are_carried_out_one_after_another_leave_their_sections() {
    let of = |lines: &str| {
        let commands: Vec<Vec<String>> =
            lines.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        let NetworkdFiles { files, left_out } = write(&commands);
        (files.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("---\n"), left_out)
    };
    let lines = "qdisc add dev eth0 root pfifo limit 5\nqdisc del dev eth0 root\n\
                 qdisc add dev eth0 root handle 1: htb default 0x20\n\
                 class add dev eth0 parent 1: classid 1:1 htb rate 1mbit burst 5k\n\
                 class change dev eth0 parent 1: classid 1:1 htb rate 2mbit\n\
                 qdisc add dev eth0 parent 1:1 netem delay 5ms 1ms\n\
                 qdisc replace dev ifb0 root fq_codel limit 300 noecn drop_batch 3";
    let (text, left_out) = of(lines);
    let expected = "[Match]\nName=eth0\n\n[HierarchyTokenBucket]\nParent=root\nHandle=1\nDefaultClass=20\n\n\
                    [HierarchyTokenBucketClass]\nParent=root\nClassId=1:1\nRate=2M\nBufferBytes=5K\n\n\
                    [NetworkEmulator]\nParent=1:1\nDelaySec=5ms\nDelayJitterSec=1ms\n---\n\
                    [Match]\nName=ifb0\n\n[FairQueueingControlledDelay]\nParent=root\nPacketLimit=300\nECN=no\n";
    assert_eq!(text, expected);
    assert_eq!(left_out, ["[FairQueueingControlledDelay] has no key for it, of the root: drop_batch 3"]);
    let (text, _) =
        of("qdisc add dev eth0 root handle 1: drr\nclass add dev eth0 parent 1: classid 1:1 drr\n\
                        qdisc replace dev eth0 root pfifo limit 7");
    assert_eq!(text, "[Match]\nName=eth0\n\n[PFIFO]\nParent=root\nPacketLimit=7\n");
    // What a deletion or another kind takes with it goes, and what hangs on something left out is told.
    let tree = "qdisc add dev eth0 root handle 1: ets bands 2\nqdisc add dev eth0 parent 1:1 handle 2: drr\n\
                class add dev eth0 parent 2: classid 2:1 drr\n";
    let root = "[Match]\nName=eth0\n\n[EnhancedTransmissionSelection]\nParent=root\nHandle=1\nBands=2\n";
    for last in ["qdisc del dev eth0 parent 1:1", "qdisc replace dev eth0 parent 1:1 red limit 5"] {
        assert_eq!(of(&format!("{tree}{last}")).0, root, "{last}");
    }
    let (text, left_out) = of("qdisc add dev eth0 root handle 1: hfsc\nqdisc add dev eth0 parent 1:1 pfifo");
    assert_eq!((text.as_str(), left_out.len()), ("", 2));
    assert_eq!(left_out[1], "what it hangs on is left out: [PFIFO] of parent 1:1");
    // A name is a pattern there, and no terminal's sequence.
    for device in ["en*", "e\u{1b}[2J"] {
        let (text, left_out) = of(&format!("qdisc add dev {device} root pfifo"));
        assert!(
            text.is_empty() && left_out[0].starts_with("the device's name cannot be written"),
            "{device}"
        );
    }
    let (text, left_out) =
        of("filter add dev eth0 parent 1: matchall flowid 1:1\nqdisc add dev eth0 root red limit 5");
    assert_eq!(text, "");
    assert_eq!(
        left_out,
        [
            "systemd-networkd makes qdiscs and classes only: tc filter add dev eth0 parent 1: matchall flowid 1:1",
            "systemd-networkd has no section for it: tc qdisc add dev eth0 root red limit 5",
        ]
    );
}

#[test]
fn devices_are_those_that_match() {
    let of = |lines: &str| {
        let policy = read(&format!("[Match]\n{lines}\n[PIE]\nX-Note=5\n")).expect(lines);
        let notes = policy.notes.iter().map(|note| note.what.as_str()).collect::<Vec<_>>().join("; ");
        (policy.devices.join(" "), notes)
    };
    assert_eq!(of("Name=eth1\nName=\nName=eth0"), ("eth0".to_owned(), String::new()));
    let (devices, notes) = of("Name=!eth0 wlan0");
    assert!(devices == "eth0" && notes.contains("names those that it is not for"), "{devices}: {notes}");
    assert!(of("MACAddress=0:1:2:3:4:5").1.contains("stands for those that it fits"));
    assert!(of("").1.contains("asks for nothing, and systemd-networkd leaves such a file out"));
    assert_eq!(of("Name=en*").0, "en0");
}

/// What is never made waits for what is never made; no file multiplies without bound.
#[test]
fn circles_and_crowds_are_problems() {
    let class = |own: &str, parent: &str| {
        format!("[HierarchyTokenBucketClass]\nClassId={own}\nParent={parent}\nRate=1M\n")
    };
    let circle = format!("[HierarchyTokenBucket]\nHandle=1\n{}{}", class("1:1", "1:2"), class("1:2", "1:1"));
    let found = wrong(&circle);
    assert!(
        found.len() == 2 && found[0].1.ends_with("waits for something itself: it is never made"),
        "{found:?}"
    );
    let names = |count: usize| (0..count).map(|at| format!("d{at}")).collect::<Vec<_>>().join(" ");
    assert!(wrong(&format!("[Match]\nName={}\n[PIE]\n", names(65)))[0].1.contains("more than 64 devices"));
    let mut crowd = format!("[Match]\nName={}\n[HierarchyTokenBucket]\nHandle=1\n", names(64));
    (1..1000).for_each(|at| crowd += &class(&format!("1:{at:x}"), "root"));
    assert!(wrong(&crowd)[0].1.contains("more than 16384 qdiscs and classes on its 64 devices"));
    let mistakes = wrong(&format!("[CAKE]\n{}", "Bandwidt=9\n[CAKE]\n".repeat(5000)));
    assert!(mistakes.len() < 500, "{}", mistakes.len());
}
