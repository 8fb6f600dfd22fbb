//! Files of every kind that there is: read whole, cut at every byte, and damaged.

use tidegate_pcap::{
    Broken, CaptureDirection, CapturedPacket, Cause, Interface, Next, Parser, Record, TcVerdict, Writer, link,
};

/// What is reported of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReadPacket {
    time: Option<u64>,
    link: u16,
    bytes: Vec<u8>,
    length: u32,
    direction: Option<CaptureDirection>,
    interface: u32,
}

fn read_packet(packet: CapturedPacket<'_>) -> ReadPacket {
    let CapturedPacket { time, link, bytes, length, direction, interface, .. } = packet;
    ReadPacket { time, link, bytes: bytes.to_vec(), length, direction, interface }
}

/// Reads a file as one that is shown bytes only as it requests them, and checks that it never requests what
/// it has.
fn read(file: &[u8]) -> (Vec<ReadPacket>, Result<(), Broken>) {
    let (mut parser, mut at, mut shown, mut packets) = (Parser::new(), 0, 0, Vec::new());
    loop {
        match parser.next(&file[at..at + shown]) {
            Ok(Next::Packet(used, packet)) => {
                packets.push(read_packet(packet));
                assert_eq!(packet.number, packets.len() as u64);
                (at, shown) = (at + used, shown - used);
            }
            Ok(Next::Passed(used)) => (at, shown) = (at + used, shown - used),
            Ok(Next::Needs(bytes)) => {
                assert!(bytes > shown, "it asks for {bytes} and has {shown}");
                if at + bytes > file.len() {
                    return (packets, parser.end(file.len() - at));
                }
                shown = bytes;
            }
            Err(broken) => return (packets, Err(broken)),
        }
    }
}

/// Words in a byte order.
struct Maker {
    big: bool,
    out: Vec<u8>,
}

impl Maker {
    fn word(&mut self, value: u32) {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }
    fn half(&mut self, value: u16) {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Maker)) {
        let mut inner = Maker { big: self.big, out: Vec::new() };
        body(&mut inner);
        inner.out.resize(inner.out.len().next_multiple_of(4), 0);
        let length = inner.out.len() as u32 + 12;
        self.word(kind);
        self.word(length);
        self.out.extend(inner.out);
        self.word(length);
    }
    fn option(&mut self, code: u16, value: &[u8]) {
        self.half(code);
        self.half(value.len() as u16);
        self.out.extend(value);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
    }
}

fn old(big: bool, magic: u32, link: u32, packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
    let mut maker = Maker { big, out: Vec::new() };
    maker.word(magic);
    maker.half(2);
    maker.half(4);
    for word in [0, 0, 96, link] {
        maker.word(word);
    }
    for (seconds, part, bytes, length) in packets {
        for word in [*seconds, *part, bytes.len() as u32, *length] {
            maker.word(word);
        }
        maker.out.extend(*bytes);
    }
    maker.out
}

/// Two sections' worth of blocks: interfaces with clocks of their own, all kinds of packets, blocks that
/// no one knows.
fn new(big: bool) -> Vec<u8> {
    let mut maker = Maker { big, out: Vec::new() };
    maker.block(0x0a0d_0d0a, |b| {
        b.word(0x1a2b_3c4d);
        b.half(1);
        b.half(0);
        b.word(u32::MAX);
        b.word(u32::MAX);
    });
    // Microseconds; then milliseconds, an hour ahead; then 1/1024 s.
    maker.block(1, |b| {
        b.half(link::ETHERNET);
        b.half(0);
        b.word(4);
    });
    let hour: i64 = 3600;
    maker.block(1, |b| {
        b.half(link::RAW);
        b.half(0);
        b.word(0);
        b.option(9, &[3]);
        b.option(14, &if b.big { hour.to_be_bytes() } else { hour.to_le_bytes() });
        b.option(0, &[]);
    });
    maker.block(1, |b| {
        b.half(link::SLL);
        b.half(0);
        b.word(0);
        b.option(9, &[0x80 | 10]);
    });
    for (interface, ticks, bytes, flags) in
        [(0, 1_500_000_u64, &b"abcd"[..], 2_u32), (1, 1_001, b"xyz", 1), (2, 512, b"", 0)]
    {
        maker.block(6, |b| {
            b.word(interface);
            b.word((ticks >> 32) as u32);
            b.word(ticks as u32);
            b.word(bytes.len() as u32);
            b.word(60);
            b.out.extend(bytes);
            b.out.resize(b.out.len().next_multiple_of(4), 0);
            let flags = if b.big { flags.to_be_bytes() } else { flags.to_le_bytes() };
            b.option(1, b"said");
            b.option(2, &flags);
            b.option(0, &[]);
        });
    }
    maker.block(0x0bad_cafe, |b| b.word(7));
    maker.block(3, |b| {
        b.word(9);
        b.out.extend(b"four");
    });
    maker.block(2, |b| {
        b.half(1);
        b.half(3);
        b.word(0);
        b.word(5);
        b.word(2);
        b.word(2);
        b.out.extend(b"ok");
    });
    maker.out
}

fn of(
    time: u64,
    link: u16,
    bytes: &[u8],
    length: u32,
    direction: Option<CaptureDirection>,
    interface: u32,
) -> ReadPacket {
    ReadPacket { time: Some(time), link, bytes: bytes.to_vec(), length, direction, interface }
}

#[test]
fn the_four_kinds_of_pcap() {
    for (big, magic, unit) in [
        (true, 0xa1b2_c3d4, 1000),
        (false, 0xa1b2_c3d4, 1000),
        (true, 0xa1b2_3c4d, 1),
        (false, 0xa1b2_3c4d, 1),
    ] {
        // The highest bits give the length of a check sequence behind each frame.
        let file =
            old(big, magic, 0x2400_0000 | u32::from(link::RAW), &[(7, 5, b"one", 3), (8, 0, b"", 1500)]);
        let (packets, end) = read(&file);
        assert_eq!(end, Ok(()));
        assert_eq!(
            packets,
            [
                of(7_000_000_000 + 5 * unit, link::RAW, b"one", 3, None, 0),
                of(8_000_000_000, link::RAW, b"", 1500, None, 0)
            ]
        );
    }
}

#[test]
fn pcapng_in_both_byte_orders_and_several_sections() {
    let whole = [
        of(1_500_000_000, link::ETHERNET, b"abcd", 60, Some(CaptureDirection::Out), 0),
        of(3_601_001_000_000, link::RAW, b"xyz", 60, Some(CaptureDirection::In), 1),
        of(500_000_000, link::SLL, b"", 60, None, 2),
        ReadPacket { time: None, ..of(0, link::ETHERNET, b"four", 9, None, 0) },
        of(3_600_005_000_000, link::RAW, b"ok", 2, None, 1),
    ];
    let (packets, end) = read(&[new(true), new(false)].concat());
    assert_eq!(end, Ok(()));
    assert_eq!(packets, [&whole[..], &whole[..]].concat());
}

#[test]
fn what_is_written_is_read() {
    let mut writer = Writer::new("a test");
    writer.interface(Interface { name: "eth0", description: "what leaves", link: link::ETHERNET });
    let record = Record {
        time: 1 << 60 | 17,
        bytes: b"frame",
        length: 1514,
        direction: Some(CaptureDirection::Out),
        dropped_before: Some(3),
        id: Some(9),
        queue: Some(0x0001_0020),
        verdict: Some(TcVerdict::Dropped),
        comment: "class 1:20, dropped: full",
        ..Record::default()
    };
    writer.packet(&record);
    let mut file = writer.take();
    writer.packet(&Record { comment: "", ..Record::default() });
    file.extend(writer.take());
    let (packets, end) = read(&file);
    assert_eq!(end, Ok(()));
    assert_eq!(
        packets,
        [of(1 << 60 | 17, 1, b"frame", 1514, Some(CaptureDirection::Out), 0), of(0, 1, b"", 0, None, 0)]
    );
    assert!(file.windows(25).any(|part| part == b"class 1:20, dropped: full"));
}

#[test]
fn files_cut_at_every_byte_give_what_came_before_and_the_place() {
    let files =
        [old(false, 0xa1b2_c3d4, 1, &[(1, 1, b"abc", 3), (2, 2, b"defgh", 60)]), new(false), new(true)];
    for file in files {
        let (all, _) = read(&file);
        let mut before = 0;
        for cut in 0..file.len() {
            let (packets, end) = read(&file[..cut]);
            assert_eq!(packets[..], all[..packets.len()], "cut at {cut}");
            assert!(packets.len() >= before, "more bytes, no fewer packets");
            before = packets.len();
            match end {
                // It ends where a block does.
                Ok(()) => {}
                Err(broken) => {
                    assert!(
                        broken.offset <= cut as u64 && broken.packets == packets.len() as u64,
                        "{broken:?}"
                    );
                    assert!(matches!(broken.cause, Cause::CutShort { .. } | Cause::Unknown), "{broken:?}");
                }
            }
        }
    }
}

#[test]
fn damage_is_reported_with_its_place() {
    let whole = new(false);
    let at = |byte: usize, value: u32| {
        let mut file = whole.clone();
        file[byte..byte + 4].copy_from_slice(&value.to_le_bytes());
        read(&file).1.expect_err("damaged").to_string()
    };
    let pcap = |value: u32| {
        let mut file = old(false, 0xa1b2_c3d4, 1, &[(1, 1, b"abc", 3)]);
        file[32..36].copy_from_slice(&value.to_le_bytes());
        read(&file).1.expect_err("damaged").to_string()
    };
    let table = [
        (at(0, 7), "is not a recording, neither pcap nor pcapng; write one with `tcpdump -w FILE`"),
        (at(8, 5), "the file's header: it says its byte order as 0x05000000"),
        (at(12, 9), "the file's header: its format is of version 9, which is not known"),
        (at(32, 21), "block 2, at byte 28: it claims to be 21 bytes long, which cannot be"),
        (at(32, u32::MAX - 3), "block 2, at byte 28: it claims to be 4294967292 bytes long, which cannot be"),
        (at(44, 24), "block 2, at byte 28: its length is 20 bytes at its beginning and 24 at its end"),
        (pcap(999_999), "block 1, at byte 24: it claims to hold 999999 bytes of the packet"),
    ];
    for (output, wanted) in table {
        assert_eq!(output, wanted);
    }
    assert_eq!(read(b"tc qdisc add").1.map_err(|broken| broken.cause), Err(Cause::Unknown));
    assert_eq!(read(b"").1.map_err(|broken| broken.cause), Err(Cause::Unknown));
}

#[test]
fn any_byte_may_be_wrong() {
    let mut state = 1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for file in [new(true), new(false), old(true, 0xa1b2_3c4d, 1, &[(1, 1, b"abc", 3), (2, 2, b"defgh", 60)])]
    {
        for _ in 0..20_000 {
            let mut damaged = file.clone();
            for _ in 0..1 + random() % 4 {
                let at = random() as usize % damaged.len();
                damaged[at] = random() as u8;
            }
            let (packets, _) = read(&damaged);
            assert!(packets.len() <= file.len());
        }
    }
}
