//! A device in somebody else's event loop: a queue of closures by time, which knows nothing of packets.
//!
//! `cargo run -p tidegate-device --example event_loop`

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use tidegate_device::{EgressConfig, EgressDevice, OfferedPacket, PacketFields, Time};

/// What an event does; it may make more events.
type Action = Box<dyn FnOnce(&mut EventLoop)>;

/// The event loop: what to do, and when.
#[derive(Default)]
struct EventLoop {
    times: BinaryHeap<Reverse<(u64, u64)>>,
    actions: BTreeMap<u64, Action>,
    now: u64,
    made: u64,
}

impl EventLoop {
    fn at(&mut self, time: u64, action: impl FnOnce(&mut EventLoop) + 'static) {
        self.made += 1;
        self.times.push(Reverse((time, self.made)));
        self.actions.insert(self.made, Box::new(action));
    }

    fn run(&mut self) {
        while let Some(Reverse((time, number))) = self.times.pop() {
            self.now = time;
            if let Some(action) = self.actions.remove(&number) {
                action(self);
            }
        }
    }
}

/// The device in that loop: it is polled when it wants to be, at most once for each time.
struct Link {
    device: EgressDevice,
    polls: Option<Time>,
    /// Packets sent, and how long they waited, ns, by their numbers' hundreds: their flows.
    waits: BTreeMap<u64, Vec<u64>>,
}

fn serve(link: &Rc<RefCell<Link>>, events: &mut EventLoop) {
    let mut inner = link.borrow_mut();
    let now = Time(events.now);
    while let Some(sent) = inner.device.poll(now).expect("time goes on") {
        inner.waits.entry(sent.id / 1000).or_default().push(now.since(sent.offered).0);
    }
    while inner.device.next_drop().is_some() {}
    let next = inner.device.next_time().filter(|next| inner.polls != Some(*next));
    if let Some(next) = next {
        inner.polls = Some(next);
        let again = Rc::clone(link);
        drop(inner);
        events.at(next.0, move |events| serve(&again, events));
    }
}

fn offer(link: &Rc<RefCell<Link>>, events: &mut EventLoop, id: u64) {
    let source = std::net::SocketAddr::from(([192, 0, 2, 1], 5000 + (id / 1000) as u16));
    let fields = PacketFields::udp(source, ([198, 51, 100, 7], 443).into());
    let packet = OfferedPacket::from_fields(id, fields, if id < 1000 { 1514 } else { 214 });
    let _ = link.borrow_mut().device.offer(Time(events.now), &packet).expect("it is a packet");
    serve(link, events);
}

/// A flow that sends 12 Mbit/s into 10, and a call, for a second: their mean waits, ms.
fn run(commands: &str) -> Vec<f64> {
    let config = EgressConfig { rate: Some(10_000_000), seed: 1, ..EgressConfig::default() };
    let device = EgressDevice::new(&config, commands).expect(commands);
    let link = Rc::new(RefCell::new(Link { device, polls: None, waits: BTreeMap::new() }));
    let mut events = EventLoop::default();
    let flows = (0..1000).map(|n| (n * 1_000_000, n)).chain((0..50).map(|n| (n * 20_000_000, 1000 + n)));
    for (time, id) in flows {
        let link = Rc::clone(&link);
        events.at(time, move |events| offer(&link, events, id));
    }
    events.run();
    let link = link.borrow();
    let mean = |waits: &Vec<u64>| waits.iter().sum::<u64>() as f64 / waits.len() as f64 / 1e6;
    link.waits.values().map(mean).collect()
}

fn main() {
    for commands in ["qdisc add dev eth0 root pfifo limit 100", "qdisc add dev eth0 root fq_codel"] {
        let waits = run(commands);
        println!("{commands}: the flood waits {:.1} ms, the call {:.2} ms", waits[0], waits[1]);
    }
}

#[test]
fn the_call_does_not_wait_for_the_flood() {
    let (fifo, fair) =
        (run("qdisc add dev eth0 root pfifo limit 100"), run("qdisc add dev eth0 root fq_codel"));
    assert!(fifo[1] > 50.0 && fair[1] < 1.3, "{fifo:?} {fair:?}");
}
