//! Datagrams one way: at an interval, somewhere around it, or as a Poisson process.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use tidegate_packet::Seeded;
use tidegate_sys::socket;

use super::clock::{LoadClock, any_like, lock, spawn};
use super::listener::TICKET;
use crate::host::LabHost;

/// Bytes that the number of a datagram takes.
const NUMBER: usize = 4;

/// How regularly they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// When they are due.
    Even,
    /// Up to so many ns later.
    Late(u64),
    /// As a Poisson process.
    Poisson,
}

/// Datagrams to be.
#[derive(Clone, Copy, Debug)]
pub struct DatagramsPlan {
    /// Where they go.
    pub to: SocketAddr,
    /// Payload bytes of each, 6 at least.
    pub payload: u32,
    /// ns between two.
    pub every: u64,
    /// How regularly.
    pub pace: Pace,
    /// ns: the first.
    pub start: u64,
    /// ns: none from then on.
    pub stop: u64,
    /// The DS field.
    pub dsfield: u8,
    /// For what chance decides.
    pub seed: u64,
}

/// When one was sent and how long it was in flight, ns; `None`: it did not arrive, or not yet.
type DatagramTimes = (u64, Option<u64>);

/// Datagrams.
#[derive(Debug)]
pub struct DatagramLoad {
    packets: Arc<Mutex<Vec<DatagramTimes>>>,
}

impl DatagramLoad {
    /// Sets them going: a sender at one host, a receiver at the other.
    ///
    /// # Errors
    /// A port is taken.
    pub fn begin(
        clock: &LoadClock,
        from: &LabHost,
        to: &LabHost,
        plan: DatagramsPlan,
    ) -> io::Result<DatagramLoad> {
        let packets = Arc::new(Mutex::new(Vec::new()));
        let (own, at) = (Arc::clone(&packets), clock.clone());
        let note = Arc::new(move |_: &UdpSocket, message: &[u8], _: SocketAddr| arrived(&at, message, &own));
        let ticket = to.on_datagram(clock, plan.to.ip(), plan.to.port(), note)?;
        let (own, at) = (Arc::clone(&packets), clock.clone());
        from.go(move || {
            let socket = UdpSocket::bind((any_like(plan.to.ip()), 0))?;
            socket::ds_field(&socket, plan.to.is_ipv6(), plan.dsfield)?;
            socket.connect(plan.to)?;
            spawn(at, "datagrams", move |at| send(at, &socket, ticket, plan, &own))
        })??;
        Ok(DatagramLoad { packets })
    }

    /// When each was sent, and how long it was in flight.
    pub fn times(&self) -> Vec<(u64, Option<u64>)> {
        lock(&self.packets).clone()
    }
}

fn send(
    clock: &LoadClock,
    socket: &UdpSocket,
    ticket: u16,
    plan: DatagramsPlan,
    packets: &Mutex<Vec<DatagramTimes>>,
) {
    let mut random = Seeded::new(plan.seed);
    let mut message = vec![0; (plan.payload as usize).max(TICKET + NUMBER)];
    message[..TICKET].copy_from_slice(&ticket.to_be_bytes());
    let mut due = plan.start;
    while due < plan.stop {
        let late = if let Pace::Late(most) = plan.pace { (random.unit() * most as f64) as u64 } else { 0 };
        if !clock.sleep_until(due + late) {
            return;
        }
        let number = {
            let mut packets = lock(packets);
            packets.push((clock.now(), None));
            packets.len() as u32 - 1
        };
        message[TICKET..TICKET + NUMBER].copy_from_slice(&number.to_be_bytes());
        // A full queue drops it, as any other packet.
        let _ = socket.send(&message);
        due += match plan.pace {
            Pace::Poisson => (-(1.0 - random.unit()).ln() * plan.every as f64) as u64,
            _ => plan.every,
        }
        .max(1);
    }
}

fn arrived(clock: &LoadClock, message: &[u8], packets: &Mutex<Vec<DatagramTimes>>) {
    let now = clock.now();
    let Some(number) = message.first_chunk::<NUMBER>() else { return };
    if let Some((sent, took)) = lock(packets).get_mut(u32::from_be_bytes(*number) as usize) {
        took.get_or_insert(now.saturating_sub(*sent));
    }
}
