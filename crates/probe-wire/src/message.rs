//! The messages over TCP: four bytes of length, one of kind, then the kind's own fields.

use alloc::string::String;
use alloc::vec::Vec;

use tidegate_measure::stream::{Exchange, PacketTrain, Stream};

use crate::auth::{NONCE_LEN, Proof, Seal, SessionKey, TAG};
use crate::bytes::{Malformed, Reader, Writer};

/// Bytes of the longest message before a proof was seen.
pub const FIRST_MOST: usize = 512;
/// Bytes of the longest message after it.
pub const MOST: usize = 1 << 20;

/// Which version of all this is spoken.
pub(crate) const VERSION: u8 = 2;
/// The first message is filled up to this many bytes: all that is answered before a proof is shorter.
const FIRST: usize = 320;
/// The most phases of a stream.
const PHASES: usize = 1 << 16;
/// The longest reason, name of a congestion control.
const TEXT: usize = 300;
const NAME: usize = 16;

/// What a server lets one session do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bits per second of payload in each direction.
    pub bits_per_second: u64,
    /// Packets of a stream.
    pub packets: u32,
    /// Length of an exchange, or of a flow, ns.
    pub longest_ns: u64,
    /// TCP flows at once.
    pub flows: u16,
}

/// Which way something goes, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowDirection {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// A TCP flow to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// The sender.
    pub way: FlowDirection,
    /// The code point of the DS field of what the server sends.
    pub dscp: u8,
    /// The server's congestion control, as Linux calls it; empty: the usual one.
    pub control: String,
    /// How long it lasts, ns.
    pub length_ns: u64,
}

/// What the sender of a TCP flow knew of it at a moment; each block that a server sends has one in front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSample {
    /// ns since the flow began, by the sender's clock.
    pub at_ns: u64,
    /// Payload bytes acknowledged.
    pub acked: u64,
    /// Bytes per second, as the sender estimates them.
    pub delivery_rate: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Smoothed round trip, µs.
    pub srtt_us: u32,
    /// Segments sent again.
    pub retransmissions: u32,
}

impl TcpSample {
    /// Bytes of an encoded sample.
    pub const ENCODED_LEN: usize = 40;
    /// Its bytes with its seal behind them.
    pub const SEALED: usize = TcpSample::ENCODED_LEN + TAG;
    /// Bytes of a block of a flow towards the client: a sample, and what fills it up.
    pub const BLOCK: usize = 16 << 10;
    /// The mark at a sample's beginning, so that a reader that lost its place notices.
    const MARK: u32 = 0x7447_0a01;

    /// As bytes.
    pub fn write(&self) -> [u8; TcpSample::ENCODED_LEN] {
        let mut writer = Writer::default();
        writer.u32(TcpSample::MARK);
        [self.at_ns, self.acked, self.delivery_rate].iter().for_each(|long| writer.u64(*long));
        [self.cwnd, self.srtt_us, self.retransmissions].iter().for_each(|word| writer.u32(*word));
        let mut bytes = [0; TcpSample::ENCODED_LEN];
        bytes.copy_from_slice(&writer.0);
        bytes
    }

    /// As bytes, sealed.
    pub fn write_sealed(&self, seal: &mut Seal) -> [u8; TcpSample::SEALED] {
        let bytes = self.write();
        let tag = seal.tag(&bytes);
        core::array::from_fn(|at| {
            if at < TcpSample::ENCODED_LEN { bytes[at] } else { tag[at - TcpSample::ENCODED_LEN] }
        })
    }

    /// From sealed bytes.
    ///
    /// # Errors
    /// They are no sample, or not the next one under this key.
    pub fn read_sealed(bytes: &[u8], seal: &mut Seal) -> Result<TcpSample, Malformed> {
        match bytes.split_last_chunk::<TAG>() {
            Some((body, tag)) if seal.verifies(body, tag) => TcpSample::read(body),
            _ => Err(Malformed("a sample that was changed on its way")),
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are none.
    pub fn read(bytes: &[u8]) -> Result<TcpSample, Malformed> {
        let mut reader = Reader(bytes);
        if reader.u32()? != TcpSample::MARK {
            return Err(Malformed("no sample begins here"));
        }
        Ok(TcpSample {
            at_ns: reader.u64()?,
            acked: reader.u64()?,
            delivery_rate: reader.u64()?,
            cwnd: reader.u32()?,
            srtt_us: reader.u32()?,
            retransmissions: reader.u32()?,
        })
    }
}

/// A message over TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// Client: I want to measure; this is what I drew.
    Hello {
        /// The client's random nonce.
        draw: [u8; NONCE_LEN],
    },
    /// Server: prove that you may.
    Challenge {
        /// The server's random nonce.
        draw: [u8; NONCE_LEN],
        /// A token is requested.
        wants_token: bool,
    },
    /// Client: I may.
    Proof(Proof),
    /// Server: the client is accepted, with the server's own proof.
    Welcome {
        /// Its own proof, of the rest of this message too ([`ControlMessage::welcome`]).
        proof: Proof,
        /// The session's number, which its UDP packets and flows carry.
        session: u32,
        /// What it lets the session do.
        limits: Limits,
    },
    /// Server: no; why.
    Refused(String),
    /// Client: this is to be sent.
    Plan {
        /// What to send in both directions.
        exchange: Exchange,
        /// How long nothing must arrive before the rest counts as lost, ns.
        quiet_ns: u64,
    },
    /// Server: it begins.
    Go,
    /// Both, during an exchange: still there; so many packets have arrived.
    Alive {
        /// Packets that have arrived of the stream towards the sender of this message.
        arrived: u32,
    },
    /// Client: all of mine has been sent.
    Sent,
    /// Client: the exchange ends early. Send no more, and report what was.
    Stop,
    /// Server: what arrived of the stream up.
    Seen {
        /// The first packet it speaks of.
        first: u32,
        /// A part of [`crate::PacketArrivals`].
        part: Vec<u8>,
    },
    /// Server: when what went down was sent.
    Departed {
        /// The first packet it speaks of.
        first: u32,
        /// A part of [`crate::Departures`].
        part: Vec<u8>,
    },
    /// Server: the report is complete.
    ReportEnd {
        /// What went wrong with it, in words; empty: nothing.
        problem: String,
    },
    /// Client, first on a connection of its own: this connection is a flow of a session.
    Flow {
        /// The session's number.
        session: u32,
        /// The flow's number in the session, each used once.
        number: u32,
        /// What flows.
        plan: FlowPlan,
        /// The tag that shows that all this comes from a holder of the session's key.
        tag: [u8; TAG],
    },
}

impl ControlMessage {
    /// What a welcome's proof is about beside the draws.
    pub fn welcome(session: u32, limits: &Limits) -> Vec<u8> {
        let mut writer = Writer::default();
        write_welcome(&mut writer, session, limits);
        writer.0
    }

    /// The first message of a flow, by the session's key.
    pub fn flow(key: &SessionKey, session: u32, number: u32, plan: FlowPlan) -> ControlMessage {
        let tag = key.flow(number).tag(&[&flow_bytes(session, number, &plan)]);
        ControlMessage::Flow { session, number, plan, tag }
    }

    /// Whether it is the first message of a flow from a holder of the session's key.
    pub fn is_flow_of(&self, key: &SessionKey) -> bool {
        let ControlMessage::Flow { session, number, plan, tag } = self else { return false };
        key.flow(*number).tags(tag, &[&flow_bytes(*session, *number, plan)])
    }

    /// With its length before it and its seal behind it.
    pub fn encode_sealed(&self, seal: &mut Seal) -> Vec<u8> {
        let mut bytes = self.encode();
        let tag = seal.tag(&bytes[4..]);
        bytes.extend_from_slice(&tag);
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    /// Decodes what follows the length, seal included. A refusal is accepted without a seal: an attacker who
    /// can forge it can cut the connection anyway.
    ///
    /// # Errors
    /// It is no message, or not the next one under the key.
    pub fn decode_sealed(bytes: &[u8], seal: &mut Seal) -> Result<ControlMessage, Malformed> {
        if let Some((body, tag)) = bytes.split_last_chunk::<TAG>()
            && seal.verifies(body, tag)
        {
            return ControlMessage::decode(body);
        }
        match ControlMessage::decode(bytes) {
            Ok(refused @ ControlMessage::Refused(_)) => Ok(refused),
            _ => Err(Malformed("a message that was changed on its way, or is not from who has the token")),
        }
    }

    /// With its length before it.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u32(0);
        self.write(&mut writer);
        if self.is_first() {
            writer.0.resize(4 + FIRST, 0);
        }
        let length = (writer.0.len() - 4) as u32;
        writer.0[..4].copy_from_slice(&length.to_be_bytes());
        writer.0
    }

    /// How long the message is that the first four bytes announce.
    ///
    /// # Errors
    /// It is longer than `most`, or empty.
    pub fn length(front: [u8; 4], most: usize) -> Result<usize, Malformed> {
        match u32::from_be_bytes(front) as usize {
            0 => Err(Malformed("an empty message")),
            length if length > most => Err(Malformed("a message is too long")),
            length => Ok(length),
        }
    }

    /// From what follows the length.
    ///
    /// # Errors
    /// It is no message.
    pub fn decode(bytes: &[u8]) -> Result<ControlMessage, Malformed> {
        let mut reader = Reader(bytes);
        let message = read(&mut reader)?;
        if message.is_first() {
            // Before it is authenticated, a client sends more bytes than it receives.
            return if bytes.len() == FIRST {
                Ok(message)
            } else {
                Err(Malformed("a first message is filled up"))
            };
        }
        reader.end()?;
        Ok(message)
    }

    /// Whether it is a client's first message.
    fn is_first(&self) -> bool {
        matches!(self, ControlMessage::Hello { .. } | ControlMessage::Flow { .. })
    }

    fn write(&self, to: &mut Writer) {
        match self {
            ControlMessage::Hello { draw } => {
                to.bytes(&[1, VERSION]);
                to.bytes(draw);
            }
            ControlMessage::Challenge { draw, wants_token } => {
                to.bytes(&[2, VERSION, u8::from(*wants_token)]);
                to.bytes(draw);
            }
            ControlMessage::Proof(proof) => {
                to.u8(3);
                to.bytes(proof);
            }
            ControlMessage::Welcome { proof, session, limits } => {
                to.u8(4);
                to.bytes(proof);
                write_welcome(to, *session, limits);
            }
            ControlMessage::Refused(why) => {
                to.u8(5);
                to.text(shortened(why, TEXT));
            }
            ControlMessage::Plan { exchange, quiet_ns } => {
                to.u8(6);
                write_stream(to, &exchange.up);
                write_stream(to, &exchange.down);
                to.number(*quiet_ns);
            }
            ControlMessage::Go => to.u8(7),
            ControlMessage::Alive { arrived } => {
                to.u8(8);
                to.u32(*arrived);
            }
            ControlMessage::Sent => to.u8(9),
            ControlMessage::Stop => to.u8(14),
            ControlMessage::Seen { first, part } => write_part(to, 10, *first, part),
            ControlMessage::Departed { first, part } => write_part(to, 11, *first, part),
            ControlMessage::ReportEnd { problem: trouble } => {
                to.u8(12);
                to.text(shortened(trouble, TEXT));
            }
            ControlMessage::Flow { session, number, plan, tag } => {
                to.u8(13);
                to.bytes(tag);
                write_flow(to, *session, *number, plan);
            }
        }
    }
}

fn read(from: &mut Reader<'_>) -> Result<ControlMessage, Malformed> {
    Ok(match from.u8()? {
        1 => {
            spoken(from.u8()?)?;
            ControlMessage::Hello { draw: from.array()? }
        }
        2 => {
            spoken(from.u8()?)?;
            ControlMessage::Challenge { wants_token: from.u8()? != 0, draw: from.array()? }
        }
        3 => ControlMessage::Proof(from.array()?),
        4 => ControlMessage::Welcome {
            proof: from.array()?,
            session: from.u32()?,
            limits: Limits {
                bits_per_second: from.u64()?,
                packets: from.u32()?,
                longest_ns: from.u64()?,
                flows: from.u16()?,
            },
        },
        5 => ControlMessage::Refused(from.text(TEXT)?),
        6 => {
            let exchange = Exchange { up: read_stream(from)?, down: read_stream(from)? };
            ControlMessage::Plan { exchange, quiet_ns: from.number()? }
        }
        7 => ControlMessage::Go,
        8 => ControlMessage::Alive { arrived: from.u32()? },
        9 => ControlMessage::Sent,
        14 => ControlMessage::Stop,
        10 => ControlMessage::Seen { first: from.u32()?, part: rest(from) },
        11 => ControlMessage::Departed { first: from.u32()?, part: rest(from) },
        12 => ControlMessage::ReportEnd { problem: from.text(TEXT)? },
        13 => {
            let tag = from.array()?;
            let (session, number) = (from.u32()?, from.u32()?);
            let way = if from.u8()? == 0 { FlowDirection::Up } else { FlowDirection::Down };
            let dscp = from.u8()? & 63;
            let control = from.text(NAME)?;
            ControlMessage::Flow {
                session,
                number,
                plan: FlowPlan { way, dscp, control, length_ns: from.number()? },
                tag,
            }
        }
        _ => return Err(Malformed("a message of no kind we know")),
    })
}

/// Do both sides speak the same version?
fn spoken(version: u8) -> Result<(), Malformed> {
    if version == VERSION { Ok(()) } else { Err(Malformed::VERSION) }
}

fn write_welcome(to: &mut Writer, session: u32, limits: &Limits) {
    to.u32(session);
    to.u64(limits.bits_per_second);
    to.u32(limits.packets);
    to.u64(limits.longest_ns);
    to.u16(limits.flows);
}

fn write_flow(to: &mut Writer, session: u32, number: u32, plan: &FlowPlan) {
    to.u32(session);
    to.u32(number);
    to.u8(u8::from(plan.way == FlowDirection::Down));
    to.u8(plan.dscp);
    to.text(shortened(&plan.control, NAME));
    to.number(plan.length_ns);
}

fn flow_bytes(session: u32, number: u32, plan: &FlowPlan) -> Vec<u8> {
    let mut writer = Writer::default();
    write_flow(&mut writer, session, number, plan);
    writer.0
}

fn rest(from: &mut Reader<'_>) -> Vec<u8> {
    core::mem::take(&mut from.0).to_vec()
}

fn write_part(to: &mut Writer, kind: u8, first: u32, part: &[u8]) {
    to.u8(kind);
    to.u32(first);
    to.bytes(part);
}

/// The front of a text, as many whole letters as fit.
fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

fn write_stream(to: &mut Writer, stream: &Stream) {
    to.number(stream.phases.len() as u64);
    for phase in &stream.phases {
        to.number(phase.payload.into());
        to.number(phase.gap_ns);
        to.number(phase.packets.into());
        // The upper two bits are ECN's: servers that do not know that refuse such a plan.
        to.u8(phase.dscp | phase.ecn << 6);
        to.number(phase.rest_ns);
    }
}

/// Congestion experienced (RFC 3168).
const CE: u8 = 3;

fn read_stream(from: &mut Reader<'_>) -> Result<Stream, Malformed> {
    let count = from.small::<usize>()?;
    // Each takes five bytes at least, so what is set aside is bounded by what came.
    if count > PHASES || count > from.0.len() / 5 {
        return Err(Malformed("more phases than there may be"));
    }
    let mut phases = Vec::with_capacity(count);
    for _ in 0..count {
        let (payload, gap_ns, packets, marks) = (from.small()?, from.number()?, from.small()?, from.u8()?);
        let (dscp, ecn) = (marks & 63, marks >> 6);
        let phase = PacketTrain { payload, gap_ns, packets, dscp, ecn, rest_ns: from.number()? };
        // CE is for queues to write.
        if !(PacketTrain::LEAST..=PacketTrain::MOST).contains(&phase.payload) || ecn == CE {
            return Err(Malformed("a packet that cannot be"));
        }
        phases.push(phase);
    }
    Ok(Stream { phases })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Role, Token};
    use alloc::vec;

    fn examples() -> Vec<ControlMessage> {
        let phase =
            PacketTrain { payload: 172, gap_ns: 20_000_000, packets: 500, dscp: 46, ecn: 1, rest_ns: 7 };
        let exchange = Exchange { up: Stream::steady(phase), down: Stream { phases: vec![phase; 3] } };
        let limits = Limits { bits_per_second: 1 << 40, packets: 9, longest_ns: 1 << 50, flows: 4 };
        let plan = FlowPlan { way: FlowDirection::Down, dscp: 8, control: "bbr".into(), length_ns: 1 };
        vec![
            ControlMessage::Hello { draw: [1; NONCE_LEN] },
            ControlMessage::Challenge { draw: [2; NONCE_LEN], wants_token: true },
            ControlMessage::Proof([3; 32]),
            ControlMessage::Welcome { proof: [4; 32], session: 5, limits },
            ControlMessage::Refused("too many".into()),
            ControlMessage::Plan { exchange, quiet_ns: 300_000_000 },
            ControlMessage::Go,
            ControlMessage::Alive { arrived: 77 },
            ControlMessage::Sent,
            ControlMessage::Stop,
            ControlMessage::Seen { first: 3, part: vec![1, 2, 3] },
            ControlMessage::Departed { first: 4, part: vec![] },
            ControlMessage::ReportEnd { problem: "ü".into() },
            ControlMessage::flow(&Token::open().session_key(&[1; NONCE_LEN], &[2; NONCE_LEN]), 9, 1, plan),
        ]
    }

    /// Samples are sealed one after the other: changed, cut, or out of their order they are none.
    #[test]
    fn sealed_samples_come_back_in_their_order_only() {
        let key = Token::open().session_key(&[1; NONCE_LEN], &[2; NONCE_LEN]);
        let sample =
            |at_ns| TcpSample { at_ns, acked: 2, delivery_rate: 3, cwnd: 4, srtt_us: 5, retransmissions: 6 };
        let mut sender = key.seal(Role::Server);
        let sealed = [1, 2].map(|at| sample(at).write_sealed(&mut sender));
        assert_eq!(sealed[0][..TcpSample::ENCODED_LEN], sample(1).write());
        let mut reader = key.seal(Role::Server);
        assert_eq!(TcpSample::read_sealed(&sealed[0], &mut reader), Ok(sample(1)));
        assert_eq!(TcpSample::read_sealed(&sealed[1], &mut reader), Ok(sample(2)));
        let refused = |bytes: &[u8]| TcpSample::read_sealed(bytes, &mut key.seal(Role::Server)).is_err();
        assert!(refused(&sealed[1]), "the second comes first");
        assert!(refused(&sealed[0][1..]) && refused(&[]));
        for at in 0..TcpSample::SEALED {
            let mut changed = sealed[0];
            changed[at] ^= 1;
            assert!(refused(&changed), "byte {at}");
        }
    }

    /// A plan of as many phases as there may be is read; one more, a packet too long or too short, and one
    /// sent with CE are not.
    #[test]
    fn streams_that_cannot_be() {
        let phase =
            PacketTrain { payload: PacketTrain::LEAST, gap_ns: 0, packets: 0, dscp: 0, ecn: 0, rest_ns: 0 };
        let read = |phases: Vec<PacketTrain>| {
            let exchange = Exchange { up: Stream { phases }, down: Stream::default() };
            ControlMessage::decode(&ControlMessage::Plan { exchange, quiet_ns: 0 }.encode()[4..]).is_ok()
        };
        assert!(read(vec![phase; PHASES]) && !read(vec![phase; PHASES + 1]));
        let with = |payload, ecn| read(vec![PacketTrain { payload, dscp: 63, ecn, ..phase }]);
        assert!(with(PacketTrain::MOST, 0) && with(PacketTrain::LEAST, 1) && with(PacketTrain::LEAST, 2));
        assert!(
            !with(PacketTrain::MOST + 1, 0)
                && !with(PacketTrain::LEAST - 1, 0)
                && !with(PacketTrain::LEAST, CE)
        );
        // A count that more bytes than there are would be needed for is refused before anything is set aside
        // for it.
        let mut writer = Writer::default();
        writer.number(2);
        writer.bytes(&[1; 9]);
        let refused = read_stream(&mut Reader(&writer.0)).expect_err("two phases need ten bytes");
        assert_eq!(refused, Malformed("more phases than there may be"));
    }

    #[test]
    fn a_message_is_as_long_as_it_may_be_and_no_longer() {
        assert_eq!(ControlMessage::length(10_u32.to_be_bytes(), 10), Ok(10));
        assert!(ControlMessage::length(11_u32.to_be_bytes(), 10).is_err());
    }

    #[test]
    fn messages_come_back() {
        for message in examples() {
            let bytes = message.encode();
            let (front, body) = bytes.split_first_chunk().unwrap();
            assert_eq!(ControlMessage::length(*front, MOST), Ok(body.len()));
            assert_eq!(ControlMessage::decode(body), Ok(message.clone()));
            // None of them can be cut short unnoticed.
            assert_ne!(ControlMessage::decode(&body[..body.len() - 1]), Ok(message));
        }
    }

    #[test]
    fn the_first_word_is_the_longest_before_a_proof() {
        let length = |message: &ControlMessage| message.encode().len();
        let examples = examples();
        assert!(length(&examples[0]) > length(&examples[1]) + length(&examples[3]));
        assert!(length(&examples[0]) < FIRST_MOST);
        assert!(length(&ControlMessage::Refused("x".repeat(1000))) <= length(&examples[0]));
    }

    #[test]
    fn sealed_messages_come_back_in_their_order_only() {
        let key = Token::open().session_key(&[1; NONCE_LEN], &[2; NONCE_LEN]);
        let (mut sealer, mut opener) = (key.seal(Role::Server), key.seal(Role::Server));
        for message in examples() {
            let bytes = message.encode_sealed(&mut sealer);
            let (front, body) = bytes.split_first_chunk().unwrap();
            assert_eq!(ControlMessage::length(*front, MOST + TAG), Ok(body.len()));
            assert_eq!(ControlMessage::decode_sealed(body, &mut opener), Ok(message));
        }
        let bytes = ControlMessage::Go.encode_sealed(&mut sealer);
        let mut forged = bytes[4..].to_vec();
        forged[0] ^= 1;
        assert!(ControlMessage::decode_sealed(&forged, &mut key.seal(Role::Server)).is_err());
        assert!(
            ControlMessage::decode_sealed(&ControlMessage::Go.encode()[4..], &mut opener).is_err(),
            "without a seal"
        );
        let refused = ControlMessage::Refused("no".into());
        assert_eq!(ControlMessage::decode_sealed(&refused.encode()[4..], &mut opener), Ok(refused));
    }

    #[test]
    fn a_flow_is_of_one_session_and_one_plan() {
        let (key, other) = (
            Token::open().session_key(&[1; NONCE_LEN], &[2; NONCE_LEN]),
            Token::open().session_key(&[1; NONCE_LEN], &[3; NONCE_LEN]),
        );
        let plan = FlowPlan { way: FlowDirection::Down, dscp: 8, control: "bbr".into(), length_ns: 1 };
        let flow = ControlMessage::flow(&key, 9, 1, plan.clone());
        assert!(flow.is_flow_of(&key) && !flow.is_flow_of(&other) && !ControlMessage::Go.is_flow_of(&key));
        let ControlMessage::Flow { tag, .. } = flow else { panic!("a flow") };
        let longer = FlowPlan { length_ns: 2, ..plan.clone() };
        for changed in [
            ControlMessage::Flow { session: 9, number: 2, plan: plan.clone(), tag },
            ControlMessage::Flow { session: 8, number: 1, plan, tag },
            ControlMessage::Flow { session: 9, number: 1, plan: longer, tag },
        ] {
            assert!(!changed.is_flow_of(&key), "{changed:?}");
        }
    }

    #[test]
    fn a_sample_comes_back() {
        let sample =
            TcpSample { at_ns: 1, acked: 2, delivery_rate: 3, cwnd: 4, srtt_us: 5, retransmissions: 6 };
        assert_eq!(TcpSample::read(&sample.write()), Ok(sample));
        assert!(TcpSample::read(&[0; 40]).is_err());
    }
}
