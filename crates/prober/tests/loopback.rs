//! A server and a client on one machine: what was sent is what came.

use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_measure::stream::{Exchange, PacketTrain, Path, Stream, StreamTrace};
use tidegate_probe_wire::{FlowDirection, FlowPlan, Quotas, Token};
use tidegate_prober::serve::{Server, Serving};
use tidegate_prober::{AddressFamily, Error, ServerSession, ServerTarget};

fn token(text: &str) -> Option<Token> {
    Token::new(text)
}

fn serve(home: &str, token: Option<Token>, quotas: Quotas) -> (Server, ServerTarget) {
    let at: IpAddr = home.parse().unwrap();
    let server = Server::start(&Serving { at: vec![at], port: 0, token: token.clone(), quotas }).unwrap();
    let port = server.at()[0].port();
    (server, ServerTarget { host: home.to_owned(), port, token, family: AddressFamily::Any })
}

#[test]
fn what_is_sent_arrives_with_its_mark_both_ways() {
    let (server, target) =
        serve("127.0.0.1", token("A good secret, that is 24 or more long"), Quotas::default());
    let mut session = ServerSession::connect(&target).unwrap();
    let marked =
        |payload, dscp| PacketTrain { payload, gap_ns: 1_000_000, packets: 100, dscp, ecn: 0, rest_ns: 0 };
    let up = Stream { phases: vec![marked(24, 46), marked(1452, 8)] };
    let exchange = Exchange { up, down: Stream::steady(marked(200, 34)) };
    // One after the other over the same session.
    for _ in 0..2 {
        let outcome = session.carry_out(&exchange).unwrap();
        assert_eq!(outcome.cut, None);
        assert_eq!((outcome.up.sent(), outcome.up.arrived()), (200, 200));
        assert_eq!((outcome.down.sent(), outcome.down.arrived()), (100, 100));
        let marks = |phase| outcome.up.of_phase(phase).all(|(due, packet)| packet.ds == Some(due.dscp << 2));
        assert!(marks(0) && marks(1));
        assert!(outcome.down.packets.iter().all(|packet| packet.ds == Some(34 << 2)));
        let ranks: Vec<u32> = outcome.up.packets.iter().map(|packet| packet.rank).collect();
        assert_eq!(ranks, (0..200).collect::<Vec<u32>>());
        assert!(outcome.down.packets.iter().all(|packet| packet.duplicates == 0));
    }
    let counts = server.counts();
    assert_eq!((counts.sessions, counts.exchanges, counts.refused.len()), (1, 2, 0));
}

#[test]
fn the_same_over_ipv6() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: this machine has no IPv6");
        return;
    }
    let (_server, target) = serve("::1", token("A good secret, that is 24 or more long"), Quotas::default());
    let mut session = ServerSession::connect(&ServerTarget { family: AddressFamily::V6, ..target }).unwrap();
    let stream = Stream::steady(PacketTrain {
        payload: 300,
        gap_ns: 1_000_000,
        packets: 50,
        dscp: 46,
        ecn: 1,
        rest_ns: 0,
    });
    let outcome = session.carry_out(&Exchange { up: stream.clone(), down: stream }).unwrap();
    // EF with ECT(1).
    let marked =
        |trace: &StreamTrace| trace.packets.iter().filter(|packet| packet.ds == Some(46 << 2 | 1)).count();
    assert_eq!((outcome.cut, marked(&outcome.up), marked(&outcome.down)), (None, 50, 50));
}

#[test]
fn an_empty_stream_is_nothing_and_one_way_is_enough() {
    let (_server, target) = serve("127.0.0.1", None, Quotas::default());
    let mut session = ServerSession::connect(&target).unwrap();
    let some = || {
        Stream::steady(PacketTrain { payload: 100, gap_ns: 100_000, packets: 50, ..PacketTrain::default() })
    };
    let cases =
        [(some(), Stream::default()), (Stream::default(), some()), (Stream::default(), Stream::default())];
    for (up, down) in cases {
        let (ups, downs) = (up.packets(), down.packets());
        let outcome = session.carry_out(&Exchange { up, down }).unwrap();
        assert_eq!((outcome.up.arrived(), outcome.down.arrived()), (ups, downs));
    }
}

#[test]
fn who_does_not_know_the_token_is_refused() {
    let (server, target) =
        serve("127.0.0.1", token("A good secret, that is 24 or more long"), Quotas::default());
    let connect = |token| ServerSession::connect(&ServerTarget { token, ..target.clone() }).map(drop);
    assert!(matches!(connect(None), Err(Error::WantsToken)));
    assert!(
        matches!(connect(token("Another secret, that is 24 or more long")), Err(Error::Refused(why)) if why.contains("token"))
    );
    assert!(connect(token("A good secret, that is 24 or more long")).is_ok());
    assert_eq!(server.counts().refused.values().sum::<u64>(), 1);
    let (_open, target) = serve("127.0.0.1", None, Quotas::default());
    let mistaken = ServerTarget { token: token("A good secret, that is 24 or more long"), ..target };
    assert!(matches!(ServerSession::connect(&mistaken), Err(Error::WantsNoToken)));
}

#[test]
fn more_than_the_server_allows_is_refused_and_less_goes_on() {
    let mut quotas = Quotas::default();
    quotas.limits.packets = 10;
    let (_server, target) = serve("127.0.0.1", None, quotas);
    let mut session = ServerSession::connect(&target).unwrap();
    let of = |packets| Exchange {
        up: Stream::steady(PacketTrain { payload: 100, gap_ns: 1000, packets, ..PacketTrain::default() }),
        down: Stream::default(),
    };
    assert!(matches!(session.carry_out(&of(11)), Err(Error::Refused(_))));
    assert_eq!(session.carry_out(&of(10)).unwrap().up.arrived(), 10);
}

#[test]
fn a_server_that_goes_in_the_middle_leaves_what_came() {
    let (server, target) = serve("127.0.0.1", None, Quotas::default());
    let mut session = ServerSession::connect(&target).unwrap();
    let long = Stream::steady(PacketTrain {
        payload: 100,
        gap_ns: 1_000_000,
        packets: 60_000,
        ..PacketTrain::default()
    });
    let exchange = Exchange { up: long.clone(), down: long };
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| session.carry_out(&exchange));
        while server.counts().packets < 100 {
            std::thread::yield_now();
        }
        drop(server);
        run.join().unwrap().unwrap()
    });
    assert!(outcome.cut.as_deref().is_some_and(|why| why.contains("gone")), "{:?}", outcome.cut);
    // The server counts the hellos too, of which up to 8 go before the stream.
    assert!((92..60_000).contains(&outcome.up.sent()), "{}", outcome.up.sent());
    assert!((1..60_000).contains(&outcome.down.arrived()), "{}", outcome.down.arrived());
    assert!(matches!(session.carry_out(&exchange), Err(Error::Gone(_))));
}

/// Both directions: what was sent until then is reported, and what it did not reach is known.
#[test]
fn an_exchange_that_is_stopped_is_reported_by_the_server() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let (server, target) = serve("127.0.0.1", None, Quotas::default());
    let every_ms = PacketTrain { payload: 100, gap_ns: 1_000_000, ..PacketTrain::default() };
    let long = Stream::steady(PacketTrain { packets: 60_000, ..every_ms });
    // One that ends before the other is stopped as well.
    let short = Stream::steady(PacketTrain { packets: 10, ..every_ms });
    for up in [long.clone(), short] {
        STOP.store(false, Ordering::Relaxed);
        let mut session = ServerSession::connect(&target).unwrap();
        session.stop_on(&STOP);
        let before = server.counts().packets;
        let exchange = Exchange { up, down: long.clone() };
        let outcome = std::thread::scope(|scope| {
            let run = scope.spawn(|| session.carry_out(&exchange));
            // Hellos are counted, too: at most 8.
            while server.counts().packets < before + 10 {
                std::thread::yield_now();
            }
            STOP.store(true, Ordering::Relaxed);
            run.join().unwrap().unwrap()
        });
        assert_eq!((outcome.cut.as_deref(), outcome.is_reported), (Some("it was stopped"), true));
        for (way, trace) in [("up", &outcome.up), ("down", &outcome.down)] {
            assert!((1..60_000).contains(&trace.sent()), "{way}: {}", trace.sent());
            assert_eq!(trace.arrived(), trace.sent(), "{way}");
        }
        assert!(matches!(session.carry_out(&exchange), Err(Error::Gone(_))));
    }
}

#[test]
fn flows_carry_both_ways_with_their_account() {
    let (server, target) = serve("127.0.0.1", None, Quotas::default());
    let session = ServerSession::connect(&target).unwrap();
    for way in [FlowDirection::Up, FlowDirection::Down] {
        let plan = FlowPlan { way, dscp: 0, control: String::new(), length_ns: 400_000_000 };
        let carried = session.flow().carry(&plan, 50_000_000, || false).unwrap();
        assert_eq!(carried.problem, None, "{way:?}");
        let (_, bytes) = carried.bytes.last().copied().unwrap();
        assert!(bytes > 1_000_000, "{way:?}: {bytes}");
        assert!(carried.bytes.is_sorted());
        assert!(carried.samples.iter().any(|sample| sample.cwnd > 0 && sample.delivery_rate > 0), "{way:?}");
    }
    assert_eq!(server.counts().flows, 2);
}

#[test]
fn missing_names_and_ports_are_reported() {
    let nobody = ServerSession::connect(&ServerTarget::new("no-such-host.invalid"));
    assert!(matches!(nobody, Err(Error::NoName { .. })), "{nobody:?}");
    let (server, target) = serve("127.0.0.1", None, Quotas::default());
    let wrong = ServerSession::connect(&ServerTarget { family: AddressFamily::V6, ..target.clone() });
    assert!(matches!(wrong, Err(Error::NoName { .. })), "{wrong:?}");
    // A silent connection costs nothing.
    let silent = TcpStream::connect(server.at()[0]).unwrap();
    assert!(ServerSession::connect(&target).is_ok());
    drop(silent);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = ServerSession::connect(&ServerTarget { port, ..target });
    assert!(matches!(closed, Err(Error::NoReply { .. })), "{closed:?}");
}
