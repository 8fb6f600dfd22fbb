//! What people wait for: a look-up, a login, a page, a question and its answer.

use tidegate_packet::Span;
use tidegate_sim::{CongestionControl, Lookup, Transaction, Turn};

fn lookup() -> Lookup {
    Lookup { port: 53, request: 45, reply: 140, think: Span::millis(2), retry: Span::secs(5), tries: 2 }
}

fn transaction(every: Span, patience: Span, port: u16) -> Transaction {
    Transaction {
        every,
        patience,
        control: CongestionControl::Cubic,
        lookup: None,
        port,
        dialogue: vec![],
        followers: vec![],
        paint: 0,
    }
}

/// A name looked up, every second.
pub(crate) fn dns() -> Transaction {
    Transaction { lookup: Some(lookup()), ..transaction(Span::secs(1), Span::secs(10), 0) }
}

fn turn(client: bool, bytes: u32, think: Span) -> Turn {
    Turn { client, bytes, think }
}

/// An SSH login by key: versions, key exchange, authentication, a terminal, the prompt (RFC 4253, 4252, 4254; sizes as OpenSSH's).
pub(crate) fn login() -> Transaction {
    let ms = Span::millis;
    let dialogue = vec![
        turn(true, 40, ms(0)),
        turn(false, 1120, ms(10)),
        turn(true, 1536, ms(1)),
        turn(true, 1208, ms(1)),
        turn(false, 1564, ms(5)),
        turn(true, 60, ms(1)),
        turn(false, 44, ms(1)),
        turn(true, 68, ms(1)),
        turn(false, 52, ms(1)),
        turn(true, 372, ms(1)),
        turn(false, 332, ms(5)),
        turn(true, 652, ms(3)),
        turn(false, 28, ms(30)),
        turn(true, 500, ms(1)),
        turn(false, 628, ms(20)),
    ];
    Transaction { dialogue, ..transaction(Span::secs(5), Span::secs(30), 22) }
}

/// A page: its name, the document over TLS 1.3, then twenty-three parts over six connections, 1.1 MB in all.
pub(crate) fn page() -> Transaction {
    let ms = Span::millis;
    let tls = [turn(true, 517, ms(1)), turn(false, 3600, ms(3)), turn(true, 80, ms(2))];
    let get = |bytes: u32| [turn(true, 480, ms(1)), turn(false, bytes, ms(15))];
    let dialogue = tls.into_iter().chain(get(42_000)).collect();
    let parts = [78_000, 24_000, 61_000, 9_000];
    let more = |i: u32| parts.iter().skip(usize::from(i == 5)).flat_map(move |bytes| get(bytes + 3_000 * i));
    let first = more(0).collect();
    let others = (1..6).map(|i| tls.into_iter().chain(more(i)).collect());
    let followers = std::iter::once(first).chain(others).collect();
    // What comes first over the first connection is what a browser waits for before it paints.
    let paint = 1;
    Transaction {
        lookup: Some(lookup()),
        dialogue,
        followers,
        paint,
        ..transaction(Span::secs(12), Span::secs(30), 443)
    }
}

/// A question over a connection of its own, and its answer.
pub(crate) fn request(every: Span, port: u16, request: u32, reply: u32) -> Transaction {
    let dialogue = vec![turn(true, request, Span(0)), turn(false, reply, Span::millis(1))];
    Transaction { dialogue, ..transaction(every, Span::secs(120), port) }
}
