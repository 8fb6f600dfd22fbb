//! Our messages compared with those that the real tc 6.1 sent for the same words: some 5,000 commands, those
//! of the recorded sessions and runs, written down by `xtask/record/sent.c`.
//!
//! Attributes are compared in the order of their numbers, because the kernel reads them by number and tc
//! sends some as they were typed.

use std::collections::BTreeMap;
use std::io::Read;
use tidegate_netlink::encode::{self, NetlinkMessage};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

const SENT: &[u8] = include_bytes!("data/sent.txt.gz");
/// Bytes of a netlink head, and of what precedes the attributes in messages about actions.
const HEAD: usize = 16;
const ACTIONS: std::ops::RangeInclusive<u16> = 48..=49;

/// Commands whose messages are not the same to the byte though the kernel does the same, by words that only
/// they have.
const OTHERWISE: [(&str, &str); 14] = [
    (
        "htb rate 1mbit m",
        "the longest packet decides how tc lays out tables of times, which no kernel since 3.8 reads for htb",
    ),
    (" mtu 3000", "the same"),
    ("tbf rate 1mbit burst 10k limit 30k mtu", "the same, for tbf"),
    ("tbf rate 1mbit burst 10k limit 30k peakrate 2mbit mtu", "the same, for tbf"),
    (" 8bit", "a table of times that do not fit 32 bits, which no kernel since 3.8 reads"),
    ("quantum 1 quantum 1", "tc sends what was said twice twice; the last holds"),
    ("weight 3 w", "the same"),
    ("maxpkt 1 maxpkt 1", "the same"),
    (
        "tbf rate 40gbit",
        "tc computes the bucket's time with the rate cut to 32 bits; the kernel goes by the bytes beside it",
    ),
    ("tbf burst 10k limit 30k rate 100tbit", "the same"),
    ("pedit ex munge offset", "`ex` without need"),
    ("htb debug", "a switch for mistakes in the kernel, which it ignores"),
    ("prio multiqueue", "without effect since Linux 2.6.27"),
    ("vlan push", "a protocol that is the usual one was named"),
];

struct Recorded {
    devices: BTreeMap<String, u32>,
    commands: Vec<(String, Vec<Vec<u8>>)>,
}

fn recorded() -> Recorded {
    let mut text = String::new();
    flate2::read::GzDecoder::new(SENT).read_to_string(&mut text).expect("the recorded messages are text");
    let (mut devices, mut commands) = (BTreeMap::new(), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(list) = line.strip_prefix("@ ") {
            let known = list.split(' ').filter_map(|known| known.split_once('='));
            devices.extend(
                known.map(|(name, number)| (name.to_owned(), number.parse().expect("a device's number"))),
            );
        } else {
            let (words, messages) = line.rsplit_once('|').expect("`WORDS|MESSAGES`");
            commands.push((words.to_owned(), messages.split(' ').map(bytes).collect()));
        }
    }
    Recorded { devices, commands }
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("hexadecimal bytes");
    (0..hexadecimal.len()).step_by(2).map(byte).collect()
}

/// The message with its head, as it would be sent.
fn whole(message: &NetlinkMessage) -> Vec<u8> {
    let mut bytes = ((HEAD + message.body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(message.kind.to_ne_bytes());
    bytes.extend(message.flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(&message.body);
    bytes
}

/// Bytes of an attribute with a table of times, and how it begins: its length, and a number from 2 to 4.
const TABLE: usize = 1028;

fn begins_table(message: &[u8], at: usize) -> bool {
    message[at..at + 2] == (TABLE as u16).to_ne_bytes() && matches!(message[at + 2..at + 4], [2..=4, 0])
}

/// The message with each table made of its hash.
fn hashed(mut message: Vec<u8>) -> Vec<u8> {
    let mut at = HEAD;
    while at < message.len() {
        if begins_table(&message, at) && at + TABLE <= message.len() {
            let table = &mut message[at + 4..at + TABLE];
            let hash = table.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
            table.chunks_exact_mut(8).for_each(|eight| eight.copy_from_slice(&hash.to_ne_bytes()));
            at += TABLE;
        } else {
            at += 4;
        }
    }
    message
}

/// A recorded message whose table is given by its hash, expanded.
fn expanded(message: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (message[..HEAD].to_vec(), HEAD);
    while at < message.len() {
        out.extend(&message[at..at + 4]);
        at += 4;
        if begins_table(message, at - 4) {
            out.extend(message[at..at + 8].repeat(128));
            at += 8;
        }
    }
    out
}

/// What a message holds, as text: its type and flags, its fixed part, and its attributes by number.
fn message_text(message: &[u8]) -> String {
    let word = |at: usize| u16::from_ne_bytes([message[at], message[at + 1]]);
    let kind = word(4);
    let fixed = if ACTIONS.contains(&kind) { HEAD + 4 } else { HEAD + 20 };
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let inside = attributes(&message[fixed..]).unwrap_or_else(|| hexadecimal(&message[fixed..]));
    format!("{kind} {:x} {} {inside}", word(6), hexadecimal(&message[HEAD..fixed]))
}

/// Attributes in the order of their numbers, if these bytes are such.
fn attributes(bytes: &[u8]) -> Option<String> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = usize::from(u16::from_ne_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let number = u16::from_ne_bytes([*bytes.get(at + 2)?, *bytes.get(at + 3)?]);
        let value = bytes.get(at + 4..at + length.max(4))?;
        if length < 4 || !(1..130).contains(&(number & 0x3fff)) {
            return None;
        }
        // A table is given by its hash.
        let value = if value.len() == TABLE - 4 { &value[..8] } else { value };
        let text = attributes(value).filter(|_| value.len() >= 4);
        let plain = || value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        all.push((number, text.unwrap_or_else(plain)));
        at += length.next_multiple_of(4);
    }
    all.sort_by_key(|(number, _)| *number);
    let list: Vec<String> = all.into_iter().map(|(number, text)| format!("{number:x}:{text}")).collect();
    Some(format!("{{{}}}", list.join(" ")))
}

/// What we send for a command; `None` where we do not take it in because the kernel would refuse it or it is
/// not built.
fn ours(words: &str, devices: &BTreeMap<String, u32>) -> Option<Vec<u8>> {
    let args: Vec<String> = words.split('\t').skip(1).map(String::from).collect();
    let TcCommand::Apply(op) = tc::parse(&args, &Env::default()).ok()?.command else { return None };
    let message = encode::message(&op, &|name| devices.get(name).copied());
    Some(whole(&message.unwrap_or_else(|error| panic!("{words}: {error}"))))
}

#[test]
fn messages_are_those_of_tc() {
    let Recorded { devices, commands } = recorded();
    let (mut same, mut aside, mut wrong, mut needed) = (0, 0, Vec::new(), [false; OTHERWISE.len()]);
    for (words, theirs) in &commands {
        match (ours(words, &devices), theirs.as_slice()) {
            (Some(ours), [theirs]) => {
                let (ours, theirs) = (message_text(&hashed(ours)), message_text(&expanded(theirs)));
                // Chain 0 is where filters are anyway.
                let theirs = theirs.replace(" b:00000000}", "}");
                match OTHERWISE.iter().position(|(known, _)| words.replace('\t', " ").contains(known)) {
                    _ if ours == theirs => same += 1,
                    Some(reason) => needed[reason] = true,
                    None => wrong.push(format!("{words}\n  tc   {theirs}\n  ours {ours}\n")),
                }
            }
            _ => aside += 1,
        }
    }
    println!("{same} same, {aside} not taken in");
    println!(
        "fidelity: kernel back end | the kernel back end sends the netlink messages of tc 6.1 | \
        exact | {same} of {} recorded commands identical to the byte, {aside} not supported, the others \
        named in the test with reasons",
        commands.len()
    );
    let unneeded: Vec<_> = OTHERWISE.iter().zip(needed).filter(|(_, needed)| !needed).collect();
    assert!(unneeded.is_empty(), "not needed any more: {unneeded:?}");
    let shown: String = wrong.iter().take(20).cloned().collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{shown}", wrong.len(), commands.len());
}
