//! How fast a stream can be sent and received on this machine: `cargo run --release -p tidegate-prober
//! --example throughput`.

use std::net::IpAddr;

use tidegate_measure::stream::{Exchange, PacketTrain, Path, Stream};
use tidegate_probe_wire::Quotas;
use tidegate_prober::serve::{Server, Serving};
use tidegate_prober::{ServerSession, ServerTarget};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut quotas = Quotas::default();
    quotas.limits.bits_per_second = u64::MAX;
    let at: IpAddr = [127, 0, 0, 1].into();
    let server = Server::start(&Serving { at: vec![at], port: 0, token: None, quotas })?;
    let mut session = ServerSession::connect(&ServerTarget {
        port: server.at()[0].port(),
        ..ServerTarget::new("127.0.0.1")
    })?;
    for megabits in [10.0, 100.0, 500.0, 1000.0, 2000.0] {
        for (name, is_up) in [("up", true), ("down", false)] {
            let stream = Stream::steady(PacketTrain::at_rate(1400, megabits * 1e6, 1_000_000_000));
            let (up, down) = if is_up { (stream, Stream::default()) } else { (Stream::default(), stream) };
            let outcome = session.carry_out(&Exchange { up, down })?;
            let trace = if is_up { outcome.up } else { outcome.down };
            let times = || trace.packets.iter().filter_map(|packet| packet.sent);
            let length = times().max().unwrap_or(0).saturating_sub(times().min().unwrap_or(0)).max(1);
            println!(
                "{megabits} Mbit/s {name}: sent {} of {} in {:.3} s ({:.0} Mbit/s), arrived {}",
                trace.sent(),
                trace.stream.packets(),
                length as f64 / 1e9,
                trace.sent() as f64 * 1400.0 * 8e3 / length as f64,
                trace.arrived()
            );
        }
    }
    for caveat in session.caveats() {
        println!("{caveat}");
    }
    Ok(())
}
