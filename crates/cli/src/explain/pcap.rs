//! Packets from a capture: the first of every flow.

use crate::pcap_file;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::Path;
use tidegate_inspect::{Framing, Packet, of_frame};

/// The most flows of a capture that are explained.
const MOST_FLOWS: usize = 64;

/// A packet of a recording.
pub(super) struct Recorded {
    /// Its number, from 1.
    pub(super) number: u64,
    pub(super) packet: Packet,
}

/// The first packet of every flow, or the one of this number.
pub(super) fn packets(path: &Path, number: Option<u64>) -> anyhow::Result<Vec<Recorded>> {
    let (mut found, mut flows, mut count) = (Vec::new(), BTreeSet::new(), 0);
    let mut read = |captured: tidegate_pcap::CapturedPacket<'_>, _: u64| {
        count = captured.number;
        if number.is_some_and(|number| number != captured.number) {
            return anyhow::Ok(());
        }
        let framing = framing(captured.link)?;
        let Some(packet) = of_frame(captured.bytes, captured.length as usize, framing) else {
            return Ok(());
        };
        let flow = (
            packet.ethertype,
            packet.protocol,
            packet.source,
            packet.destination,
            packet.ports,
            packet.dsfield >> 2,
        );
        if flows.insert(flow) && found.len() < MOST_FLOWS {
            found.push(Recorded { number: captured.number, packet });
        }
        Ok(())
    };
    let broken = pcap_file::open(path)?.each(&mut read).with_context(|| path.display().to_string())?;
    let until = broken.map(|broken| format!(" before it is damaged ({broken})")).unwrap_or_default();
    if found.is_empty() {
        match number {
            Some(number) => {
                bail!("{} has no packet {number} that can be read; it has {count}{until}", path.display())
            }
            None => bail!("{} has no packet that can be read{until}", path.display()),
        }
    }
    Ok(found)
}

fn framing(link_type: u16) -> anyhow::Result<Framing> {
    Framing::of_link_type(u32::from(link_type)).with_context(|| {
        format!(
            "holds frames of link type {link_type}, which are not read; record on an Ethernet device, \
        or `-i any`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_pcap::{Interface, Record, Writer, link};

    /// A frame: Ethernet, and a packet in words.
    fn frame(words: &str) -> Vec<u8> {
        let packet = Packet::parse(words).expect(words);
        let mut frame = vec![0; 12];
        frame.extend(packet.ethertype.to_be_bytes());
        frame.extend(packet.head().network());
        frame
    }

    #[test]
    fn the_first_packet_of_every_flow() {
        let words = [
            "udp 10.0.0.1 > 10.0.0.2:53 len 60",
            "tcp [2001:db8::1]:22 > [2001:db8::2]:5000 dscp AF21 len 80",
        ];
        let mut writer = Writer::new("a test");
        writer.interface(Interface { name: "eth0", description: "", link: link::ETHERNET });
        for words in [words[0], words[0], words[1]] {
            let bytes = frame(words);
            writer.packet(&Record { bytes: &bytes, length: bytes.len() as u32, ..Record::default() });
        }
        let path = std::env::temp_dir().join(format!("tidegate-explain-{}.pcapng", std::process::id()));
        std::fs::write(&path, writer.take()).expect("a file");
        let result_of = |number| {
            packets(&path, number).map(|all| all.iter().map(|one| one.packet.to_string()).collect::<Vec<_>>())
        };
        let (all, third, tenth) = (result_of(None), result_of(Some(3)), result_of(Some(10)));
        std::fs::remove_file(&path).expect("it goes");
        assert_eq!(all.expect("packets"), words);
        assert_eq!(third.expect("one"), words[1..]);
        assert!(
            tenth
                .expect_err("no such packet")
                .to_string()
                .contains("has no packet 10 that can be read; it has 3")
        );
    }
}
