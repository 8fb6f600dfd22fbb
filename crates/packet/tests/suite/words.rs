//! Vectors: units, random streams, hashes, fields and checksums of headers.

use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{
    Fifo, FwMark, Handle, Head, Jiffies, Meta, Nanos, Pool, RandomSource, Rate, RedirectedTo, Scratch,
    Seeded, Time, jenkins,
};

#[test]
fn units() {
    assert_eq!(
        [Nanos::secs(2), Nanos::millis(2), Nanos::micros(2)],
        [Nanos(2_000_000_000), Nanos(2_000_000), Nanos(2_000)]
    );
    assert_eq!(Nanos::millis(1500).as_secs_f64(), 1.5);
    assert_eq!((Rate::bits(1_000_007).0, Rate(125).as_bits()), (125_000, 1000));
    let class = Handle::new(0x12, 0x34);
    assert_eq!((class.0, class.major(), class.minor()), (0x0012_0034, 0x12, 0x34));
    assert_eq!((class.qdisc(), class.class(0x56)), (Handle(0x0012_0000), Handle(0x0012_0056)));
    assert!(!class.is_none() && Handle::NONE.is_none());
    let lines =
        [Handle::ROOT, Handle::NONE, Handle(5), Handle::new(0x1a, 0), class].map(|handle| handle.to_string());
    assert_eq!(lines, ["root", "none", ":5", "1a:", "12:34"]);
    // 1 µs is 1000 / 1024 of CoDel's units, 15 of psched's ticks.
    assert_eq!((Time(1_024_000).codel(), Time(64_000).psched()), (1000, 1000));
    assert_eq!((Time(9) - Time(4), Time(4) - Time(9), Time(9) - Nanos(4)), (Nanos(5), Nanos(0), Time(5)));
    assert_eq!(FwMark(7).0, 7);
}

/// The counter begins 300 seconds before zero; lengths of time are rounded up to whole ticks.
#[test]
fn jiffies() {
    let slow = Jiffies { hz: 250 };
    assert_eq!(
        [0, 3_999_999, 4_000_000, 300_000_000_000].map(|at| slow.at(Time(at))),
        [-75_000, -75_000, -74_999, 0]
    );
    assert_eq!([0, 1, 4, 5, 1000].map(|ms| slow.of_millis(ms)), [0, 1, 1, 2, 250]);
    assert_eq!([0, 1, 4000, 4001].map(|us| slow.of_micros(us)), [0, 1, 1, 2]);
    assert_eq!((slow.micros(3), slow.time(-74_999), slow.time(-80_000)), (12_000, Time(4_000_000), Time(0)));
}

/// SplitMix64 as published (Steele, Lea and Flood 2014; Vigna's reference program), and how draws are cut
/// from it.
#[test]
fn seeded_streams_are_splitmix64() {
    let words = |seed: u64| -> [u64; 3] {
        let mut stream = Seeded::new(seed);
        std::array::from_fn(|_| stream.next())
    };
    assert_eq!(words(0), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    assert_eq!(words(1_234_567), [0x599e_d017_fb08_fc85, 0x2c73_f084_5854_0fa5, 0x883e_bce5_a3f2_7c77]);
    let draw = |of: fn(&mut Seeded) -> u64| of(&mut Seeded::new(0));
    assert_eq!(draw(|s| s.word()), 0xe220_a839_7b1d_cdaf);
    assert_eq!(draw(|s| s.u64()), 0xe220_a839_7b1d_cdaf);
    assert_eq!(draw(|s| s.u32().into()), 0xe220_a839);
    assert_eq!(draw(|s| s.u16().into()), 0xe220);
    // 0xe220a839 / 2^32 of 100.
    assert_eq!((draw(|s| s.below(100).into()), draw(|s| s.below(0).into())), (88, 0));
    let (first, second) = (Seeded::new(0).key().0, Seeded::new(0).key().1);
    assert_eq!((first, second), (0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4));
    assert!((0.883..0.884).contains(&Seeded::new(0).unit()), "the same as a share of 1");
    assert_ne!(Seeded::new(0).fork(1).next(), Seeded::new(0).fork(2).next());
}

/// Jenkins' lookup3 of words (its published vectors hold for the program that computed these), without and
/// with a seed.
#[test]
fn jenkins_of_words() {
    let words = [1, 2, 3, 4, 5, 6, 7];
    let hashes = |seed: u32| [1, 2, 3, 4, 5, 6, 7].map(|count| jenkins(&words[..count], seed));
    assert_eq!(
        hashes(0),
        [0x72a8_2a9b, 0x8b4c_7979, 0xa461_58f5, 0x6649_1246, 0x6291_29c0, 0xe3e3_6b25, 0x3e60_6a2c]
    );
    assert_eq!(
        hashes(99),
        [0x76c2_99bb, 0x89aa_a7ab, 0x3181_a1a7, 0x9b45_d676, 0xa1c4_907e, 0xbff5_4388, 0x9efd_bfae]
    );
}

/// An IPv4 packet: addresses, protocol, bytes behind the header.
fn v4(from: [u8; 4], to: [u8; 4], protocol: u8, dsfield: u8, behind: &[u8]) -> Head {
    let mut p = vec![0x45, dsfield];
    p.extend((20 + behind.len() as u16).to_be_bytes());
    p.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    p.extend(from);
    p.extend(to);
    p.extend(behind);
    Head::from_network(ethertype::IPV4, &p)
}

fn ports(source: u16, destination: u16) -> Vec<u8> {
    let mut t = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    t.extend([0; 16]);
    t
}

/// As a recorded Linux 6.1 hashed them, with the key zero.
#[test]
fn flow_hashes_are_those_of_linux() {
    type Row = ([u8; 4], [u8; 4], u8, u16, u16, u32);
    let rows: [Row; 12] = [
        ([10, 0, 0, 1], [10, 9, 0, 1], 17, 53, 1024, 1_123_020_195),
        ([10, 0, 0, 2], [10, 9, 0, 1], 17, 1024, 53, 1_395_079_656),
        ([10, 0, 0, 3], [10, 9, 0, 2], 6, 443, 40_000, 1_683_923_832),
        ([10, 0, 1, 1], [10, 9, 0, 2], 6, 40_000, 443, 2_081_245_529),
        ([10, 0, 1, 2], [192, 168, 7, 9], 6, 22, 22, 3_908_146_479),
        ([10, 0, 1, 3], [192, 168, 7, 9], 6, 5000, 80, 1_478_641_460),
        ([10, 0, 0, 255], [10, 255, 255, 255], 17, 68, 67, 4_125_823_870),
        ([10, 0, 0, 1], [10, 9, 0, 1], 89, 0, 0, 1_109_859_782),
        ([10, 0, 0, 9], [10, 9, 0, 1], 17, 4500, 4500, 2_295_270_932),
        ([10, 0, 0, 1], [10, 9, 0, 1], 6, 1, 65_535, 1_238_664_286),
        ([10, 0, 2, 2], [255, 255, 255, 255], 17, 9, 9, 2_121_552_862),
        ([203, 0, 113, 5], [198, 51, 100, 200], 17, 60_000, 60_001, 336_809_396),
    ];
    let mut pool = Pool::new(1);
    for (from, to, protocol, source, destination, wanted) in rows {
        let head = v4(from, to, protocol, 0, &ports(source, destination));
        let pkt = pool.insert(Meta::of(&head, 60), head).expect("the pool has room");
        assert_eq!(pool.hash(&pkt), wanted, "{from:?} > {to:?}");
        pool.release(pkt);
    }
}

/// The same datagram with a tag of VLAN 5 in its bytes, and in GRE: as a recorded kernel hashed them, and by
/// what the flags of GRE (RFC 2890) leave before the packet inside.
#[test]
fn keys_behind_tags_and_tunnels() {
    let mut pool = Pool::new(1);
    let mut hash = |head: Head| {
        let pkt = pool.insert(Meta::of(&head, 100), head).expect("the pool has room");
        let hash = pool.hash(&pkt);
        pool.release(pkt);
        hash
    };
    let plain = v4([10, 0, 0, 1], [10, 9, 0, 1], 17, 0, &ports(1000, 2000));
    let mut tagged = vec![0, 5, 8, 0];
    tagged.extend(plain.network());
    let tagged = Head::from_network(ethertype::VLAN, &tagged);
    assert_eq!((hash(plain.clone()), hash(tagged)), (4_029_525_671, 3_513_174_969));
    // Keys behind GRE's own header: none, a checksum, a sequence number; what cannot be read is not followed.
    let gre = |flags: u16, options: usize| {
        let mut t = [flags.to_be_bytes(), [8, 0]].concat();
        t.resize(4 + options, 0);
        t.extend(plain.network());
        v4([1, 1, 1, 1], [2, 2, 2, 2], proto::GRE, 0, &t)
    };
    let inside = hash(gre(0, 0));
    assert_eq!([hash(gre(0x8000, 4)), hash(gre(0x1000, 4)), hash(gre(0x9000, 8))], [inside; 3]);
    assert_ne!(inside, hash(gre(0x4000, 4)), "routing is not followed");
    assert_ne!(inside, hash(gre(0x0001, 0)), "nor is another version");
}

/// Slots keep what is known of their packets: the newest and oldest of a queue, and watched packets when they
/// leave.
#[test]
fn slots() {
    let head = v4([1; 4], [2; 4], 17, 0, &ports(1, 2));
    let mut pool = Pool::new(3);
    let mut fifo = Fifo::default();
    assert_eq!((fifo.front_slot(), fifo.back_slot()), (None, None));
    let slots = [false, true, false].map(|watched| {
        let mut meta = Meta::of(&head, 60);
        meta.watched = watched;
        let pkt = pool.insert(meta, head.clone()).expect("the pool has room");
        let slot = pkt.slot();
        fifo.push_back(&mut pool, pkt);
        slot
    });
    assert_eq!((fifo.front_slot(), fifo.back_slot()), (Some(slots[0]), Some(slots[2])));
    assert_eq!((fifo.slots(&pool).collect::<Vec<_>>(), fifo.len(), fifo.bytes()), (slots.to_vec(), 3, 180));
    while let Some(pkt) = fifo.pop_front(&mut pool) {
        pool.release(pkt);
    }
    assert_eq!((pool.take_released(), pool.take_released(), pool.live()), (Some(slots[1]), None, 0));
}

/// On another machine only its bytes are known, and whether they were rewritten against their checksums.
#[test]
fn arriving_anew() {
    let head = v4([1; 4], [2; 4], 17, 0xb8, &ports(1, 2));
    let mut pool = Pool::new(1);
    let mut meta = Meta::of(&head, 60);
    (meta.mark, meta.priority, meta.ident) = (FwMark(7), 3, 9);
    meta.set_rewritten(true);
    meta.set_tx_queue(Some(2));
    let pkt = pool.insert(meta, head).expect("the pool has room");
    assert!(pool.meta_mut(&pkt).ecn() == 0);
    pool.meta_mut(&pkt).dsfield = 0x20;
    pool.reset_for_next_machine(&pkt);
    let meta = pool.meta(&pkt);
    assert_eq!(
        (meta.mark, meta.priority, meta.ident, meta.dsfield, meta.frame_len),
        (FwMark(0), 0, 9, 0x20, 60)
    );
    assert_eq!((meta.rewritten(), meta.tx_queue(), pool.head(&pkt).dsfield()), (true, None, 0x20));
    pool.release(pkt);
}

#[test]
fn notes_about_a_packet() {
    let mut meta = Meta::of(&v4([1; 4], [2; 4], 17, 0b1011_1001, &[]), 60);
    assert_eq!((meta.dsfield, meta.ecn(), meta.len, meta.frame_len), (0xb9, 1, 60, 60));
    assert!(meta.set_ce() && meta.ecn() == 3 && meta.set_ce());
    let mut incapable = Meta::of(&v4([1; 4], [2; 4], 17, 0xb8, &[]), 60);
    assert!(!incapable.set_ce() && incapable.dsfield == 0xb8);
    meta.set_rewritten(true);
    meta.set_tx_queue(Some(126));
    assert_eq!((meta.rewritten(), meta.tx_queue()), (true, Some(126)));
    meta.set_tx_queue(Some(Meta::TX_QUEUES));
    meta.set_rewritten(false);
    assert_eq!((meta.rewritten(), meta.tx_queue()), (false, Some(126)), "there is no such queue");
    meta.set_tx_queue(None);
    assert_eq!(meta.tx_queue(), None);
    assert_eq!(RedirectedTo::NOWHERE.place(), None);
    for place in [(0, false), (0, true), (16_383, true), (9, false)] {
        assert_eq!(RedirectedTo::at(place.0, place.1).place(), Some(place));
    }
    let mut scratch = Scratch::default();
    scratch.set(1, 2);
    scratch.set_first(7);
    assert_eq!((scratch.first(), scratch.second(), scratch.0), (7, 2, 0x2_0000_0007));
}

#[test]
fn tags_go_on_and_off() {
    let mut head = v4([1; 4], [2; 4], 17, 0xb8, &ports(1, 2));
    assert_eq!((head.frame_dsfield(), head.tags().len()), (0xb8, 0));
    assert!(head.push_tag(ethertype::VLAN, 5) && head.push_tag(ethertype::QINQ, 7));
    assert_eq!(head.tags(), [(ethertype::QINQ, 7), (ethertype::VLAN, 5)]);
    assert_eq!(&head.on_wire().frame()[12..22], [0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0]);
    // The outermost is beside the packet, the next in front of the network header.
    let words = [0, -2, -4, -6, -18, -20, -22].map(|at| head.word(at));
    let frame = [0x45b8_0028, 0x0800_45b8, 0x0005_0800, 0x8100_0005, 0, 0];
    assert_eq!(words[..6], frame.map(Some));
    assert_eq!(words[6], None);
    assert!(head.push_tag(ethertype::VLAN, 9) && head.push_tag(ethertype::VLAN, 10));
    assert!(!head.push_tag(ethertype::VLAN, 11), "more than there is room for");
    assert_eq!([-10, -14].map(|at| head.word(at)), [Some(0x88a8_0007), Some(0x8100_0009)]);
    // Where the network header is lost, words count from the frame's beginning.
    head.lose_network();
    assert_eq!([12, 24].map(|at| head.word(at)), [Some(0x8100_0009), Some(0x0800_45b8)]);
    head.pop_tag();
    head.pop_tag();
    assert!(!head.has_lost_network() && head.word(0) == Some(0x45b8_0028));
    head.pop_tag();
    assert_eq!(head.tags(), [(ethertype::VLAN, 5)]);
    head.pop_tag();
    head.pop_tag();
    assert_eq!((head.tags().len(), &head.on_wire().frame()[12..14]), (0, &[8, 0][..]));
}

/// RFC 1071: a sum that is right comes to nothing; the example of an IPv4 header is Wikipedia's, 0xb861.
#[test]
fn checksums() {
    let bytes = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
    let mut head = Head::from_network(ethertype::IPV4, &bytes);
    assert!(!head.has_right_header());
    head.sum_header();
    assert_eq!((&head.network()[10..12], head.has_right_header()), (&[0xb8, 0x61][..], true));
    assert_eq!((head.sound_header(0x73), head.sound_header(0x72)), (Some(0x73), None));
    head.network_mut()[10] ^= 1;
    assert_eq!((head.has_right_header(), head.sound_header(0x73)), (false, None));

    // UDP with the bytes `ab`: 0xc0a80001 + 0xc0a80002 + 17 + 10 + ports 1, 2 + length 10 + 0x6162.
    let udp = [0, 1, 0, 2, 0, 10, 0, 0, 0x61, 0x62];
    let mut head = v4([192, 168, 0, 1], [192, 168, 0, 2], proto::UDP, 0, &udp);
    assert!(head.has_right_transport(), "UDP may leave its checksum out");
    head.fill_sums();
    let sum: u32 = 0xc0a8 + 1 + 0xc0a8 + 2 + 17 + 10 + 1 + 2 + 10 + 0x6162;
    let right = !((sum & 0xffff) as u16).wrapping_add((sum >> 16) as u16);
    assert_eq!((&head.network()[26..28], head.has_right_transport()), (&right.to_be_bytes()[..], true));
    head.network_mut()[29] ^= 1;
    assert!(!head.has_right_transport());
    let mut tcp = v4([192, 168, 0, 1], [192, 168, 0, 2], proto::TCP, 0, &[0; 20]);
    assert!(!tcp.has_right_transport(), "TCP may not leave it out");
    tcp.fill_sums();
    assert!(tcp.has_right_transport() && tcp.has_right_header());
}

/// A router takes one hop and keeps the header's checksum right (RFC 1624); the last is the packet's end.
#[test]
fn hops() {
    let mut head = v4([1; 4], [2; 4], proto::UDP, 0, &ports(1, 2));
    head.fill_sums();
    let hops: Vec<bool> = (0..64).map(|_| head.hop()).collect();
    assert_eq!((hops.iter().filter(|more| **more).count(), hops[62], hops[63]), (63, true, false));
    assert!(head.has_right_header() && head.network()[8] == 0);
    let mut six = [0; 40];
    (six[0], six[7]) = (0x60, 2);
    let mut head = Head::from_network(ethertype::IPV6, &six);
    assert_eq!([head.hop(), head.hop()], [true, false]);
    assert!(Head::from_network(ethertype::ARP, &[0; 28]).hop());
}
