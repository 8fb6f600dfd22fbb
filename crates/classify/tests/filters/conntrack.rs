//! Connections as a recorded Linux 6.1 kept them: state, counters, time.

use tidegate_classify::conntrack::{Conntrack, state};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Meta, Nanos, Pool, Time};
use tidegate_policy::netfilter::Connstate;

const SEQUENCES: &str = include_str!("../data/tcp-sequences.txt");
const FLAGS: &str = include_str!("../data/tcp-flags.txt");
const CONNECTIONS: &str = include_str!("../data/connections.txt");
const FRAME_LEN: u32 = 60;

/// A packet between a client and port 80 of a server: IPv4, protocol, TCP flags.
fn packet(client: u32, protocol: u8, flags: u8, reply: bool) -> (Meta, Head) {
    let (c, s) = ((0x0a00_0000 + client).to_be_bytes(), [10, 9, 0, 1]);
    let (from, to) = if reply { (s, c) } else { (c, s) };
    let mut p = vec![0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    p.extend(from);
    p.extend(to);
    match protocol {
        proto::ICMP => p.extend([if reply { 0 } else { 8 }, 0, 0, 0, 0, 1, 0, 1]),
        _ => {
            let (sport, dport): (u16, u16) = if reply { (80, 1024) } else { (1024, 80) };
            p.extend(sport.to_be_bytes());
            p.extend(dport.to_be_bytes());
            p.extend([0, 0, 0, 100, 0, 0, 0, 100, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        }
    }
    let head = Head::from_network(ethertype::IPV4, &p);
    (Meta::of(&head, FRAME_LEN), head)
}

/// Sends the packet through the hooks; returns state and counters in the letters of the recordings.
fn pass(connections: &mut Conntrack, pool: &mut Pool, now: Time, (meta, head): (Meta, Head)) -> String {
    let pkt = pool.insert(meta, head).expect("the pool has room");
    assert!(connections.enter(now, pool, &pkt));
    let mut output = match state(pool.meta(&pkt)) {
        Connstate::New => "n",
        Connstate::Established => "e",
        Connstate::Related => "r",
        Connstate::Invalid => "i",
        Connstate::Untracked => "u",
    }
    .to_owned();
    if let Some((packets, bytes)) = connections.counters(pool.meta(&pkt)) {
        assert_eq!(bytes.map(|b| b / u64::from(FRAME_LEN - 14)), packets);
        let marks = [(packets[0] + packets[1] >= 3, '3'), (packets[1] >= 1, 'r')];
        output.extend(marks.iter().filter(|(so, _)| *so).map(|(_, letter)| letter));
    }
    connections.confirm(pool, &pkt);
    pool.release(pkt);
    output
}

fn flags(words: &str) -> u8 {
    let bits = [('F', 1), ('S', 2), ('R', 4), ('P', 8), ('A', 16), ('U', 32), ('E', 64), ('C', 128)];
    bits.iter().filter(|(letter, _)| words.contains(*letter)).map(|(_, bit)| bit).sum()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

#[test]
fn tcp_sequences() {
    let mut connections = Conntrack::default();
    connections.activate(false);
    let mut pool = Pool::new(1);
    let mut differing = Vec::new();
    for (client, line) in (1..).zip(lines(SEQUENCES)) {
        let (segments, _) = line.split_once('=').expect("a line has two parts");
        let mut output = String::new();
        for segment in segments.chars() {
            let words = match segment.to_ascii_lowercase() {
                's' => "S",
                'x' => "SA",
                'a' => "A",
                'f' => "FA",
                _ => "RA",
            };
            let packet = packet(client, proto::TCP, flags(words), segment.is_uppercase());
            output += &pass(&mut connections, &mut pool, Time(1000), packet);
        }
        if format!("{segments}={output}") != line {
            differing.push(format!("{line}, ours {output}"));
        }
    }
    assert_eq!(differing, Vec::<String>::new());
}

#[test]
fn states_counters_and_timeouts() {
    let mut pool = Pool::new(1);
    let mut differing = Vec::new();
    for line in lines(CONNECTIONS) {
        let mut connections = Conntrack::default();
        connections.activate(true);
        let mut words = line.split(' ');
        let protocol = match words.next() {
            Some("tcp") => proto::TCP,
            Some("udp") => proto::UDP,
            Some("icmp") => proto::ICMP,
            _ => proto::GRE,
        };
        let mut now = Time(1_000_000);
        for word in words {
            if let Some(gap) = word.strip_prefix('+') {
                now += Nanos(gap.parse().expect("a number of nanoseconds"));
                continue;
            }
            let (who, wanted) = word.split_once('=').expect("a packet and its state");
            let packet = packet(1, protocol, flags(&who[1..]), who.starts_with('r'));
            let output = pass(&mut connections, &mut pool, now, packet);
            if output != wanted {
                differing.push(format!("{line}: {word}, ours {output}"));
                break;
            }
        }
    }
    assert_eq!(differing, Vec::<String>::new());
}

#[test]
fn a_lost_first_packet_leaves_no_connection() {
    let (mut connections, mut pool) = (Conntrack::default(), Pool::new(1));
    connections.activate(false);
    let (meta, head) = packet(1, proto::UDP, 0, false);
    let pkt = pool.insert(meta, head).expect("the pool has room");
    connections.enter(Time(0), &mut pool, &pkt);
    connections.set_mark(pool.meta(&pkt), 7);
    assert_eq!((connections.len(), connections.mark(pool.meta(&pkt))), (1, Some(7)));
    connections.abandon(&pool, &pkt);
    pool.release(pkt);
    assert!(connections.is_empty());
}

#[test]
fn every_combination_of_tcp_flags_in_every_state() {
    let mut pool = Pool::new(1);
    let mut differing = Vec::new();
    let all: Vec<&str> = lines(FLAGS).collect();
    for (client, line) in (1..).zip(&all) {
        let mut connections = Conntrack::default();
        connections.activate(false);
        for word in line.split(' ').skip(1) {
            let (who, wanted) = word.split_once('=').expect("a packet and its state");
            let packet = packet(client, proto::TCP, flags(&who[1..]), who.starts_with('r'));
            let output = pass(&mut connections, &mut pool, Time(1000), packet);
            if !output.starts_with(wanted) {
                differing.push(format!("{line}: {word}, ours {output}"));
                break;
            }
        }
    }
    assert_eq!(differing, Vec::<String>::new());
    assert!(all.len() > 1100, "only {} lines", all.len());
}
