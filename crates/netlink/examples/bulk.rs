//! How long 3,333 commands take: one by one, in pieces, as a whole plan with its looking before and after,
//! and by the real `tc -batch`; side by side in network namespaces, each of its own. Needs root.
//!
//! `cargo run --profile ci -p tidegate-netlink --example bulk [ROUNDS]`

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_netlink::Kernel;
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_plan::plan;
use tidegate_policy::dump::Installed;
use tidegate_policy::{LinkDriver, Op};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::netlink::Links;

const CLASSES: u32 = 1666;
const NOW: Time = Time(1_000_000_000);

/// A qdisc, and a class and a filter for each of many hosts.
fn script() -> Vec<String> {
    let mut lines = vec!["qdisc add dev link0 root handle 1: htb default 1".to_owned()];
    for number in 2..CLASSES + 2 {
        lines.push(format!("class add dev link0 parent 1: classid 1:{number:x} htb rate 64kbit ceil 1mbit"));
        let (third, fourth) = (number / 250, number % 250);
        lines.push(format!(
            "filter add dev link0 parent 1: protocol ip prio 1 u32 match ip dst 10.1.{third}.{fourth} \
            flowid 1:{number:x}"
        ));
    }
    lines
}

fn op(line: &str) -> Op {
    let words: Vec<String> = line.split_whitespace().map(String::from).collect();
    match tc::parse(&words, &Env::default()) {
        Ok(tc::TcCommandLine { command: TcCommand::Apply(op), .. }) => op,
        other => panic!("{line}: {other:?}"),
    }
}

/// What is after these commands on the model machine.
fn wanted(ops: &[Op]) -> Installed {
    let (mut gateway, mut pool, mut draws) = (Gateway::new(), Pool::new(0), Seeded::new(1));
    gateway.add_device("link0", DeviceSpec { tx_queue_len: 1000, ..DeviceSpec::of(&LinkDriver::Ifb) });
    for op in ops {
        gateway
            .apply(GatewayContext { now: NOW, pool: &mut pool, random: &mut draws }, op)
            .expect("the model takes it");
    }
    tidegate_plan::installed(&mut gateway, NOW, "link0")
}

/// Does something in a namespace with the device in it, and takes the time of that.
fn timed(work: impl FnOnce(&mut Kernel) + Send + 'static) -> io::Result<Duration> {
    NamespaceThread::new("bulk")?.go(|| {
        Links::open()?.create_like("link0", "ifb", 1000)?;
        let mut kernel = Kernel::open()?;
        let begun = Instant::now();
        work(&mut kernel);
        Ok(begun.elapsed())
    })?
}

fn round(ops: &[Op], lines: &[String]) -> io::Result<[Duration; 3]> {
    let (one, whole) = (ops.to_vec(), ops.to_vec());
    let state = wanted(ops);
    let one = timed(move |kernel| kernel.carry_out(&one).expect("the kernel takes it"))?;
    let whole = timed(move |kernel| {
        let (live, _) = kernel.installed("link0").expect("what stands is told");
        let way = plan(&live, &state, &whole).expect("there is a way");
        kernel.carry_out(way.ops()).expect("the kernel takes it");
        let (live, _) = kernel.installed("link0").expect("what stands is told");
        assert!(plan(&live, &state, &whole).expect("there is a way").is_empty());
    })?;
    let file = std::env::temp_dir().join(format!("tidegate-bulk-{}.batch", std::process::id()));
    std::fs::write(&file, lines.join("\n") + "\n")?;
    let batch = file.clone();
    let real = timed(move |_| {
        let status = Command::new("tc").arg("-batch").arg(&batch).status().expect("tc is installed");
        assert!(status.success());
    })?;
    std::fs::remove_file(file)?;
    Ok([one, whole, real])
}

fn main() -> io::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(5);
    let lines = script();
    let ops: Vec<Op> = lines.iter().map(|line| op(line)).collect();
    let mut all: [Vec<Duration>; 3] = Default::default();
    for _ in 0..rounds {
        for (times, time) in all.iter_mut().zip(round(&ops, &lines)?) {
            times.push(time);
        }
    }
    let names = ["one by one", "looked, planned, one by one, looked again", "the real tc -batch"];
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let times = all.map(|mut times| median(&mut times));
    println!("{} commands, median of {rounds} rounds", ops.len());
    for (name, time) in names.iter().zip(times) {
        println!(
            "{:>8.1} ms  {:>5.2} of tc  {name}",
            time.as_secs_f64() * 1e3,
            time.as_secs_f64() / times[2].as_secs_f64()
        );
    }
    Ok(())
}
