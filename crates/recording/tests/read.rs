//! What is read of a recording: frames byte by byte (RFC 791, 768, 793, 792, 8200), lines of shell, draws.

use tidegate_packet::{LinuxVersion, RandomSource, Time};
use tidegate_recording::line::{Redirects, pieces, plain};
use tidegate_recording::{RandomError, RecordedLink, RecordedRandom, Recording, RowKind, Texts, at, ns};

const LINK: &str = "10000000 24 1500 1000";

fn texts<'t>(link: &'t str, schedule: &'t str) -> Texts<'t> {
    Texts { link, schedule, ..Texts::default() }
}

/// The packet of a row.
fn arrival(columns: &str, row: &str) -> tidegate_recording::RecordedArrival {
    let schedule = format!("{columns}\n{row}\n");
    let recording = Recording::parse(&texts(LINK, &schedule), 1).unwrap_or_else(|error| panic!("{error}"));
    match recording.rows.into_iter().next().expect("a row").what {
        RowKind::Packet(arrival) => *arrival,
        RowKind::Command(_) => panic!("a packet"),
    }
}

/// The ones' complement sum that a right checksum makes of bytes: all ones (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    (sum >> 16) + (sum & 0xffff)
}

const COLUMNS: &str =
    "time_ns,id,size,src,dst,proto,sport,dport,dsfield,mark,flow,flags,seq,ack,prio,payload";

#[test]
fn a_datagram_is_made_of_its_row() {
    let packet = arrival(COLUMNS, "0,66051,80,10.0.0.1,10.9.0.2,udp,1000,53,184,7,dns,,,,1:a,");
    let n = packet.head.network();
    assert_eq!(n.len(), 66);
    // Version and length, DS field, 66 bytes, the id's low half, DF, 64 hops, UDP.
    assert_eq!(n[..10], [0x45, 184, 0, 66, 0x02, 0x03, 0x40, 0, 64, 17]);
    assert_eq!(n[12..20], [10, 0, 0, 1, 10, 9, 0, 2]);
    // Ports, 46 bytes of UDP; the id at the very end.
    assert_eq!((&n[20..26], &n[62..]), (&[0x03, 0xe8, 0, 53, 0, 46][..], &66_051_u32.to_be_bytes()[..]));
    assert!(n[28..62].iter().all(|byte| *byte == 0));
    assert_eq!(sum(&n[..20]), 0xffff);
    // The pseudo header: addresses, protocol, length.
    assert_eq!(sum(&[&n[12..20], &[0, 17, 0, 46], &n[20..]].concat()) % 0xffff, 0);
    assert_eq!(packet.head.frame()[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    let meta = &packet.meta;
    assert_eq!((meta.frame_len, meta.len, meta.dsfield, meta.mark.0, meta.ident), (80, 80, 184, 7, 66_051));
    assert_eq!(
        (meta.priority, meta.ethertype, meta.rewritten(), packet.flow.as_str()),
        (0x0001_000a, 0x0800, false, "dns")
    );
}

#[test]
fn each_protocol_has_its_header() {
    let of = |row: &str| arrival(COLUMNS, row).head.network().to_vec();
    // TCP: ports, sequence and acknowledgement numbers, five words, flags (ACK by default), window 65535.
    let header = |flags: u8| [0, 9, 0, 80, 0, 0, 0, 5, 0, 0, 1, 0, 0x50, flags, 0xff, 0xff];
    let flags = [
        ("", 0x10),
        ("S", 2),
        ("SA", 0x12),
        ("FPU", 0x29),
        ("R", 4),
        ("EC", 0xc0),
        ("P", 8),
        ("A", 16),
        ("U", 32),
        ("E", 64),
        ("C", 128),
        ("F", 1),
    ];
    for (output, wanted) in flags {
        let n = of(&format!("0,1,80,10.0.0.1,10.9.0.2,tcp,9,80,0,0,,{output},5,256,,"));
        assert_eq!((n[9], &n[20..36]), (6, &header(wanted)[..]), "{output}");
        assert_eq!(sum(&[&n[12..20], &[0, 6, 0, 46], &n[20..]].concat()) % 0xffff, 0, "{output}");
    }
    // An echo request: type 8 (RFC 792) or 128 (RFC 4443), the identifier in the port's place, the sequence
    // number is the id.
    let n = of("0,258,80,10.0.0.1,10.9.0.2,icmp,9,0,0,0,,,,,,");
    assert_eq!((n[9], &n[20..22], &n[24..28], sum(&n[20..])), (1, &[8, 0][..], &[0, 9, 1, 2][..], 0xffff));
    let n = of("0,258,80,fd00::1,fd00::2,icmp6,9,0,0,0,,,,,,");
    assert_eq!((n[6], &n[40..42], &n[44..48]), (58, &[128, 0][..], &[0, 9, 1, 2][..]));
    // IPv6: the DS field across two bytes, 26 bytes of payload, 64 hops.
    let n = of("0,1,80,fd00::1,fd00::2,udp,9,53,184,0,,,,,,");
    assert_eq!((&n[..8], &n[40..46]), (&[0x6b, 0x80, 0, 0, 0, 26, 17, 64][..], &[0, 9, 0, 53, 0, 26][..]));
    assert_eq!((n[23], n[39], n.len()), (1, 2, 66));
    // Another protocol has no header of its own.
    let n = of("0,1,80,10.0.0.1,10.9.0.2,89,9,80,0,0,,,,,,");
    assert_eq!((n[9], &n[20..62], sum(&n[..20])), (89, &[0; 42][..], 0xffff));
    assert_eq!(of("0,1,80,fd00::1,fd00::2,icmpv6,9,0,0,0,,,,,,")[6], 58);
}

/// Bytes that are given stay as they are: nothing is summed, and no id is at the end.
#[test]
fn given_octets_stay() {
    let packet = arrival(COLUMNS, "0,7,80,10.0.0.1,10.9.0.2,udp,1,2,0,0,,,,,,000100020010abcd");
    let n = packet.head.network();
    assert_eq!((&n[20..28], &n[28..]), (&[0, 1, 0, 2, 0, 16, 0xab, 0xcd][..], &[0; 38][..]));
    assert!(packet.meta.rewritten(), "its checksum is wrong");
    let right = arrival(COLUMNS, "0,7,80,10.0.0.1,10.9.0.2,udp,1,2,0,0,,,,,,0001000200100000");
    assert!(!right.meta.rewritten(), "a datagram without a checksum is right (RFC 768)");
}

#[test]
fn missing_fields_are_zero() {
    let packet = arrival("time_ns,id,size,src,dst,proto,sport,dport", "0,7,42,10.0.0.1,10.9.0.2,udp,1,2");
    assert_eq!((packet.meta.dsfield, packet.meta.mark.0, packet.meta.priority), (0, 0, 0));
    assert_eq!(packet.flow, "udp 10.0.0.1:1");
    // 28 bytes have no space for an id behind the header, 32 have.
    assert_eq!(packet.head.network()[24..26], [0, 8]);
    let packet = arrival("time_ns,id,size,src,dst,proto,sport,dport", "0,7,46,10.0.0.1,10.9.0.2,udp,1,2");
    assert_eq!(
        (&packet.head.network()[24..26], &packet.head.network()[28..]),
        (&[0, 12][..], &[0, 0, 0, 7][..])
    );
    for (output, wanted) in [("", 0), ("6", 6), ("1:", 0x1_0000), (":2", 2), ("ffff:10", 0xffff_0010)] {
        let packet = arrival(COLUMNS, &format!("0,1,80,10.0.0.1,10.9.0.2,udp,1,2,0,0,,,,,{output},"));
        assert_eq!(packet.meta.priority, wanted, "{output}");
    }
}

#[test]
fn rows_happen_in_the_order_of_the_file() {
    let schedule =
        "time_ns,id,size,src,dst,proto\n5,1,80,10.0.0.1,10.0.0.2,udp\n3,!,tc qdisc show\n\n9,!,true\n";
    let recording = Recording::parse(&texts("8000000 0 1500 100 forward", schedule), 1).expect("it is right");
    assert_eq!(recording.rows.iter().map(|row| row.time).collect::<Vec<_>>(), [5, 5, 9]);
    assert!(matches!(&recording.rows[1].what, RowKind::Command(line) if line == "tc qdisc show"));
    let wanted = RecordedLink {
        rate: 8_000_000,
        overhead: 0,
        mtu: 1500,
        tx_queue_len: 100,
        forward: true,
        linux: LinuxVersion::V6_1,
    };
    assert_eq!((recording.link, recording.has_frames, recording.random.made_up()), (wanted, false, true));
    // 1000 bytes and 24 beside at 8 Mbit/s take 1024 µs.
    assert_eq!(RecordedLink { overhead: 24, ..wanted }.frame_time(1000), 1_024_000);
    // The recording's zero is 128 s after the machine's start.
    assert_eq!((at(5), ns(Time(128_000_000_007)), ns(at(-3))), (Time(128_000_000_005), 7, -3));
}

#[test]
fn unreadable_lines_are_reported_with_their_place() {
    let output_of = |link: &str, rows: &str| {
        let schedule = format!("time_ns,id,size,src,dst,proto,prio,payload\n{rows}");
        Recording::parse(&texts(link, &schedule), 1).err().map_or_else(String::new, |error| error.to_string())
    };
    let table = [
        ("1 2 3", "", "link: expected `rate overhead mtu txqueuelen [forward]`, found `1 2 3`"),
        ("x 0 1 1", "", "link: rate `x`: invalid digit found in string"),
        (LINK, "nothing", "schedule.csv:2: `nothing`: no comma"),
        (LINK, "x,1", "schedule.csv:2: `x,1`: time `x`: invalid digit found in string"),
        (
            LINK,
            "0,1,80,10.0.0.1,fd00::1,udp",
            "schedule.csv:2: `0,1,80,10.0.0.1,fd00::1,udp`: src and dst are of different families",
        ),
        (LINK, "0,1,80,,,udp", "schedule.csv:2: `0,1,80,,,udp`: src ``: invalid IP address syntax"),
        (
            LINK,
            "0,1,80,10.0.0.1,10.0.0.2,udp,,abc",
            "schedule.csv:2: `0,1,80,10.0.0.1,10.0.0.2,udp,,abc`: payload `abc` is not pairs of hexadecimal \
            digits",
        ),
    ];
    for (link, rows, wanted) in table {
        assert_eq!(output_of(link, rows), wanted);
    }
    assert_eq!(
        Recording::parse(&texts(LINK, ""), 1).err().map(|e| e.to_string()).as_deref(),
        Some("schedule.csv is empty")
    );
}

#[test]
fn draws_are_taken_in_their_order() {
    let text =
        "time_ns,width,value,where\n0,32,7,fq\n1,16,8,x\n2,64,9,x\n3,0,10,x\n\n4,65,11,sfq_perturbation\n";
    let mut draws = RecordedRandom::parse(text, 128).expect("it is right");
    assert_eq!((draws.u32(), draws.u16(), draws.u64()), (7, 8, 9));
    assert_eq!((draws.next_by_timer(), draws.made_up()), (None, false));
    assert_eq!((draws.below(5), draws.next_by_timer()), (10, Some(Time(132))));
    assert_eq!(draws.check(), Err(RandomError::Left { left: 1, of: 5 }));
    assert_eq!((draws.word(), draws.check()), (11, Ok(())));
    assert_eq!((draws.u32(), draws.u16()), (0, 0));
    assert_eq!(draws.check(), Err(RandomError::None { requested: 32, of: 5 }), "the first trouble stays");
    let mut draws = RecordedRandom::parse(text, 0).expect("it is right");
    assert_eq!((draws.u64(), draws.u64()), (7, 8));
    assert_eq!(draws.check(), Err(RandomError::Width { number: 1, recorded: 32, requested: 64 }));
    let output = RecordedRandom::parse("head\n1,2\n", 0).expect_err("a field is missing").to_string();
    assert_eq!(output, "draws.csv:2: `1,2`: a field is missing");
}

#[test]
fn unrecorded_draws_come_from_the_seed() {
    let (mut ours, mut seeded) = (RecordedRandom::from_seed(9), tidegate_packet::Seeded::new(9));
    let made = (ours.word(), ours.u32(), ours.u16(), ours.u64(), ours.below(1000));
    assert_eq!(made, (seeded.word(), seeded.u32(), seeded.u16(), seeded.u64(), seeded.below(1000)));
    assert_eq!((ours.check(), ours.made_up()), (Ok(()), true));
}

/// As a POSIX shell reads them; what needs one is not read.
#[test]
fn lines_are_words_and_where_their_output_goes() {
    let out = |empties| Redirects { out: Some(empties), errors: false };
    let none = Redirects::default();
    let both = Redirects { out: Some(false), errors: true };
    type Read = Option<(&'static [&'static str], Redirects)>;
    let table: [(&str, Read); 24] = [
        ("tc  qdisc show", Some((&["tc", "qdisc", "show"], none))),
        ("echo 'a b' \"c;d\" e\"f\"g", Some((&["echo", "a b", "c;d", "efg"], none))),
        ("echo '' x", Some((&["echo", "", "x"], none))),
        ("echo a#b # not this", Some((&["echo", "a#b"], none))),
        ("echo $? \"$?\" '$?'", Some((&["echo", "3", "3", "$?"], none))),
        ("tc -s show > f", Some((&["tc", "-s", "show"], out(true)))),
        ("tc -s show >f", Some((&["tc", "-s", "show"], out(true)))),
        ("tc -s show >> f 2>&1", Some((&["tc", "-s", "show"], both))),
        ("tc show > /dev/null", Some((&["tc", "show"], none))),
        ("echo '>' \"2>&1\"", Some((&["echo", ">", "2>&1"], none))),
        ("echo '|' '*' '<'", Some((&["echo", "|", "*", "<"], none))),
        ("a=b tc show", None),
        ("echo a=b", Some((&["echo", "a=b"], none))),
        ("tc show | wc", None),
        ("echo $HOME", None),
        ("echo \"$HOME\"", None),
        ("echo `id`", None),
        ("echo \\a", None),
        ("(tc)", None),
        ("echo *", None),
        ("echo ~", None),
        ("cat < f", None),
        ("tc show &", None),
        ("tc show 2> f", None),
    ];
    for (line, wanted) in table {
        let piece = pieces(line).expect("quotes are closed").remove(0);
        let wanted =
            wanted.map(|(words, to)| Some((words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>(), to)));
        assert_eq!(plain(&piece, 3), wanted, "{line}");
    }
    assert_eq!(
        ["a; b", "a;b;", "'a;b'", "# a", ""].map(|line| pieces(line).map(|p| p.len())),
        [Some(2), Some(3), Some(1), Some(1), Some(1)]
    );
    assert_eq!((pieces("echo 'a"), pieces("echo \"a'")), (None, None));
    assert_eq!(
        ["", "  ", "# a"].map(|line| plain(&pieces(line).expect("closed")[0], 0)),
        [Some(None), Some(None), Some(None)]
    );
    assert_eq!(
        ["tc >", "echo $", "{ a"].map(|line| plain(&pieces(line).expect("closed")[0], 0)),
        [None, None, None]
    );
}
