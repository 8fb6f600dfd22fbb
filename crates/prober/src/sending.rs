//! A stream sent on schedule: asleep until shortly before a packet is due, then looking at the clock; what is
//! due together goes together.

use std::net::SocketAddr;

use tidegate_measure::stream::{Due, PacketTrain, Stream};
use tidegate_probe_wire::{Departures, PacketHeader, ProbePacketKind, SessionKey};
use tidegate_sys::datagrams::{BATCH, DatagramSocket, OutgoingDatagram};

use crate::clock::ProbeClock;

/// What is sent where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) clock: &'a ProbeClock,
    pub(crate) socket: &'a DatagramSocket,
    pub(crate) to: SocketAddr,
    pub(crate) stream: &'a Stream,
    /// Whose packets they are.
    pub(crate) session: u32,
    /// By which they are sealed.
    pub(crate) key: &'a SessionKey,
    /// Of which exchange, modulo 256.
    pub(crate) exchange: u8,
}

impl Sending<'_> {
    /// Sends it, the first packet now, until its end or until `is_over`. When each packet was sent.
    pub(crate) fn send(&self, is_over: impl Fn() -> bool) -> Departures {
        tidegate_sys::scheduling::wake_on_time();
        let mut departures = Departures::new(self.stream.packets() as usize);
        let mut packets = vec![filling(); BATCH];
        let begin = self.clock.now();
        let mut dues = self.stream.dues().peekable();
        let mut batch: Vec<Due> = Vec::with_capacity(BATCH);
        while let Some(first) = dues.next() {
            if !self.clock.wait_until(begin.saturating_add(first.at_ns), &is_over) {
                break;
            }
            let passed = self.clock.now().saturating_sub(begin);
            batch.clear();
            batch.push(first);
            while batch.len() < BATCH
                && let Some(due) = dues.next_if(|due| due.at_ns <= passed)
            {
                batch.push(due);
            }
            self.send_batch(&batch, &mut packets, &mut departures);
            if is_over() {
                break;
            }
        }
        departures
    }

    fn send_batch(&self, batch: &[Due], packets: &mut [Vec<u8>], departures: &mut Departures) {
        let sent = self.clock.now();
        for (due, packet) in batch.iter().zip(&mut *packets) {
            let Sending { session, exchange, .. } = *self;
            let header =
                PacketHeader { kind: ProbePacketKind::Data, exchange, session, number: due.number, sent };
            packet[..PacketHeader::ENCODED_LEN].copy_from_slice(&header.write(self.key));
        }
        let outgoing: Vec<OutgoingDatagram<'_>> = batch
            .iter()
            .zip(&*packets)
            .map(|(due, packet)| OutgoingDatagram {
                to: self.to,
                ds: due.ds_field(),
                bytes: &packet[..usize::from(due.payload.clamp(PacketTrain::LEAST, PacketTrain::MOST))],
            })
            .collect();
        self.socket.send(&outgoing, |place| departures.note(batch[place].number, sent));
    }
}

/// What fills a packet: bytes that no link can make shorter.
fn filling() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..PacketTrain::MOST).map(next).collect()
}
