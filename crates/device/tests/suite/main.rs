//! What always holds of a device: each packet ends once, refusals say where, why and what to do, nothing
//! that a caller gives makes it panic, and packets leave as a real kernel let them.

mod hostile;
mod ownership;
mod recorded;
mod refusals;

use tidegate_device::{EgressConfig, EgressDevice, OfferedPacket, PacketFields, Time};

/// The rate of the devices' link, bits per second.
const LINK: u64 = 10_000_000;

fn device(commands: &str) -> EgressDevice {
    let config = EgressConfig { rate: Some(LINK), seed: 1, ..EgressConfig::default() };
    EgressDevice::new(&config, commands).expect(commands)
}

/// A datagram of flow `port`, ECT(0).
fn packet(id: u64, port: u16, length: u32) -> OfferedPacket<'static> {
    let source = std::net::SocketAddr::from(([192, 0, 2, 1], port));
    let fields = PacketFields::udp(source, ([198, 51, 100, 7], 443).into());
    OfferedPacket::from_fields(id, PacketFields { dsfield: 2, ..fields }, length)
}

#[test]
fn a_device_can_move_to_another_thread() {
    fn moves<T: Send + 'static>(_: &T) {}
    moves(&device(""));
}

#[test]
fn debug_shows_what_is_in_it() {
    let mut device = device("qdisc add dev eth0 root handle 1: fq_codel");
    let _ = device.offer(Time(0), &packet(1, 1, 100)).expect("it is taken");
    let text = format!("{device:?}");
    assert!(text.contains("root: fq_codel 1: on root: 1 packets"), "{text}");
}
