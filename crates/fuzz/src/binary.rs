//! Parsers of files that people hand over: results, captures, pickles; and of the tool socket.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tidegate_inspect::Framing;
use tidegate_packet::{Dissector, Head, dissect, dissect_inner, innermost};
use tidegate_pcap::{Next, Parser};

pub(crate) fn results(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(experiment) = tidegate_analysis::experiment::from_json(text) {
        let written = tidegate_analysis::experiment::to_json(&experiment);
        let _ = tidegate_analysis::experiment::from_json(&written);
    }
    if let Ok(trial) = tidegate_analysis::trial::from_json(text) {
        let _ = tidegate_report::text(&trial);
    }
}

pub(crate) fn flent(bytes: &[u8]) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(bytes).expect("a vector takes everything");
    flent_gz(&packed.finish().expect("a vector takes everything"));
}

pub(crate) fn flent_gz(bytes: &[u8]) {
    let _ = tidegate_analysis::experiment::from_flent(bytes);
}

/// Reads a capture as a file reader does: what needs more bytes gets them, as far as there are any.
pub(crate) fn pcap(bytes: &[u8]) {
    let (mut parser, mut at, mut given) = (Parser::new(), 0, 0);
    let mut idle = 0;
    loop {
        let raw = &bytes[at..given];
        match parser.next(raw) {
            Ok(Next::Packet(used, packet)) => {
                assert!(used > 0 && used <= raw.len());
                frame(packet.bytes);
                at += used;
            }
            Ok(Next::Passed(used)) => {
                assert!(used <= raw.len());
                // Only the format may be recognised without using anything.
                idle += usize::from(used == 0);
                assert!(idle <= 1, "it goes on without using anything");
                at += used;
            }
            Ok(Next::Needs(needed)) => {
                assert!(needed > raw.len(), "it needs no more than it has");
                if given == bytes.len() {
                    let _ = parser.end(raw.len());
                    return;
                }
                given = (at + needed).min(bytes.len());
            }
            Err(broken) => {
                let _ = broken.to_string();
                return;
            }
        }
    }
}

pub(crate) fn frame(bytes: &[u8]) {
    let mut head = Head::from_frame(bytes);
    for dissector in [Dissector::Modern, Dissector::Legacy] {
        let _ = (dissect(&head, dissector), innermost(&head, dissector));
    }
    let _ = dissect_inner(&head);
    let dsfield = head.dsfield();
    head.set_dsfield(!dsfield);
    for framing in [Framing::Ethernet, Framing::Bare, Framing::Cooked, Framing::Cooked2] {
        if let Some(packet) = tidegate_inspect::of_frame(bytes, bytes.len(), framing) {
            let _ = (packet.to_string(), packet.shortest(), packet.usual_length(), packet.answer());
        }
    }
}

pub(crate) fn pickle(bytes: &[u8]) {
    let _ = tidegate_analysis::ping::from_pingexp(bytes);
}

pub(crate) fn tool_socket(bytes: &[u8]) {
    tidegate::fuzzing::wire(bytes);
}
