//! This machine's own kernel, in network namespaces that the test makes: what is sent is installed as on the
//! model machine, listed in the same words, and refusals are the same.
//!
//! Kinds that the kernel does not have, and machines where no namespace may be made, are left out by name.

use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_netlink::{Kernel, KernelError};
use tidegate_packet::{Handle, Pool, Seeded, Time};
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_policy::{LinkDriver, Op};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat, TcCommand};
use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::Links;

const DEVICES: [&str; 3] = ["link0", "link1", "ifb0"];
const QUEUE: u32 = 1000;

/// What is there after each command: what was refused and in which words, and the listings.
#[derive(Debug, PartialEq)]
struct Seen {
    refused: Vec<(String, Option<i32>, Option<String>)>,
    listings: Vec<String>,
}

fn op(command: &str) -> Op {
    let args: Vec<String> = command.split_whitespace().skip(1).map(String::from).collect();
    match tc::parse(&args, &Env::default()) {
        Ok(tc::TcCommandLine { command: TcCommand::Apply(op), .. }) => op,
        other => panic!("{command}: {other:?}"),
    }
}

fn listing(device: &str, qdiscs: &[QdiscDump], classes: &[ClassDump], filters: &[Vec<FilterDump>]) -> String {
    let flags = ShowFlags::FULL;
    let mut text = tc::show_qdiscs(qdiscs, &ShowWhat::on(Object::Qdisc, device), &flags);
    text += &tc::show_classes(classes, &ShowWhat::on(Object::Class, device), &flags);
    // Not every kernel counts how often filters are evaluated.
    let plain = ShowFlags { stats: false, ..flags };
    for filters in filters {
        text += &tc::show_filters(filters, &ShowWhat::on(Object::Filter, device), &plain);
    }
    text
}

/// The hooks and classes of a device where filters may hang.
fn places(qdiscs: &[QdiscDump], classes: &[ClassDump]) -> Vec<Handle> {
    let of_classes = classes.iter().map(|class| class.classid);
    qdiscs.iter().map(|qdisc| qdisc.handle).filter(|handle| !handle.is_none()).chain(of_classes).collect()
}

/// The kernel's view.
fn of_kernel(commands: Vec<String>) -> Seen {
    // Otherwise the kernel sends packets of its own as soon as a device is up.
    namespace_thread::set("net/ipv6/conf/default/disable_ipv6", "1")
        .expect("IPv6 can be switched off in a namespace");
    let mut links = Links::open().expect("netlink");
    DEVICES.iter().for_each(|name| links.create(name, "ifb", QUEUE).expect("an ifb"));
    let mut kernel = Kernel::open().expect("netlink");
    let mut seen = Seen { refused: Vec::new(), listings: Vec::new() };
    for command in commands {
        match kernel.apply(&op(&command)) {
            Ok(()) => {}
            Err(KernelError::Refused(refused)) => {
                seen.refused.push((command, Some(refused.errno), refused.message))
            }
            Err(problem) => panic!("{command}: {problem}"),
        }
    }
    for device in DEVICES {
        let installed = kernel.qdiscs(device).expect("what stands there is told");
        assert!(installed.unread.is_empty(), "{:?}", installed.unread);
        let places = places(&installed.qdiscs, &installed.classes);
        let filters: Vec<_> =
            places.iter().map(|at| kernel.filters(device, *at).expect("filters are read")).collect();
        seen.listings.push(listing(device, &installed.qdiscs, &installed.classes, &filters));
    }
    seen
}

/// The model's view.
fn of_model(commands: &[String]) -> Seen {
    let (mut gateway, mut pool, mut draws) = (Gateway::new(), Pool::new(0), Seeded::new(1));
    let spec = DeviceSpec { tx_queue_len: QUEUE, speed_mbit: None, ..DeviceSpec::of(&LinkDriver::Ifb) };
    let devices = DEVICES.map(|name| gateway.add_device(name, spec));
    let now = Time(1_000_000_000);
    let mut seen = Seen { refused: Vec::new(), listings: Vec::new() };
    for command in commands {
        let world = GatewayContext { now, pool: &mut pool, random: &mut draws };
        if let Err(error) = gateway.apply(world, &op(command)) {
            seen.refused.push((command.clone(), number(&error), error.message.map(String::from)));
        }
    }
    for (device, name) in devices.into_iter().zip(DEVICES) {
        let (qdiscs, classes) = (gateway.qdiscs(now, device), gateway.classes(now, device));
        let places = places(&qdiscs, &classes);
        let filters: Vec<_> =
            places.iter().map(|at| gateway.filters(now, device, *at).unwrap_or_default()).collect();
        seen.listings.push(listing(name, &qdiscs, &classes, &filters));
    }
    seen
}

/// The number that Linux has for a refusal, found by its text.
fn number(error: &tidegate_policy::TcError) -> Option<i32> {
    (1..134).find(|number| {
        let dump = std::io::Error::from_raw_os_error(*number).to_string();
        dump.strip_suffix(&format!(" (os error {number})")) == Some(error.errno.text())
    })
}

/// Both views of a script; `None`: this machine lets no one make namespaces.
fn both(script: &str) -> Option<(Seen, Seen)> {
    let commands: Vec<String> =
        script.lines().map(str::trim).filter(|line| !line.is_empty()).map(String::from).collect();
    let place = match NamespaceThread::new("host") {
        Ok(place) => place,
        Err(error) => {
            println!("left out: no network namespace can be made here ({error})");
            return None;
        }
    };
    let model = of_model(&commands);
    let kernel = place.go(move || of_kernel(commands)).expect("the namespace's thread is there");
    Some((kernel, model))
}

/// Complains about the first line that differs.
fn compare(kernel: &Seen, model: &Seen) {
    for (device, (theirs, ours)) in DEVICES.iter().zip(kernel.listings.iter().zip(&model.listings)) {
        let first = theirs.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
        assert!(first.is_none(), "{device}: the kernel on the left, the model on the right: {first:#?}");
        assert_eq!(theirs, ours, "{device}");
    }
    assert_eq!(kernel.refused, model.refused);
}

fn alike(script: &str) {
    let Some((kernel, model)) = both(script) else { return };
    compare(&kernel, &model);
}

#[test]
fn a_home_gateway_of_htb_with_fifos_and_filters() {
    alike(
        "tc qdisc add dev link0 root handle 1: htb default 30 r2q 20
         tc class add dev link0 parent 1: classid 1:1 htb rate 900kbit ceil 900kbit
         tc class add dev link0 parent 1:1 classid 1:10 htb rate 200kbit ceil 900kbit prio 0 burst 6k \
         cburst 4k
         tc class add dev link0 parent 1:1 classid 1:20 htb rate 400kbit ceil 900kbit prio 1 quantum 1514
         tc class add dev link0 parent 1:1 classid 1:30 htb rate 300kbit ceil 900kbit prio 2 overhead 18 \
         mpu 64 linklayer atm
         tc class add dev link0 parent 1: classid 1:40 htb rate 40gbit ceil 50gbit
         tc qdisc add dev link0 parent 1:10 handle 10: pfifo limit 20
         tc qdisc add dev link0 parent 1:20 handle 20: bfifo limit 30000
         tc qdisc add dev link0 parent 1:30 handle 30: pfifo_head_drop limit 5
         tc filter add dev link0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
         tc filter add dev link0 parent 1: protocol ip prio 1 u32 match ip src 192.168.1.0/24 match ip \
         protocol 17 0xff flowid 1:20
         tc filter add dev link0 parent 1: protocol ipv6 prio 2 u32 match ip6 dst 2001:db8::/32 flowid 1:20
         tc filter add dev link0 parent 1:1 protocol ip prio 3 u32 match udp src 53 0xffff flowid 1:30
         tc class change dev link0 parent 1:1 classid 1:20 htb rate 500kbit ceil 800kbit prio 3
         tc qdisc change dev link0 parent 1:10 handle 10: pfifo limit 7
         tc class add dev link0 parent 1:1 classid 1:10 htb rate 1mbit
         tc class del dev link0 classid 1:99
         tc qdisc add dev link0 root handle 2: htb",
    );
}

#[test]
fn a_modem_of_tbf_and_its_queue() {
    alike(
        "tc qdisc add dev link0 root handle 1: tbf rate 1mbit burst 10k latency 50ms
         tc qdisc add dev link0 parent 1:1 handle 2: pfifo limit 30
         tc qdisc add dev link1 root handle 7: tbf rate 12mbit burst 32k limit 64k peakrate 20mbit mtu 3000 \
         mpu 64 overhead 14
         tc qdisc change dev link0 root handle 1: tbf rate 2mbit burst 20k latency 20ms
         tc qdisc add dev ifb0 root handle 1: stab linklayer atm overhead 32 mpu 64 tbf rate 128kbit burst \
         4k limit 20k
         tc qdisc replace dev ifb0 root handle 1: stab linklayer atm overhead 32 mpu 64 tbf rate 256kbit \
         burst 4k limit 20k",
    );
}

#[test]
fn ingress_led_through_an_ifb() {
    alike(
        "tc qdisc add dev link0 handle ffff: ingress
         tc filter add dev link0 parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress \
         redirect dev ifb0
         tc filter add dev link0 parent ffff: protocol ip prio 5 u32 match ip dport 53 0xffff action mirred \
         egress mirror dev link1
         tc qdisc add dev link1 clsact
         tc qdisc add dev ifb0 root handle 1: htb default 1
         tc class add dev ifb0 parent 1: classid 1:1 htb rate 8mbit
         tc qdisc del dev link1 clsact
         tc qdisc del dev link1 clsact",
    );
}

#[test]
fn hash_tables_of_u32() {
    alike(
        "tc qdisc add dev link0 root handle 1: htb
         tc class add dev link0 parent 1: classid 1:1 htb rate 1mbit
         tc filter add dev link0 parent 1: prio 5 handle 2: protocol ip u32 divisor 16
         tc filter add dev link0 parent 1: prio 5 protocol ip u32 ht 2:3: match ip src 10.0.0.3 flowid 1:1
         tc filter add dev link0 parent 1: prio 5 protocol ip u32 ht 800: match u32 0 0 hashkey mask \
         0x0000000f at 12 link 2:
         tc filter add dev link0 parent 1: prio 6 protocol ip u32 match ip protocol 6 0xff link 2: offset \
         at 0 mask 0x0f00 shift 6 eat
         tc filter add dev link0 parent 1: prio 7 protocol ip u32 match tcp dst 80 0xffff indev link1 \
         flowid 1:1
         tc filter del dev link0 parent 1: prio 7",
    );
}

/// What DESIGN.md promises of the kernel back end: thousands of commands are as good as one. How long that
/// takes is no test's business.
#[test]
fn thousands_of_classes_and_filters() {
    let mut script = String::from("tc qdisc add dev link0 root handle 1: htb default 1\n");
    for number in 2..1667 {
        script +=
            &format!("tc class add dev link0 parent 1: classid 1:{number:x} htb rate 64kbit ceil 1mbit\n");
        let (third, fourth) = (number / 250, number % 250);
        script += &format!(
            "tc filter add dev link0 parent 1: protocol ip prio 1 u32 match ip dst 10.1.{third}.{fourth} \
            flowid 1:{number:x}\n"
        );
    }
    let Some((kernel, model)) = both(&script) else { return };
    compare(&kernel, &model);
}
