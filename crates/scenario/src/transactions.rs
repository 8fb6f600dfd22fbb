//! What people wait for: a look-up, a login, a page, a question and its answer.

use tidegate_packet::Nanos;
use tidegate_sim::{CongestionControl, DialogueTurn, Lookup, Transaction};

fn lookup() -> Lookup {
    Lookup { port: 53, request: 45, reply: 140, think: Nanos::millis(2), retry: Nanos::secs(5), tries: 2 }
}

fn transaction(every: Nanos, patience: Nanos, port: u16) -> Transaction {
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
pub fn dns() -> Transaction {
    Transaction { lookup: Some(lookup()), ..transaction(Nanos::secs(1), Nanos::secs(10), 0) }
}

fn turn(client: bool, bytes: u32, think: Nanos) -> DialogueTurn {
    DialogueTurn { client, bytes, think }
}

/// An SSH login by key: versions, key exchange, authentication, a terminal, the prompt (RFC 4253, 4252, 4254;
/// sizes as OpenSSH's).
pub fn login() -> Transaction {
    let ms = Nanos::millis;
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
    Transaction { dialogue, ..transaction(Nanos::secs(5), Nanos::secs(30), 22) }
}

/// What a page is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageShape {
    /// Payload bytes of the document.
    pub document: u32,
    /// What it names, fetched over `connections`.
    pub objects: u32,
    /// Payload bytes of each.
    pub object: u32,
    /// Connections, that of the document among them.
    pub connections: u32,
    /// What the server needs for the document, and for each object a quarter of it.
    pub think: Nanos,
    /// Over TLS 1.3?
    pub tls: bool,
}

/// The client's and the server's turns before the first request over TLS 1.3 (RFC 8446).
fn hello() -> [DialogueTurn; 3] {
    [turn(true, 517, Nanos::millis(1)), turn(false, 3600, Nanos::millis(3)), turn(true, 80, Nanos::millis(2))]
}

fn get(bytes: u32, think: Nanos) -> [DialogueTurn; 2] {
    [turn(true, 480, Nanos::millis(1)), turn(false, bytes, think)]
}

/// A page: its name, the document over TLS 1.3, then twenty-three parts over six connections, 1.1 MB in all.
pub fn page() -> Transaction {
    let think = Nanos::millis(15);
    let parts = [78_000, 24_000, 61_000, 9_000];
    let more = |i: u32| parts.iter().skip(usize::from(i == 5)).map(move |bytes| bytes + 3_000 * i).collect();
    page_of(true, (42_000, think), (0..6).map(more).collect(), think)
}

/// A page of another shape.
pub fn page_like(shape: PageShape) -> Transaction {
    let PageShape { document, objects, object, connections, think, tls } = shape;
    let over = |i: u32| (objects + connections - 1 - i) / connections;
    let parts =
        (0..connections).map(|i| vec![object; over(i) as usize]).filter(|parts| !parts.is_empty()).collect();
    // With nothing known of what it shows first, the document is what it shows.
    Transaction { paint: 0, ..page_of(tls, (document, think), parts, Nanos(think.0 / 4)) }
}

/// The document, and over each connection what it names: the first connection is the document's.
fn page_of(tls: bool, document: (u32, Nanos), parts: Vec<Vec<u32>>, think: Nanos) -> Transaction {
    let opening = || if tls { hello().to_vec() } else { Vec::new() };
    let follower = |(n, parts): (usize, Vec<u32>)| {
        let begin = if n == 0 { Vec::new() } else { opening() };
        begin.into_iter().chain(parts.into_iter().flat_map(|bytes| get(bytes, think))).collect()
    };
    let followers: Vec<Vec<DialogueTurn>> = parts.into_iter().enumerate().map(follower).collect();
    Transaction {
        lookup: Some(lookup()),
        dialogue: opening().into_iter().chain(get(document.0, document.1)).collect(),
        // What comes first over the first connection is what a browser waits for before it paints.
        paint: followers.len().min(1),
        followers,
        ..transaction(Nanos::secs(12), Nanos::secs(30), if tls { 443 } else { 80 })
    }
}

/// A question over a connection of its own, and its answer.
pub fn request(every: Nanos, port: u16, request: u32, reply: u32) -> Transaction {
    let dialogue = vec![turn(true, request, Nanos(0)), turn(false, reply, Nanos::millis(1))];
    Transaction { dialogue, ..transaction(every, Nanos::secs(120), port) }
}
