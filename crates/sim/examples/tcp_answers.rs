//! What the simulator answers to a question about TCP, in files: `tcp_answers DIR…`.
//!
//! A folder holds `setup` (`RATE ECN SECONDS`), `script.tc` (the qdiscs of device b0, and the delays of the
//! two return hops) and `flows` (`START CONTROL SECONDS NAME`), as the recorded runs of `tests/data` do. Each
//! flow's record is written to `ours/NAME.csv`: time in ms, acknowledged bytes, window, smoothed round trip
//! in µs and retransmissions each 100 ms. It stands beside what a real Linux answered to the same question
//! (`cargo xtask tcp-fuzz`).
//!
//! After `--packets` every folder gets `ours/packets.csv` too: when each packet came to wait before b0, when
//! it left or was lost, its source port and its sequence number; what the oracle's `packets.csv` tells of
//! those that left.

// A program of files, beside the room that has none.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;
use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Nanos, Pool, Seeded, Time};
use tidegate_sim::{
    CongestionControl, EcnCodepoint, Ends, FlowSpec, GatewayMachine, LinkSpec, Net, Port, SojournEnd,
    SojournRecord,
};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

/// Delay of a return hop that the script does not change.
const HOP: Nanos = Nanos::millis(10);

fn main() -> Result<(), String> {
    let mut packets = false;
    for dir in std::env::args().skip(1) {
        if dir == "--packets" {
            packets = true;
            continue;
        }
        answer(Path::new(&dir), packets).map_err(|error| format!("{dir}: {error}"))?;
    }
    Ok(())
}

/// One line of `flows`.
struct Flow {
    start: u64,
    control: CongestionControl,
    seconds: u64,
    name: String,
}

impl Flow {
    fn read(line: &str) -> Result<Flow, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, control, seconds, name] = words[..] else { return Err(format!("flows: {line}")) };
        let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{word}: {error}"));
        let control = match control {
            "reno" => CongestionControl::Reno,
            "cubic" => CongestionControl::Cubic,
            "bbr" => CongestionControl::Bbr,
            "dctcp" => CongestionControl::Dctcp,
            other => return Err(format!("{other}: no such congestion control")),
        };
        Ok(Flow { start: number(start)?, control, seconds: number(seconds)?, name: name.to_owned() })
    }
}

fn answer(dir: &Path, packets: bool) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(dir.join(name)).map_err(|error| format!("{name}: {error}"));
    let (setup, script) = (read("setup")?, read("script.tc")?);
    let flows: Vec<Flow> = read("flows")?.lines().map(Flow::read).collect::<Result<_, _>>()?;
    let ecn =
        if setup.split_whitespace().nth(1) == Some("1") { EcnCodepoint::Ect0 } else { EcnCodepoint::Off };
    let mut net = Net::new(machine(&script)?, 1, Time(0));
    let port = net.link(LinkSpec::port(Port(0), None, Nanos(0)));
    let delay = ["vb", "a0"].into_iter().map(|hop| hop_delay(&script, hop)).sum::<Result<u64, String>>()?;
    let back = net.link(LinkSpec::wire(Nanos(delay)));
    let (forward, back) = (net.path(&[port]), net.path(&[back]));
    net.sample_every(Nanos::millis(100));
    if packets {
        net.observe(port);
    }
    let ids: Vec<_> = (40000..)
        .zip(&flows)
        .map(|(source, flow)| {
            net.tcp(FlowSpec {
                control: flow.control,
                ecn,
                start: Time(0) + Nanos::secs(flow.start),
                stop: Time(0) + Nanos::secs(flow.start + flow.seconds),
                drains: true,
                ..FlowSpec::bulk(Ends::v4([10, 1, 0, 2], source, [10, 2, 0, 2], 5001), forward, back)
            })
        })
        .collect();
    let end = flows.iter().map(|flow| flow.start + flow.seconds).max().unwrap_or(0);
    net.run(Time(0) + Nanos::secs(end + 2));
    let ours = dir.join("ours");
    fs::create_dir_all(&ours).map_err(|error| error.to_string())?;
    if packets {
        fs::write(ours.join("packets.csv"), stays(net.take_sojourns())).map_err(|error| error.to_string())?;
    }
    for (flow, id) in flows.iter().zip(ids) {
        let mut text = String::from("time_ms,acked,cwnd,srtt_us,retrans\n");
        for s in net.flow_samples(id) {
            let (ms, us) = (s.at.0 / 1_000_000, s.srtt.0 / 1000);
            text += &format!("{ms},{},{},{us},{}\n", s.acked, s.cwnd, s.retransmissions);
        }
        fs::write(ours.join(format!("{}.csv", flow.name)), text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A line for each packet that came before b0.
fn stays(sojourns: impl Iterator<Item = SojournRecord>) -> String {
    let mut text = String::from("came_ns,ended_ns,sport,seq,flags,size,dsfield,fate\n");
    for sojourn in sojourns {
        let head = sojourn.head.network();
        // IPv4 without options, then TCP.
        let at = 20;
        let number = |at: usize, bytes: usize| {
            head[at..at + bytes].iter().fold(0_u32, |n, byte| n << 8 | u32::from(*byte))
        };
        let outcome = if sojourn.end == SojournEnd::Sent { "sent" } else { "lost" };
        text += &format!("{},{},{},{},", sojourn.came.0, sojourn.ended.0, number(at, 2), number(at + 4, 4));
        text += &format!("{:x},{},{},{outcome}\n", number(at + 13, 1), sojourn.len, sojourn.dsfield);
    }
    text
}

/// The delay that the script gives a return hop, in ns.
fn hop_delay(script: &str, hop: &str) -> Result<u64, String> {
    let Some(line) = script.lines().find(|line| line.contains(&format!("dev {hop} "))) else {
        return Ok(HOP.0);
    };
    let word =
        line.split_once(" delay ").and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or_default();
    let us = word.strip_suffix("us").and_then(|number| number.parse::<u64>().ok());
    us.map(|us| us * 1000).ok_or(format!("{line}: a delay in us is missing"))
}

/// A router with the qdiscs that the script gives b0.
fn machine(script: &str) -> Result<GatewayMachine, String> {
    let mut gateway = Gateway::new();
    let device = gateway.add_device("b0", DeviceSpec { hz: 1000, ..DeviceSpec::default() });
    let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
    for line in script.lines().filter(|line| line.contains(" dev b0 ")) {
        let words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
        let parsed = tc::parse(&words, &Env::default()).map_err(|refusal| format!("{line}: {refusal:?}"))?;
        let TcCommand::Apply(op) = parsed.command else { return Err(format!("{line}: changes nothing")) };
        let world = GatewayContext { now: Time(0), pool: &mut pool, random: &mut source };
        gateway.apply(world, &op).map_err(|error| format!("{line}: {error:?}"))?;
    }
    Ok(GatewayMachine::new(gateway, [device], 1))
}
