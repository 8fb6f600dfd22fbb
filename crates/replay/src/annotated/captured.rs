//! The packets of one policy's run, for Wireshark.

use super::pcapng_writer::{Entry, PcapSink, PcapngWriter, fate, queue, wait};
use crate::captured::ExternalError;
use crate::captured::{CaptureNetwork, ClassLabel, PacketLife, PacketObserver};
use tidegate_packet::Time;
use tidegate_sim::SojournRecord;
use tidegate_trial::START;

/// A capture's packets under one policy, written as they leave.
pub struct CapturedPackets {
    writer: PcapngWriter,
    /// When the capture began, ns since 1970.
    began: u64,
}

impl CapturedPackets {
    /// Begins a file for a policy of this name, with a capture that began then, ns since 1970.
    pub fn new(sink: Box<dyn PcapSink>, began: u64, policy: &str) -> CapturedPackets {
        CapturedPackets { writer: PcapngWriter::new(sink, &format!("policy {policy}")), began }
    }
}

impl PacketObserver for CapturedPackets {
    /// Describes the links.
    fn begin(&mut self, gateway: &CaptureNetwork) {
        for (at, name) in &gateway.links {
            let description = match gateway.device(*at) {
                Some(_) => {
                    "packets that were in its queues, when the line began to send them or they were lost"
                }
                None => {
                    "packets that waited nowhere else, when the line began to send them or they were lost"
                }
            };
            self.writer.interface(name, description);
        }
    }

    /// A packet has ended.
    fn left(
        &mut self,
        gateway: &CaptureNetwork,
        named: &ClassLabel,
        life: &PacketLife,
        sojourn: &SojournRecord,
    ) {
        let interface = gateway.links.iter().position(|(_, name)| *name == named.device).unwrap_or(0);
        self.writer.note(Entry {
            number: u64::from(life.number),
            at: sojourn.ended,
            interface: interface as u32,
            queue: queue(life.queue.map_or(sojourn.queue, |(_, location)| location)),
            sojourn,
            link_header: gateway.link_header(sojourn.link),
            direction: Some(life.way),
            comment: comment(gateway, named, life, sojourn),
        });
    }

    /// Writes what left until now.
    fn advanced(&mut self, now: Time) -> Result<(), ExternalError> {
        self.writer.write(now, (START, self.began))
    }
}

/// `eth0 1:20 (port 22), fq_codel, flow 17: waited 12.4 ms (3.0 ms in modem), sent`.
fn comment(
    gateway: &CaptureNetwork,
    named: &ClassLabel,
    life: &PacketLife,
    sojourn: &SojournRecord,
) -> String {
    let flow = life
        .queue
        .and_then(|(_, location)| location.queue)
        .map_or(String::new(), |queue| format!(", flow {queue}"));
    let waited = wait(sojourn.ended.since(life.arrived).0);
    let elsewhere: Vec<String> = life
        .waits
        .iter()
        .filter(|(link, waited)| gateway.name(*link) != named.device && *waited > 0)
        .map(|(link, waited)| format!("{} in {}", wait(*waited), gateway.name(*link)))
        .collect();
    let elsewhere = if elsewhere.is_empty() { String::new() } else { format!(" ({})", elsewhere.join(", ")) };
    format!(
        "{}{flow}: waited {waited}{elsewhere}, {}",
        named.words(),
        fate(sojourn, gateway.device(sojourn.link).is_some())
    )
}
