//! QUIC endpoints of quinn-proto in virtual time, behind a bottleneck whose queue is Linux's.
//!
//! ```text
//! upload 1 ┐                       ┌─ 20 ms ─▶ server
//! upload 2 ┼─▶ EgressDevice 10 Mbit/s ┘             │
//! call     ┘ ◀──────────────── 20 ms ──────────────┘
//! ```
//! The loop is that of quinn-proto's own tests: `handle` what arrives, `handle_timeout`, then
//! `poll_transmit`, with the time as an argument. What a connection transmits is offered to the device by
//! its addresses; what the device gives arrives at the server, with the ECN codepoint that the queue left
//! it.

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    StreamEvent, StreamId, TransportConfig, VarInt,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_device::{EgressConfig, EgressDevice, EgressStats, Error, OfferedPacket, PacketFields, Time};

/// The bottleneck's rate, bits per second.
pub const RATE: u64 = 10_000_000;
/// The delay of each direction.
pub const DELAY: Duration = Duration::from_millis(20);

/// Ethernet's, IPv4's and UDP's headers, bytes.
const HEADERS: u32 = 14 + 20 + 8;
/// How often the call sends, and how much.
const CALL_EVERY: Duration = Duration::from_millis(20);
const CALL_BYTES: usize = 160;

/// What an upload or the call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Upload,
    Call,
    Server,
}

/// A datagram on its way.
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    ecn: Option<EcnCodepoint>,
    bytes: Bytes,
}

/// An endpoint with its connections.
struct Node {
    role: Role,
    address: SocketAddr,
    endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, Connection>,
    upload: Option<StreamId>,
    next_call: Option<Instant>,
}

/// What the uploads got, and how long the call's datagrams took.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What arrived of each upload, Mbit/s.
    pub uploads: Vec<f64>,
    /// The delay of each datagram of the call, one way: 20 ms, its transmission, and its time in the queue.
    pub call: Vec<Duration>,
    /// What the device counted.
    pub queue: EgressStats,
}

impl Report {
    /// The delay below which this share of the call's datagrams were.
    pub fn percentile(&self, share: f64) -> Duration {
        let mut sorted = self.call.clone();
        sorted.sort_unstable();
        sorted.get((share * sorted.len().saturating_sub(1) as f64) as usize).copied().unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |delay: Duration| delay.as_secs_f64() * 1000.0;
        let uploads: Vec<String> = self.uploads.iter().map(|rate| format!("{rate:.2}")).collect();
        writeln!(f, "uploads: {} Mbit/s", uploads.join(" and "))?;
        writeln!(
            f,
            "call: {} datagrams, one-way delay {:.1} ms at the median, {:.1} ms at P99",
            self.call.len(),
            ms(self.percentile(0.5)),
            ms(self.percentile(0.99))
        )?;
        let EgressStats { sent, dropped, marked, waiting, .. } = self.queue;
        write!(f, "queue: {sent} packets sent, {marked} of them marked, {dropped} dropped, {waiting} waiting")
    }
}

/// Simulates two uploads and a call of so many seconds through a queue of these tc commands.
///
/// # Errors
/// A command that the queue refuses.
pub fn run(commands: &str, seconds: u64) -> Result<Report, Error> {
    let config = EgressConfig { rate: Some(RATE), seed: 1, ..EgressConfig::default() };
    let mut network = Network::new(EgressDevice::new(&config, commands)?);
    network.run(Duration::from_secs(seconds))?;
    let rate = |bytes: u64| bytes as f64 * 8.0 / seconds as f64 / 1e6;
    let mut uploads: Vec<(SocketAddr, u64)> = network.received.clone().into_iter().collect();
    uploads.sort_unstable();
    Ok(Report {
        uploads: uploads.into_iter().map(|(_, bytes)| rate(bytes)).collect(),
        call: network.call,
        queue: network.device.stats(),
    })
}

/// The endpoints, the bottleneck, and what is on its way.
struct Network {
    began: Instant,
    device: EgressDevice,
    nodes: Vec<Node>,
    /// What waits in the device, by its number.
    offered: HashMap<u64, Datagram>,
    /// What arrives, by the time at which it does and its number.
    flying: BTreeMap<(Time, u64), Datagram>,
    next: u64,
    received: HashMap<SocketAddr, u64>,
    call: Vec<Duration>,
}

impl Network {
    fn new(device: EgressDevice) -> Network {
        let began = Instant::now();
        let mut transport = TransportConfig::default();
        transport.datagram_receive_buffer_size(Some(1 << 20)).enable_segmentation_offload(false);
        let window = VarInt::from_u32(1 << 24);
        transport.stream_receive_window(window).receive_window(window).send_window(1 << 24);
        let transport = Arc::new(transport);
        let mut server = quinn_plaintext::server_config();
        server.transport_config(Arc::clone(&transport));
        let server = Arc::new(server);
        let roles = [Role::Server, Role::Upload, Role::Upload, Role::Call];
        let mut nodes: Vec<Node> = (0..)
            .zip(roles)
            .map(|(number, role)| {
                let is_server = role == Role::Server;
                let mut seeded = EndpointConfig::default();
                seeded.rng_seed(Some([number; 32]));
                let accepts = is_server.then(|| Arc::clone(&server));
                Node {
                    role,
                    address: ([192, 0, 2, number + 1], if is_server { 443 } else { 50_000 }).into(),
                    endpoint: Endpoint::new(Arc::new(seeded), accepts, false, None),
                    connections: HashMap::new(),
                    upload: None,
                    next_call: None,
                }
            })
            .collect();
        let to = nodes[0].address;
        for node in nodes.iter_mut().filter(|node| node.role != Role::Server) {
            let mut client = quinn_plaintext::client_config();
            client.transport_config(Arc::clone(&transport));
            let (handle, connection) = node
                .endpoint
                .connect(began, client, to, "server.example")
                .expect("the server's address is fine");
            node.connections.insert(handle, connection);
        }
        Network {
            began,
            device,
            nodes,
            offered: HashMap::new(),
            flying: BTreeMap::new(),
            next: 0,
            received: HashMap::new(),
            call: Vec::new(),
        }
    }

    fn time(&self, at: Instant) -> Time {
        Time(at.saturating_duration_since(self.began).as_nanos() as u64)
    }

    fn instant(&self, at: Time) -> Instant {
        self.began + Duration::from_nanos(at.0)
    }

    /// One event after the other, until `end`.
    fn run(&mut self, end: Duration) -> Result<(), Error> {
        let end = Time(end.as_nanos() as u64);
        let mut now = Time(0);
        loop {
            self.serve_nodes(now)?;
            self.serve_link(now)?;
            let timers = self.nodes.iter_mut().flat_map(|node| {
                let timeouts = node.connections.values_mut().filter_map(Connection::poll_timeout);
                timeouts.chain(node.next_call).collect::<Vec<_>>()
            });
            let timers = timers.min().map(|at| self.time(at));
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = [timers, arrival, self.device.next_time()].into_iter().flatten().min() else {
                return Ok(());
            };
            now = next.max(now);
            if now > end {
                return Ok(());
            }
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now) {
                let datagram = entry.remove();
                self.arrive(now, datagram)?;
            }
        }
    }

    /// Polls the bottleneck: what it sends arrives after the link's delay, what it drops is forgotten.
    fn serve_link(&mut self, now: Time) -> Result<(), Error> {
        while let Some(sent) = self.device.poll(now)? {
            if let Some(datagram) = self.offered.remove(&sent.id) {
                let ecn = EcnCodepoint::from_bits(sent.dsfield & 3);
                let at = Time(sent.finished.0 + DELAY.as_nanos() as u64);
                self.flying.insert((at, sent.id), Datagram { ecn, ..datagram });
            }
        }
        while let Some(drop) = self.device.next_drop() {
            self.offered.remove(&drop.id);
        }
        Ok(())
    }

    /// A connection transmits a datagram: to the bottleneck, or, from the server, straight back.
    fn transmit(&mut self, now: Time, datagram: Datagram) -> Result<(), Error> {
        self.next += 1;
        if datagram.from == self.nodes[0].address {
            let at = Time(now.0 + DELAY.as_nanos() as u64);
            self.flying.insert((at, self.next), datagram);
            return Ok(());
        }
        let fields = PacketFields {
            dsfield: datagram.ecn.map_or(0, |ecn| ecn as u8),
            ..PacketFields::udp(datagram.from, datagram.to)
        };
        let length = HEADERS + datagram.bytes.len() as u32;
        self.offered.insert(self.next, datagram);
        let _ = self.device.offer(now, &OfferedPacket::from_fields(self.next, fields, length))?;
        self.serve_link(now)
    }

    fn arrive(&mut self, now: Time, datagram: Datagram) -> Result<(), Error> {
        let at = self.instant(now);
        let Some(place) = self.nodes.iter().position(|node| node.address == datagram.to) else {
            return Ok(());
        };
        let node = &mut self.nodes[place];
        let mut reply = Vec::new();
        let bytes = BytesMut::from(&datagram.bytes[..]);
        let event = node.endpoint.handle(at, datagram.from, None, datagram.ecn, bytes, &mut reply);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = node.connections.get_mut(&handle) {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if let Ok((handle, connection)) = node.endpoint.accept(incoming, at, &mut reply, None) {
                    node.connections.insert(handle, connection);
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let (from, bytes) = (node.address, Bytes::copy_from_slice(&reply[..transmit.size]));
                let to = transmit.destination;
                return self.transmit(now, Datagram { from, to, ecn: transmit.ecn, bytes });
            }
            None => {}
        }
        Ok(())
    }

    /// Timers, applications, and what connections want to transmit.
    fn serve_nodes(&mut self, now: Time) -> Result<(), Error> {
        let at = self.instant(now);
        let mut out = Vec::new();
        for node in &mut self.nodes {
            let is_call_due = node.next_call.is_some_and(|due| due <= at);
            // In the order of their numbers, so that runs are the same.
            let mut handles: Vec<ConnectionHandle> = node.connections.keys().copied().collect();
            handles.sort_unstable_by_key(|handle| handle.0);
            for handle in handles {
                let Some(connection) = node.connections.get_mut(&handle) else { continue };
                if connection.poll_timeout().is_some_and(|due| due <= at) {
                    connection.handle_timeout(at);
                }
                while let Some(event) = connection.poll_endpoint_events() {
                    if let Some(event) = node.endpoint.handle_event(handle, event) {
                        connection.handle_event(event);
                    }
                }
                while let Some(event) = connection.poll() {
                    match (node.role, event) {
                        (Role::Upload, Event::Connected) => node.upload = connection.streams().open(Dir::Uni),
                        (Role::Call, Event::Connected) => node.next_call = Some(at + CALL_EVERY),
                        (Role::Server, Event::Stream(StreamEvent::Opened { dir: Dir::Uni })) => {
                            while connection.streams().accept(Dir::Uni).is_some() {}
                        }
                        _ => {}
                    }
                }
                match node.role {
                    Role::Upload => upload(connection, node.upload),
                    Role::Call if is_call_due => {
                        node.next_call = Some(at + CALL_EVERY);
                        let mut bytes = now.0.to_be_bytes().to_vec();
                        bytes.resize(CALL_BYTES, 0);
                        // Where the connection is congested, the oldest is given up.
                        let _ = connection.datagrams().send(bytes.into(), true);
                    }
                    Role::Call => {}
                    Role::Server => {
                        receive(connection, &mut self.received);
                        while let Some(datagram) = connection.datagrams().recv() {
                            let sent = datagram.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
                            self.call.push(Duration::from_nanos(now.0 - sent));
                        }
                    }
                }
                let mut buffer = Vec::new();
                while let Some(transmit) = connection.poll_transmit(at, 1, &mut buffer) {
                    let bytes = Bytes::copy_from_slice(&buffer[..transmit.size]);
                    let (from, to) = (node.address, transmit.destination);
                    out.push(Datagram { from, to, ecn: transmit.ecn, bytes });
                    buffer.clear();
                }
            }
        }
        out.into_iter().try_for_each(|datagram| self.transmit(now, datagram))
    }
}

/// Writes as much as the connection takes.
fn upload(connection: &mut Connection, stream: Option<StreamId>) {
    let Some(stream) = stream else { return };
    while connection.send_stream(stream).write(&[0; 1 << 16]).is_ok() {}
}

/// Reads everything that has arrived in order.
fn receive(connection: &mut Connection, received: &mut HashMap<SocketAddr, u64>) {
    let from = connection.remote_address();
    let stream = StreamId::new(quinn_proto::Side::Client, Dir::Uni, 0);
    let mut receiving = connection.recv_stream(stream);
    if let Ok(mut chunks) = receiving.read(true) {
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            *received.entry(from).or_default() += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
    }
}
