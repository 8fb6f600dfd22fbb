//! Packets from a recording: the two formats of tcpdump, read as far as frames go.

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::Path;
use tidegate_insight::{Framing, Packet, of_frame};

/// The longest recording that is read, bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Flows of a recording that are told of.
const MOST_FLOWS: usize = 64;

/// A packet of a recording.
pub(super) struct Recorded {
    /// Its number, from 1.
    pub(super) number: u64,
    pub(super) packet: Packet,
}

/// The first packet of every flow, or the one asked for.
pub(super) fn packets(path: &Path, number: Option<u64>) -> anyhow::Result<Vec<Recorded>> {
    let length = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    if length > MAX_BYTES {
        bail!("{} is longer than {} MB; cut a part out of it with `editcap -r`", path.display(), MAX_BYTES >> 20);
    }
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let frames = frames(&bytes).with_context(|| path.display().to_string())?;
    let mut found = Vec::new();
    let mut flows = BTreeSet::new();
    for (at, frame) in (1..).zip(&frames) {
        if number.is_some_and(|number| number != at) {
            continue;
        }
        let Some(packet) = of_frame(frame.octets, frame.length, frame.framing) else { continue };
        let flow =
            (packet.ethertype, packet.protocol, packet.source, packet.destination, packet.ports, packet.dsfield >> 2);
        if flows.insert(flow) && found.len() < MOST_FLOWS {
            found.push(Recorded { number: at, packet });
        }
    }
    if found.is_empty() {
        match number {
            Some(number) => {
                bail!("{} has no packet {number} that can be read; it has {}", path.display(), frames.len())
            }
            None => bail!("{} has no packet that can be read", path.display()),
        }
    }
    Ok(found)
}

/// A recorded frame.
struct Frame<'a> {
    octets: &'a [u8],
    /// As long as it was on the wire.
    length: usize,
    framing: Framing,
}

const PCAP: [u8; 4] = [0xa1, 0xb2, 0xc3, 0xd4];
const PCAP_NS: [u8; 4] = [0xa1, 0xb2, 0x3c, 0x4d];
const PCAPNG: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

fn frames(bytes: &[u8]) -> anyhow::Result<Vec<Frame<'_>>> {
    let magic = bytes.first_chunk::<4>().copied().unwrap_or_default();
    let turned: [u8; 4] = [magic[3], magic[2], magic[1], magic[0]];
    if magic == PCAP || magic == PCAP_NS {
        pcap(bytes, true)
    } else if turned == PCAP || turned == PCAP_NS {
        pcap(bytes, false)
    } else if u32::from_be_bytes(magic) == PCAPNG {
        pcapng(bytes)
    } else {
        bail!("is no recording; write one with `tcpdump -w FILE`")
    }
}

/// Words of a file in one of the two byte orders.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Reader<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        let word = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    fn half(&self, at: usize) -> Option<u16> {
        let half = *self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.big { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) })
    }

    fn octets(&self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.bytes.get(at..at.checked_add(length)?)
    }
}

fn framing(link_type: u32) -> anyhow::Result<Framing> {
    Framing::of_link_type(link_type & 0x0fff_ffff).with_context(|| {
        format!("holds frames of link type {link_type}, which are not read; record on an Ethernet device, or `-i any`")
    })
}

/// The old format: a header of 24 octets, then 16 before each frame.
fn pcap(bytes: &[u8], big: bool) -> anyhow::Result<Vec<Frame<'_>>> {
    let reader = Reader { bytes, big };
    let framing = framing(reader.word(20).context("is cut short")?)?;
    let (mut frames, mut at) = (Vec::new(), 24);
    while let (Some(kept), Some(length)) = (reader.word(at + 8), reader.word(at + 12)) {
        let Some(octets) = reader.octets(at + 16, kept as usize) else { break };
        frames.push(Frame { octets, length: length as usize, framing });
        at += 16 + kept as usize;
    }
    Ok(frames)
}

/// The new one (draft-ietf-opsawg-pcapng): blocks, each with its kind and length.
fn pcapng(bytes: &[u8]) -> anyhow::Result<Vec<Frame<'_>>> {
    const INTERFACE: u32 = 1;
    const SIMPLE: u32 = 3;
    const ENHANCED: u32 = 6;
    let mut reader = Reader { bytes, big: bytes.get(8..12) == Some(&BYTE_ORDER[..]) };
    let (mut frames, mut framings, mut at) = (Vec::new(), Vec::new(), 0);
    while let (Some(kind), Some(length)) = (reader.word(at), reader.word(at + 4)) {
        if kind == PCAPNG {
            // Each section says its own byte order and has its own interfaces.
            reader.big = bytes.get(at + 8..at + 12) == Some(&BYTE_ORDER[..]);
            framings.clear();
        }
        let Some(length) = reader.word(at + 4).filter(|_| length > 0).map(|length| length as usize) else { break };
        match kind {
            INTERFACE => framings.push(framing(u32::from(reader.half(at + 8).unwrap_or(0)))?),
            ENHANCED => {
                let known = reader.word(at + 8).and_then(|interface| framings.get(interface as usize)).copied();
                let sizes = reader.word(at + 20).zip(reader.word(at + 24));
                if let (Some(framing), Some((kept, wire))) = (known, sizes)
                    && let Some(octets) = reader.octets(at + 28, kept as usize)
                {
                    frames.push(Frame { octets, length: wire as usize, framing });
                }
            }
            SIMPLE => {
                let kept = length.saturating_sub(16);
                if let (Some(framing), Some(wire)) = (framings.first().copied(), reader.word(at + 8))
                    && let Some(octets) = reader.octets(at + 12, kept.min(wire as usize))
                {
                    frames.push(Frame { octets, length: wire as usize, framing });
                }
            }
            _ => {}
        }
        at += length.max(12);
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame: Ethernet, and a packet in words.
    fn frame(words: &str) -> Vec<u8> {
        let packet = Packet::parse(words).expect(words);
        let mut frame = vec![0; 12];
        frame.extend(packet.ethertype.to_be_bytes());
        frame.extend(packet.head().network());
        frame
    }

    fn told(bytes: &[u8]) -> Vec<String> {
        let frames = frames(bytes).expect("a recording");
        let packets = frames.iter().map(|frame| of_frame(frame.octets, frame.length, frame.framing));
        packets.map(|packet| packet.map_or_else(|| "nothing".to_owned(), |packet| packet.to_string())).collect()
    }

    const WORDS: [&str; 2] =
        ["udp 10.0.0.1 > 10.0.0.2:53 len 60", "tcp [2001:db8::1]:22 > [2001:db8::2]:5000 dscp AF21 len 80"];

    #[test]
    fn both_byte_orders_of_the_old_format() {
        for big in [true, false] {
            let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
            let mut bytes = word(0xa1b2_c3d4).to_vec();
            bytes.extend([0; 16]);
            bytes.extend(word(1));
            for words in WORDS {
                let frame = frame(words);
                bytes.extend([0; 8]);
                bytes.extend(word(frame.len() as u32));
                bytes.extend(word(frame.len() as u32));
                bytes.extend(frame);
            }
            assert_eq!(told(&bytes), WORDS);
            // What is cut off at the end is left out.
            assert_eq!(told(&bytes[..bytes.len() - 1]), WORDS[..1]);
        }
    }

    #[test]
    fn blocks_of_the_new_format() {
        let word = u32::to_le_bytes;
        let block = |kind: u32, body: &[u8]| {
            let mut body = body.to_vec();
            body.resize(body.len().next_multiple_of(4), 0);
            let length = word(body.len() as u32 + 12);
            [&word(kind)[..], &length, &body, &length].concat()
        };
        let mut bytes = block(PCAPNG, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(block(1, &[1, 0, 0, 0, 0, 0, 0, 0]));
        let (first, second) = (frame(WORDS[0]), frame(WORDS[1]));
        let length = word(first.len() as u32);
        bytes.extend(block(6, &[&[0; 12][..], &length, &length, &first].concat()));
        bytes.extend(block(5, &[0; 8]));
        bytes.extend(block(3, &[&word(second.len() as u32)[..], &second].concat()));
        assert_eq!(told(&bytes), WORDS);
    }

    #[test]
    fn what_is_no_recording() {
        for bytes in [&b"tc qdisc add"[..], b"", b"\xa1\xb2\xc3\xd4"] {
            assert!(frames(bytes).is_err());
        }
    }
}
