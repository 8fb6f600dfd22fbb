//! A TCP connection in the network: its two halves, its packets, its record.

use crate::tcp::cc::CongestionControl;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::{Config, Sender};
use crate::tcp::writes::Writes;
use crate::transport_meta::PathId;
use crate::wire::{Ends, Template};
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Seeded, Time, truesize};

/// The first wait for an answer to a SYN (RFC 6298), doubled each time.
pub(crate) const SYN_TIMEOUT: Nanos = Nanos::secs(1);
/// SYNs sent before giving up.
pub(crate) const SYN_TRIES: u32 = 7;

/// Explicit congestion notification: the codepoint that data packets carry (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// They cannot be marked.
    #[default]
    Off = 0,
    /// ECT(1): marks mean little each, and come early (RFC 9331).
    Ect1 = 1,
    /// ECT(0): a mark is as good as a loss.
    Ect0 = 2,
}

/// A bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Addresses and ports.
    pub ends: Ends,
    /// The way of the data.
    pub forward: PathId,
    /// The way of the acknowledgements.
    pub back: PathId,
    /// How it reacts to congestion.
    pub control: CongestionControl,
    /// When the SYN is sent.
    pub start: Time,
    /// When the application stops writing.
    pub stop: Time,
    /// What it has written by then is still sent, as by a socket that is closed; else only what is in flight
    /// is.
    pub drains: bool,
    /// How many bytes are sent; `None`: without end.
    pub bytes: Option<u64>,
    /// Payload bytes of a full segment: 1448 (1428 over IPv6) fills a frame of 1514 with timestamps.
    pub mss: u32,
    /// Segments sent at first (RFC 6928).
    pub initial_window: u32,
    /// The receiver's window in bytes: at least twice the bandwidth-delay product, or it limits the flow.
    pub receive_window: u64,
    /// The memory of the sender's socket for what is not acknowledged, in bytes as Linux counts them
    /// (`net.ipv4.tcp_wmem`): a segment of 1448 takes 2728. It limits the flow as the receiver's window does;
    /// the application writes again when a third of it is free.
    pub send_buffer: u64,
    /// Acknowledge every second segment.
    pub delayed_ack: bool,
    /// The ECN codepoint of data packets.
    pub ecn: EcnCodepoint,
    /// DSCP, in the upper six bits.
    pub dsfield: u8,
    /// The sender is the machine itself: it notices what its own queue refuses, and waits while that queue is
    /// full of its packets (see `small_queues`).
    pub local: bool,
    /// A local sender waits while two of its packets, or a millisecond's worth, are in its own queue (TCP
    /// small queues). Without that it fills the queue, as hosts did before 2012.
    pub small_queues: bool,
    /// Segments are spread over the round trip, as Linux does below `fq`: BBR always does.
    pub pacing: bool,
    /// The receiver opens the connection, and the sender answers: a download. What the receiver requests goes
    /// with the acknowledgement that ends the handshake. [`FlowSpec::ends`] are the sender's all the same.
    pub called: bool,
}

impl FlowSpec {
    /// A CUBIC bulk flow as Linux would send it, from time zero on.
    pub fn bulk(ends: Ends, forward: PathId, back: PathId) -> FlowSpec {
        FlowSpec {
            ends,
            forward,
            back,
            control: CongestionControl::Cubic,
            start: Time(0),
            stop: Time::NEVER,
            drains: false,
            bytes: None,
            mss: if ends.is_v6() { 1428 } else { 1448 },
            initial_window: 10,
            receive_window: 4 << 20,
            send_buffer: 4 << 20,
            delayed_ack: true,
            ecn: EcnCodepoint::Off,
            dsfield: 0,
            local: false,
            small_queues: true,
            pacing: false,
            called: false,
        }
    }
}

/// One point of a flow's record, with the fields of `TCP_INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// Time since the handshake.
    pub at: Nanos,
    /// Payload bytes acknowledged.
    pub acked: u64,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Smoothed round trip.
    pub srtt: Nanos,
    /// Segments retransmitted so far.
    pub retransmissions: u64,
}

/// What a flow did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Payload bytes acknowledged.
    pub acked: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// Packets lost on the way.
    pub lost: u64,
    /// How often the retransmission timer ran out (RFC 6298).
    pub timeouts: u64,
    /// How often the congestion window was reduced, timeouts not counted.
    pub reductions: u64,
    /// When the handshake was complete.
    pub established: Option<Time>,
    /// When the last byte was acknowledged.
    pub finished: Option<Time>,
}

/// A connection of a [`crate::Transaction`]: two flows that share a handshake, one for each direction of
/// data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpEndpoint {
    /// The flow of the other direction.
    pub(crate) peer: u32,
    /// The transaction, by number.
    pub(crate) owner: u32,
    /// Which of its connections.
    pub(crate) connection: u32,
    /// This flow carries the data of the side that opened the connection.
    pub(crate) opens: bool,
}

#[derive(Debug)]
pub(crate) struct TcpFlow {
    pub(crate) spec: FlowSpec,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) writes: Writes,
    pub(crate) half: Option<TcpEndpoint>,
    /// Messages that arrived whole.
    pub(crate) heard: usize,
    /// The receiver has closed too, with its acknowledgement of our FIN.
    pub(crate) closed: bool,
    pub(crate) data: Template,
    pub(crate) acks: Template,
    pub(crate) syn_tries: u32,
    /// When each SYN was sent.
    pub(crate) syns: [Time; SYN_TRIES as usize],
    /// When a SYN was answered.
    pub(crate) answered_at: Time,
    pub(crate) established: Option<Time>,
    pub(crate) finished: Option<Time>,
    /// The server's SYN was seen: a second one is only answered.
    pub(crate) accepted: bool,
    /// The pending timer event.
    pub(crate) timer_at: Option<Time>,
    /// The pending delayed-acknowledgement event.
    pub(crate) delayed_at: Option<Time>,
    /// The pending event of the pacer.
    pub(crate) paced_at: Option<Time>,
    /// Local packets in the machine's queue.
    pub(crate) in_queue: u32,
    /// When the latest acknowledgement was sent: the echo of its timestamp (RFC 7323).
    pub(crate) echo: Time,
    /// Waits for them to leave.
    pub(crate) starved: bool,
    pub(crate) lost: u64,
    pub(crate) samples: Vec<FlowSample>,
}

impl TcpFlow {
    pub(crate) fn new(spec: FlowSpec, random: Seeded) -> TcpFlow {
        let mut writes = Writes::new(spec.mss);
        let total = writes.write(spec.bytes);
        let window = (spec.receive_window / u64::from(spec.mss.max(1))).clamp(1, 1 << 24) as u32;
        let config = Config {
            control: spec.control,
            initial_window: spec.initial_window,
            receive_window: window,
            send_memory: spec.send_buffer,
            total,
            ecn: spec.ecn != EcnCodepoint::Off,
            mss: spec.mss,
            pacing: spec.pacing,
        };
        let mut sender = Sender::new(config, random);
        if spec.bytes.is_some_and(|bytes| bytes > 0) {
            writes.close(sender.end());
        }
        TcpFlow {
            spec,
            sender,
            receiver: Receiver::new(
                spec.delayed_ack,
                spec.ecn != EcnCodepoint::Off && spec.control.is_scalable(),
            ),
            writes,
            half: None,
            heard: 0,
            closed: false,
            data: Template::tcp(spec.ends),
            acks: Template::tcp(spec.ends.back()),
            syn_tries: 0,
            syns: [Time(0); SYN_TRIES as usize],
            answered_at: Time(0),
            established: None,
            finished: None,
            accepted: false,
            timer_at: None,
            delayed_at: None,
            paced_at: None,
            in_queue: 0,
            echo: Time(0),
            starved: false,
            lost: 0,
            samples: Vec::new(),
        }
    }

    /// The sender's application closes after what it has written.
    pub(crate) fn close(&mut self) {
        let total = self.sender.end();
        self.writes.close(total);
    }

    /// Nothing new is sent; no more is tried to connect.
    pub(crate) fn abandon(&mut self) {
        self.syn_tries = SYN_TRIES;
        self.sender.close(false);
    }

    /// One direction of a connection, with nothing written yet.
    pub(crate) fn endpoint(spec: FlowSpec, half: TcpEndpoint, random: Seeded) -> TcpFlow {
        let mut flow = TcpFlow::new(FlowSpec { bytes: Some(0), ..spec }, random);
        flow.writes = Writes::new(spec.mss);
        flow.half = Some(half);
        flow
    }

    pub(crate) fn acked(&self) -> u64 {
        self.writes.offset(self.sender.una)
    }

    /// The sequence number (RFC 9293) of the next byte in this direction.
    pub(crate) fn next_byte(&self) -> u32 {
        self.writes.number(self.sender.next)
    }

    /// The acknowledgement number for what was heard in order.
    pub(crate) fn heard_byte(&self) -> u32 {
        self.writes.number(self.receiver.next)
    }

    /// May the flow put one more packet into the queue of its own machine?
    pub(crate) fn has_room(&self) -> bool {
        if !self.spec.local || !self.spec.small_queues {
            return true;
        }
        let memory = u64::from(truesize(self.data.frame(self.spec.mss)));
        // About a millisecond's worth.
        let share = (self.sender.pacing_rate() * f64::from(self.spec.mss) / 1000.0) as u64;
        u64::from(self.in_queue) * memory < share.max(2 * memory)
    }

    /// A local packet has left the machine's queue. Returns whether the flow waited for that.
    pub(crate) fn leave_queue(&mut self) -> bool {
        self.in_queue = self.in_queue.saturating_sub(1);
        core::mem::take(&mut self.starved)
    }
}
