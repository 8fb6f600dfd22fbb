use super::*;
use alloc::vec;
use tidegate_measure::stream::PacketTrain;

const SECOND: u64 = 1_000_000_000;
const HOME: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));
const NUMBER: u32 = 7;

/// A client with a session at time 0, at a server without a token.
fn welcomed(sessions: &mut Sessions) -> ConnectionId {
    let call = sessions.call(0, HOME, [1; NONCE_LEN], NUMBER).expect("there is room");
    assert!(matches!(
        sessions.on_message(0, call, ControlMessage::Hello { draw: [2; NONCE_LEN] }),
        SessionAction::Say(ControlMessage::Challenge { .. })
    ));
    assert!(matches!(
        sessions.on_message(0, call, ControlMessage::Proof([0; 32])),
        SessionAction::Say(ControlMessage::Welcome { .. })
    ));
    call
}

fn plan(up: u32, down: u32) -> ControlMessage {
    let of = |packets| match packets {
        0 => Stream::default(),
        packets => {
            Stream::steady(PacketTrain { payload: 100, gap_ns: SECOND, packets, ..PacketTrain::default() })
        }
    };
    ControlMessage::Plan { exchange: Exchange { up: of(up), down: of(down) }, quiet_ns: 1 }
}

fn datagram(
    sessions: &mut Sessions,
    from: SocketAddr,
    kind: ProbePacketKind,
    exchange: u8,
) -> PacketResponse {
    let header = PacketHeader { kind, exchange, session: NUMBER, number: 0, sent: 0 };
    let key = Token::open().session_key(&[2; NONCE_LEN], &[1; NONCE_LEN]).packets(Role::Client);
    sessions.datagram(SECOND, from, &header.write(&key), 5, Some(0))
}

#[test]
fn streams_go_where_the_hello_came_from_and_nowhere_else() {
    let mut sessions = Sessions::new(None, Quotas::default());
    let call = welcomed(&mut sessions);
    assert!(matches!(sessions.on_message(0, call, plan(0, 5)),
            SessionAction::Say(ControlMessage::Refused(why)) if why.contains("UDP")));
    let (home, other) = (SocketAddr::new(HOME, 4000), SocketAddr::from(([203, 0, 113, 9], 4000)));
    assert_eq!(datagram(&mut sessions, other, ProbePacketKind::Hello, 0), PacketResponse::Nothing);
    assert!(matches!(datagram(&mut sessions, home, ProbePacketKind::Hello, 0), PacketResponse::Answer(_)));
    let SessionAction::Start(start) = sessions.on_message(0, call, plan(3, 5)) else {
        panic!("it may begin")
    };
    assert_eq!((start.to, start.exchange), (Some(home), 1));
    // What is late from another exchange does not count for this one.
    assert_eq!(datagram(&mut sessions, home, ProbePacketKind::Data, 0), PacketResponse::Nothing);
    assert_eq!(datagram(&mut sessions, other, ProbePacketKind::Data, 1), PacketResponse::Nothing);
    assert_eq!(datagram(&mut sessions, home, ProbePacketKind::Data, 1), PacketResponse::Noted);
    assert!(
        matches!(sessions.on_message(0, call, plan(1, 0)), SessionAction::Last(_)),
        "one exchange at a time"
    );
}

#[test]
fn who_is_not_there_any_more_is_sent_nothing_more() {
    let mut sessions = Sessions::new(None, Quotas::default());
    let call = welcomed(&mut sessions);
    assert!(matches!(sessions.on_message(0, call, plan(300, 0)), SessionAction::Start(_)));
    assert!(!sessions.is_overdue(19 * SECOND, call) && sessions.is_overdue(21 * SECOND, call));
    assert_eq!(
        sessions.on_message(15 * SECOND, call, ControlMessage::Alive { arrived: 0 }),
        SessionAction::Nothing
    );
    assert!(!sessions.is_overdue(30 * SECOND, call));
    sessions.end_exchange(40 * SECOND, call);
    assert!(!sessions.is_overdue(90 * SECOND, call) && sessions.is_overdue(101 * SECOND, call));
    sessions.hang_up(call);
    assert_eq!((sessions.sessions(), sessions.is_overdue(0, call)), (0, true));
}

#[test]
fn handshakes_of_an_address_are_rationed_and_neighbours_in_ipv6_share() {
    let mut sessions = Sessions::new(None, Quotas { sessions_each: 100, ..Quotas::default() });
    let mut shake = |now: u64, from: &str, number: u32| {
        let from = from.parse().expect("an address");
        let call = sessions.call(now, from, [1; NONCE_LEN], number).expect("there is room");
        let step = sessions.on_message(now, call, ControlMessage::Hello { draw: [2; NONCE_LEN] });
        sessions.hang_up(call);
        matches!(step, SessionAction::Say(_))
    };
    let went =
        (0..12).filter(|n| shake(0, if n % 2 == 0 { "2001:db8::1" } else { "2001:db8::2" }, *n)).count();
    assert_eq!(went, 10);
    assert!(shake(0, "2001:db8:0:1::1", 20) && !shake(SECOND, "2001:db8::3", 21));
    assert!(shake(2 * SECOND, "2001:db8::3", 22) && !shake(2 * SECOND, "2001:db8::3", 23));
}

#[test]
fn what_is_too_much_is_refused_for_what_it_is() {
    let quotas = Quotas { packets: 50, ..Quotas::default() };
    let limits = Limits { packets: 100, bits_per_second: 8000, longest_ns: 200 * SECOND, flows: 1 };
    let mut sessions = Sessions::new(None, Quotas { limits, ..quotas });
    let call = welcomed(&mut sessions);
    let fast = PacketTrain { payload: 1000, gap_ns: 1, packets: 40, ..PacketTrain::default() };
    let fast = ControlMessage::Plan {
        exchange: Exchange { up: Stream::steady(fast), down: Stream::default() },
        quiet_ns: 1,
    };
    let slow = PacketTrain { payload: 100, gap_ns: 300 * SECOND, packets: 1, ..PacketTrain::default() };
    let slow = ControlMessage::Plan {
        exchange: Exchange { up: Stream::steady(slow), down: Stream::default() },
        quiet_ns: 1,
    };
    let cases = [
        (plan(101, 0), Reason::Packets),
        (plan(51, 0), Reason::Memory),
        (fast, Reason::Rate),
        (slow, Reason::Long),
    ];
    for (message, reason) in cases {
        assert_eq!(
            sessions.on_message(0, call, message),
            SessionAction::Say(ControlMessage::Refused(reason.to_string()))
        );
        assert_eq!(sessions.counts().refused.get(&reason), Some(&1), "{reason:?}");
    }
}

#[test]
fn strangers_crowd_out_only_strangers_and_the_most_crowded_first() {
    let quotas = Quotas { strangers: 6, calls: 9, calls_each: 5, ..Quotas::default() };
    let mut sessions = Sessions::new(None, quotas);
    let known = welcomed(&mut sessions);
    let from = |last: u8| IpAddr::from([203, 0, 113, last]);
    // Four addresses take all they can, repeatedly.
    for round in 0..40_u32 {
        let _ = sessions.call(u64::from(round), from(1 + round as u8 % 4), [3; NONCE_LEN], 100 + round);
    }
    assert!(sessions.is_known(known) && !sessions.is_overdue(0, known), "who has proved himself stays");
    // Another client comes in, and stays while the crowd continues.
    let honest = sessions.call(50, from(99), [4; NONCE_LEN], 500).expect("there is a place for him");
    for round in 0..40_u32 {
        let _ = sessions.call(60, from(1 + round as u8 % 4), [3; NONCE_LEN], 200 + round);
    }
    assert!(matches!(
        sessions.on_message(70, honest, ControlMessage::Hello { draw: [5; NONCE_LEN] }),
        SessionAction::Say(_)
    ));
    assert!(matches!(
        sessions.on_message(70, honest, ControlMessage::Proof([0; 32])),
        SessionAction::Say(ControlMessage::Welcome { .. })
    ));
    assert!(sessions.calls.len() <= 9 && sessions.counts().refused[&Reason::Crowded] > 0);
}

#[test]
fn flows_are_of_who_has_the_key_and_name_what_is_loaded() {
    let mut sessions = Sessions::new(None, Quotas::default()).with_controls(vec!["cubic".to_string()]);
    welcomed(&mut sessions);
    let (key, other) = (
        Token::open().session_key(&[2; NONCE_LEN], &[1; NONCE_LEN]),
        Token::open().session_key(&[2; NONCE_LEN], &[9; NONCE_LEN]),
    );
    let plan = |control: &str| FlowPlan {
        way: FlowDirection::Down,
        dscp: 0,
        control: control.to_string(),
        length_ns: 1,
    };
    let mut say = |key: &SessionKey, number, control: &str| {
        let call = sessions.call(0, HOME, [1; NONCE_LEN], 1000 + number).expect("there is room");
        let step = sessions.on_message(0, call, ControlMessage::flow(key, NUMBER, number, plan(control)));
        matches!(step, SessionAction::Flow(..))
    };
    assert!(say(&key, 1, "cubic") && say(&key, 2, ""));
    assert!(!say(&key, 1, "cubic"), "said twice");
    assert!(!say(&other, 3, "cubic"), "by another key");
    assert!(!say(&key, 4, "dctcp"), "not loaded");
    assert_eq!(sessions.counts().refused.get(&Reason::Control), Some(&1));
    assert_eq!(sessions.counts().refused.get(&Reason::Secret), Some(&2));
}

/// The last moment of each patience, and the first one after it.
#[test]
fn time_runs_out_a_moment_after_its_bound() {
    let quotas = Quotas {
        patience_ns: 5 * SECOND,
        silence_ns: 7 * SECOND,
        idle_ns: 20 * SECOND,
        longest_ns: 1000 * SECOND,
        ..Quotas::default()
    };
    let ends = |sessions: &Sessions, call: ConnectionId, at: u64| {
        [at, at + 1].map(|now| sessions.is_overdue(now, call)) == [false, true]
    };
    let mut sessions = Sessions::new(None, quotas);
    let stranger = sessions.call(3, HOME, [1; NONCE_LEN], 99).expect("there is room");
    assert!(!sessions.is_known(stranger) && ends(&sessions, stranger, 3 + 5 * SECOND));
    assert_eq!(sessions.most(stranger), FIRST_MOST);
    let call = welcomed(&mut sessions);
    assert_eq!((sessions.sessions(), sessions.counts().sessions, sessions.most(call)), (1, 1, MOST + TAG));
    assert!(sessions.is_known(call) && ends(&sessions, call, 20 * SECOND), "without an exchange");
    // Three packets in two seconds, and five of patience: until then it may not be silent for long.
    assert!(matches!(sessions.on_message(0, call, plan(300, 0)), SessionAction::Start(_)));
    assert!(ends(&sessions, call, 7 * SECOND));
    sessions.end_exchange(0, call);
    assert!(matches!(sessions.on_message(0, call, plan(3, 0)), SessionAction::Start(_)));
    assert_eq!(sessions.seen(call).map(|seen| seen.all().len()), Some(3));
    let length =
        Stream::steady(PacketTrain { payload: 100, gap_ns: SECOND, packets: 3, ..PacketTrain::default() })
            .length_ns();
    let until = length + 5 * SECOND;
    let heard = until - 7 * SECOND - 1;
    assert_eq!(
        sessions.on_message(heard, call, ControlMessage::Alive { arrived: 0 }),
        SessionAction::Nothing
    );
    assert!(!sessions.is_overdue(until - 1, call), "silent for seven seconds, and no longer");
    assert!(!sessions.is_overdue(until, call), "after its end silence counts as idleness");
    assert!(ends(&sessions, call, heard + 20 * SECOND));
    assert_eq!(sessions.on_message(heard, call, ControlMessage::Sent), SessionAction::Tell { quiet_ns: 1 });
    assert_eq!(sessions.on_message(heard, call, ControlMessage::Stop), SessionAction::Stop { quiet_ns: 1 });
    assert_eq!(sessions.counts().exchanges, 2);
    // With a flow it may be silent as long as it likes, but not be there for ever.
    let key = sessions.key(call).expect("a session");
    let flow = FlowPlan { way: FlowDirection::Up, dscp: 0, control: String::new(), length_ns: 30 * SECOND };
    let second = sessions.call(0, HOME, [1; NONCE_LEN], 100).expect("there is room");
    assert!(matches!(
        sessions.on_message(0, second, ControlMessage::flow(&key, NUMBER, 1, flow)),
        SessionAction::Flow(..)
    ));
    assert!(sessions.is_known(second) && ends(&sessions, second, 35 * SECOND));
    sessions.end_exchange(0, call);
    let late = sessions.on_message(0, call, ControlMessage::Stop);
    assert_eq!(late, SessionAction::Nothing, "the report had been sent when it came");
    assert!(ends(&sessions, call, 1000 * SECOND));
    assert_eq!((sessions.sessions(), sessions.counts().flows), (1, 1));
    sessions.was_overdue();
    assert_eq!(sessions.counts().refused.get(&Reason::Slow), Some(&1));
    sessions.hang_up(call);
    assert!(sessions.is_overdue(1, second), "a flow ends with its session");
}

/// As much as the limits allow is permitted, one more is not.
#[test]
fn limits_are_permitted_themselves() {
    let limits = Limits { packets: 10, bits_per_second: 8 * 1000, longest_ns: 10 * SECOND, flows: 2 };
    let stream = |payload, gap_ns, packets| {
        Stream::steady(PacketTrain { payload, gap_ns, packets, ..PacketTrain::default() })
    };
    let steady = stream(100, SECOND, 10);
    assert_eq!(permitted(&steady, &limits), Ok(()));
    assert_eq!(
        permitted(&stream(100, SECOND, 11), &Limits { longest_ns: u64::MAX, ..limits }),
        Err(Reason::Packets)
    );
    let longest_ns = steady.length_ns();
    assert_eq!(permitted(&steady, &Limits { longest_ns, ..limits }), Ok(()));
    assert_eq!(permitted(&steady, &Limits { longest_ns: longest_ns - 1, ..limits }), Err(Reason::Long));
    // What is shorter than a second is counted as one.
    let lump = stream(100, 1, 10);
    let bits_per_second = lump.bytes() * 8;
    assert_eq!(permitted(&lump, &Limits { bits_per_second, ..limits }), Ok(()));
    assert_eq!(
        permitted(&lump, &Limits { bits_per_second: bits_per_second - 1, ..limits }),
        Err(Reason::Rate)
    );
}

/// A token is required, and a client without it gets the reason if it has sent enough bytes.
#[test]
fn who_does_not_know_the_token_has_no_session() {
    let token = || Token::new("a long enough secret, it is hoped").expect("a token");
    let mut sessions =
        Sessions::new(Some(token()), Quotas { sessions: 1, sessions_each: 2, ..Quotas::default() });
    let mut shake = |number: u32, proof: &dyn Fn() -> Proof| {
        let call = sessions.call(0, HOME, [1; NONCE_LEN], number).expect("there is room");
        let step = sessions.on_message(0, call, ControlMessage::Hello { draw: [2; NONCE_LEN] });
        assert!(
            matches!(step, SessionAction::Say(ControlMessage::Challenge { wants_token: true, .. })),
            "{step:?}"
        );
        sessions.on_message(0, call, ControlMessage::Proof(proof()))
    };
    let right = || token().prove(Role::Client, &[2; NONCE_LEN], &[1; NONCE_LEN]);
    let wrong = || {
        Token::new("another secret that is long enough").expect("a token").prove(
            Role::Client,
            &[2; NONCE_LEN],
            &[1; NONCE_LEN],
        )
    };
    assert!(!matches!(shake(1, &wrong), SessionAction::Say(_)));
    assert!(matches!(shake(2, &right), SessionAction::Say(ControlMessage::Welcome { session: 2, .. })));
    assert!(!matches!(shake(3, &right), SessionAction::Say(_)), "one session at a time");
    let refused = |reason| sessions.counts().refused.get(&reason).copied();
    assert_eq!([Reason::Token, Reason::Sessions, Reason::Secret].map(refused), [Some(1), Some(1), None]);
}

/// Packets and strays are counted; of an exchange's packets as many are remembered as were announced.
#[test]
fn packets_are_counted() {
    let mut sessions = Sessions::new(None, Quotas { packets: 8, ..Quotas::default() });
    let call = welcomed(&mut sessions);
    let home = SocketAddr::new(HOME, 4000);
    assert!(matches!(sessions.on_message(0, call, plan(5, 0)), SessionAction::Start(_)));
    assert_eq!(datagram(&mut sessions, home, ProbePacketKind::Data, 1), PacketResponse::Noted);
    assert_eq!(
        datagram(&mut sessions, home, ProbePacketKind::Data, 2),
        PacketResponse::Nothing,
        "unknown exchange"
    );
    let PacketResponse::Answer(answer) = datagram(&mut sessions, home, ProbePacketKind::Hello, 1) else {
        panic!("a hello")
    };
    assert_eq!(
        PacketHeader::read(&answer).map(|header| (header.kind, header.session)),
        Some((ProbePacketKind::Seen, NUMBER))
    );
    assert_eq!((sessions.counts().packets, sessions.counts().strays), (2, 1));
    assert_eq!(sessions.remembered(), 5);
    assert!(sessions.end_exchange(0, call).is_some_and(|seen| seen.all().len() == 5));
    assert_eq!((sessions.remembered(), sessions.seen(call).is_none()), (0, true));
    assert!(
        matches!(sessions.on_message(0, call, plan(8, 0)), SessionAction::Start(_)),
        "as many as may be remembered"
    );
}

/// Of too many addresses those are forgotten that may call again soonest.
#[test]
fn as_many_addresses_are_remembered_as_there_are_places() {
    let mut sessions = Sessions::new(None, Quotas::default());
    let address = |n: usize| IpAddr::from([10, 0, (n / 256) as u8, (n % 256) as u8]);
    for n in 0..REMEMBERED {
        assert_eq!(sessions.count_handshake(n as u64, address(n)), Ok(()));
    }
    assert_eq!(sessions.count_handshake(REMEMBERED as u64, address(REMEMBERED)), Ok(()));
    let known = |sessions: &Sessions, n| sessions.handshakes.contains_key(&address(n));
    assert!(!known(&sessions, 0) && known(&sessions, 1) && known(&sessions, REMEMBERED));
    assert_eq!(sessions.handshakes.len(), REMEMBERED);
    // An authenticated one takes no stranger's place.
    assert_eq!(sessions.count_handshake(REMEMBERED as u64, address(7)), Ok(()));
    assert!(known(&sessions, 1));
    // Later, those whose handshakes are used up long ago go all at once.
    let later = 1 << 60;
    assert_eq!(sessions.count_handshake(later, address(REMEMBERED + 1)), Ok(()));
    assert_eq!(sessions.handshakes.len(), 1);
}

#[test]
fn another_version_is_refused_as_such() {
    let mut sessions = Sessions::new(None, Quotas::default());
    let call = sessions.call(0, HOME, [1; NONCE_LEN], NUMBER).expect("there is room");
    let mut hello = ControlMessage::Hello { draw: [2; NONCE_LEN] }.encode();
    hello[5] = 1;
    let why = ControlMessage::decode(&hello[4..]).expect_err("version 1");
    let _ = sessions.garbled(call, why);
    assert_eq!(sessions.counts().refused.get(&Reason::Version), Some(&1));
}
