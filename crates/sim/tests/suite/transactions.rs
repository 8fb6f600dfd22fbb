//! What people wait for, on an idle link and behind a full buffer: times that can be worked out by hand.

use tidegate_packet::{Nanos, Time};
use tidegate_sim::{
    Bulk, Completion, CongestionControl, DialogueTurn, Home, HomeSpec, Limit, LinkSpec, Local, Lookup, Net,
    NoMachine, Parties, TrafficResult, Transaction, TransactionSpec, TransactionTraffic,
};
use tidegate_sim::{DropTail, HomeTraffic};

const LOOKUP: Lookup =
    Lookup { port: 53, request: 40, reply: 120, think: Nanos::millis(5), retry: Nanos::secs(5), tries: 2 };

fn turn(client: bool, bytes: u32) -> DialogueTurn {
    DialogueTurn { client, bytes, think: Nanos::millis(1) }
}

fn transaction(
    lookup: Option<Lookup>,
    dialogue: Vec<DialogueTurn>,
    followers: Vec<Vec<DialogueTurn>>,
) -> Transaction {
    Transaction {
        every: Nanos::secs(3),
        patience: Nanos::secs(20),
        control: CongestionControl::Cubic,
        lookup,
        port: 22,
        dialogue,
        followers,
        paint: 1,
    }
}

/// Over 20 ms there and 20 ms back, nothing else: the times of three goes, in ms.
fn times(what: Transaction, v6: bool) -> Vec<(Option<u64>, Option<u64>)> {
    let ms = |span: Option<Nanos>| span.map(|span| span.0 / 1_000_000);
    goes(what, v6).iter().map(|go| (ms(go.first), ms(go.all))).collect()
}

fn goes(what: Transaction, v6: bool) -> Vec<Completion> {
    let mut net = Net::new(NoMachine, 1, Time(0));
    let link = net.link(LinkSpec::wire(Nanos::millis(20)));
    let way = net.path(&[link]);
    let id = net.transaction(TransactionSpec {
        what,
        client: Local::Host(2).address(v6),
        server: Local::Host(9).address(v6),
        first_port: 50_000,
        dsfield: 0,
        mss: if v6 { 1428 } else { 1448 },
        forward: way,
        back: way,
        start: Time(0) + Nanos::secs(1),
        stop: Time(0) + Nanos::secs(8),
    });
    net.run(Time(0) + Nanos::secs(60));
    net.completions(id)
}

/// A question and its answer: one round trip and the server's thought.
#[test]
fn a_lookup_takes_a_round_trip() {
    for v6 in [false, true] {
        assert_eq!(times(transaction(Some(LOOKUP), vec![], vec![]), v6), [(Some(45), Some(45)); 3]);
    }
}

/// A dialogue takes one round trip for the handshake, then half of one and a thought for each turn; 20 kB are
/// fourteen segments: what the first window leaves over follows a round trip later.
#[test]
fn a_dialogue_takes_its_turns() {
    let turns = vec![turn(true, 21), turn(false, 21), turn(true, 1500), turn(false, 20_000)];
    let alone = transaction(None, turns.clone(), vec![]);
    assert_eq!(times(alone, false), [(Some(40 + 4 * 21 + 40), Some(164)); 3]);
    let both = transaction(Some(LOOKUP), turns, vec![]);
    assert_eq!(times(both, true), [(Some(45 + 164), Some(209)); 3]);
}

/// Who speaks last closes, and the segment with FIN does not wait for the window: of eleven segments the last
/// one goes with the first ten, of twelve with the eleventh. Real Linux hosts needed 83, 83 and 122 ms
/// (`tidegate lab` in virtual time).
#[test]
fn the_last_segment_does_not_wait() {
    let reply =
        |bytes| times(transaction(None, vec![turn(true, 300), turn(false, bytes)], vec![]), false)[0].1;
    assert_eq!([14_480, 14_481, 15_929].map(reply), [Some(82), Some(82), Some(122)]);
}

/// What a page names is fetched side by side: the first over the open connection, the others each after a
/// handshake.
#[test]
fn a_page_is_done_when_its_parts_are() {
    let get = |bytes| vec![turn(true, 300), turn(false, bytes)];
    let page = transaction(None, get(1000), vec![get(500), get(900), get(1400)]);
    assert_eq!(times(page, false), [(Some(82), Some(82 + 82)); 3]);
}

/// Something can be shown when the document and what comes over the open connection are there: two thoughts
/// and a round trip later, while the others still shake hands. Where more is needed than there is, all of it.
#[test]
fn a_page_is_painted_before_it_is_complete() {
    let get = |bytes| vec![turn(true, 300), turn(false, bytes)];
    let page =
        |paint| Transaction { paint, ..transaction(None, get(1000), vec![get(500), get(900), get(1400)]) };
    let painted = |paint| goes(page(paint), false)[0].paint.map(|span| span.0 / 1_000_000);
    assert_eq!([0, 1, 2, 9].map(painted), [Some(82), Some(82 + 42), Some(82 + 82), Some(82 + 82)]);
}

/// Behind a modem's full buffer a login takes several times the buffer's delay; when none of its packets gets
/// through, it is abandoned and reported.
#[test]
fn a_login_waits_in_the_modem() {
    let login = |patience| {
        let turns =
            vec![turn(true, 21), turn(false, 21), turn(true, 1500), turn(false, 1100), turn(true, 80)];
        let what = Transaction { patience, ..transaction(None, turns, vec![]) };
        let command = TransactionTraffic {
            parties: Parties::new(Local::Host(3), 51_000, 0),
            start: Nanos::secs(11),
            what,
        };
        let spec = HomeSpec { duration: Nanos::secs(30), ..HomeSpec::new(256_000, 4_000_000) };
        let spec = spec.with([HomeTraffic::Bulk(Bulk::new(true, 40_000)), HomeTraffic::Transaction(command)]);
        let (result, _) = Home::new(DropTail::new(Limit::Packets(1000)), spec, Time(0)).finish();
        match result.outcomes.into_iter().next_back() {
            Some(TrafficResult::Transaction(goes)) => goes,
            other => panic!("the last item is the login: {other:?}"),
        }
    };
    let patient = login(Nanos::secs(20));
    let slow = patient.iter().filter(|go| go.all.is_some_and(|all| all > Nanos::millis(2000))).count();
    assert!(patient.len() >= 9 && slow >= 6, "{patient:?}");
    let hasty = login(Nanos::millis(400));
    assert!(hasty.iter().skip(1).all(|go| go.all.is_none()), "{hasty:?}");
}
