//! The socket of one target, and the messages read from it.

use super::message::{self, RequestId, Sign, Signed};
use super::plan::PingSchedule;
use crate::Error;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use tidegate_measure::pinged::PingMethod;
use tidegate_sys::icmp::{self, Icmp};
use tidegate_sys::socket::ds_field;
use tidegate_sys::stamped::{self, About};

/// Space for the longest answer.
const BUFFER: usize = 1 << 16;
/// Departures that the kernel has not reported yet; beyond that it never will.
const MOST_DEPARTING: usize = 4096;

/// The socket of a target.
#[derive(Debug)]
pub(super) struct Socket {
    kind: Kind,
    v6: bool,
    sign: Sign,
    size: u16,
    /// Whether a hop is pinged, whatever its address.
    of_hop: bool,
    /// The requests whose departures the kernel is to report, in its order: the number it gives the first,
    /// and our numbers. `None`: it does not report them.
    departing: Option<(u32, VecDeque<u64>)>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Icmp(Icmp),
    Udp(UdpSocket),
}

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PingMessage {
    /// When, by the kernel's stamp, ns since 1970.
    pub(super) stamp_ns: Option<u64>,
    /// The event.
    pub(super) what: PingEvent,
}

/// What can be heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PingEvent {
    /// An answer; `error`: an ICMP error that is one.
    Answer {
        /// To which request.
        which: RequestId,
        /// Is it an error?
        error: bool,
        /// The sender of the reply.
        by: Option<IpAddr>,
        /// The DS field that it came with.
        ds_field: Option<u8>,
    },
    /// A request reached the driver.
    Left(u64),
    /// An error came instead.
    Fault {
        /// The sender of the error.
        by: String,
        /// The error's text.
        what: String,
    },
}

impl Socket {
    /// Opens the socket.
    ///
    /// # Errors
    /// There is no way, or it is not allowed.
    pub(super) fn open(plan: &PingSchedule) -> Result<Socket, Error> {
        let v6 = plan.address.is_ipv6();
        let kind = match plan.way {
            PingMethod::Icmp => Kind::Icmp(Icmp::open(plan.address).map_err(|why| refused(plan, why))?),
            PingMethod::Udp(port) => {
                Kind::Udp(udp(SocketAddr::new(plan.address, port)).map_err(|why| refused(plan, why))?)
            }
        };
        let token = RandomState::new().hash_one(0_u8);
        let sign = Sign { token, identifier: (token >> 48) as u16 };
        let size =
            if matches!(kind, Kind::Udp(_)) { plan.size.max(message::SIGNED as u16) } else { plan.size };
        let of_hop = plan.hop_limit.is_some();
        let mut socket = Socket { kind, v6, sign, size, of_hop, departing: None, buffer: vec![0; BUFFER] };
        socket.set_up(plan).map_err(Error::io(format!("prepare a socket for {}", plan.address)))?;
        Ok(socket)
    }

    fn set_up(&mut self, plan: &PingSchedule) -> io::Result<()> {
        ds_field(self, self.v6, plan.ds_field)?;
        if let Some(hops) = plan.hop_limit {
            stamped::hop_limit(self, self.v6, hops)?;
        }
        self.rebind()
    }

    /// Has the kernel number departures from 0.
    fn rebind(&mut self) -> io::Result<()> {
        stamped::note(self, self.v6, false)?;
        self.departing = stamped::note(self, self.v6, true)?.then(|| (0, VecDeque::new()));
        Ok(())
    }

    /// Bytes of data that a request has.
    pub(super) fn size(&self) -> u16 {
        self.size
    }

    /// The bytes of request `number`.
    pub(super) fn prepare(&self, number: u64) -> Vec<u8> {
        let data = message::data(self.sign, number, self.size);
        match self.kind {
            Kind::Icmp(_) => message::request(self.v6, self.sign, number, &data),
            Kind::Udp(_) => data,
        }
    }

    /// Sends request `number`, prepared.
    ///
    /// # Errors
    /// What the kernel reports; the request has not gone.
    pub(super) fn send(&mut self, number: u64, bytes: &[u8]) -> io::Result<()> {
        // The kernel returns an ICMP error for an earlier request once, to the next send, which then fails.
        if icmp::send(self, bytes).is_err()
            && let Err(error) = icmp::send(self, bytes)
        {
            // Whether the kernel counted those is unknown.
            self.rebind()?;
            return Err(error);
        }
        if let Some((first, waiting)) = &mut self.departing {
            if waiting.len() >= MOST_DEPARTING {
                waiting.pop_front();
                *first = first.wrapping_add(1);
            }
            waiting.push_back(number);
        }
        Ok(())
    }

    /// The kernel's numbers are not what we thought: departures are not read any more.
    pub(super) fn distrust_departures(&mut self) {
        self.departing = None;
    }

    /// The next thing that was heard; `None`: nothing now.
    ///
    /// # Errors
    /// The socket is broken.
    pub(super) fn receive(&mut self) -> io::Result<Option<PingMessage>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let heard = self.receive_into(&mut buffer);
        self.buffer = buffer;
        heard
    }

    fn receive_into(&mut self, buffer: &mut [u8]) -> io::Result<Option<PingMessage>> {
        // Bounded: a flood of messages must not keep us from sending.
        for _ in 0..64 {
            if let Some(report) = stamped::notice(self, buffer)? {
                let what = self.error_event(&report.about, &buffer[..report.bytes]);
                match what {
                    Some(what) => return Ok(Some(PingMessage { stamp_ns: report.stamp_ns, what })),
                    None => continue,
                }
            }
            let came = match stamped::receive(self, buffer) {
                // An ICMP error is reported by a notice, too.
                Err(_) => continue,
                Ok(None) => return Ok(None),
                Ok(Some(came)) => came,
            };
            if let Some(which) = self.answer(&buffer[..came.bytes]) {
                let by = came.from.map(|from| from.ip());
                let what = PingEvent::Answer { which, error: false, by, ds_field: came.ds_field };
                return Ok(Some(PingMessage { stamp_ns: came.stamp_ns, what }));
            }
        }
        Ok(None)
    }

    /// Which request these bytes answer.
    fn answer(&self, bytes: &[u8]) -> Option<RequestId> {
        match &self.kind {
            Kind::Udp(_) => match message::signed(bytes, self.sign) {
                Signed::Yes(number) => Some(RequestId::Number(number)),
                Signed::No | Signed::TooShort => None,
            },
            Kind::Icmp(socket) => {
                let bytes = if socket.is_raw() && !self.v6 { message::behind_ip(bytes) } else { bytes };
                let answers = if self.v6 { [129, 129] } else { [0, 0] };
                message::echo(bytes, answers, self.sign, socket.is_raw())
            }
        }
    }

    /// What is reported about a request whose bytes are quoted.
    fn error_event(&mut self, about: &About, quoted: &[u8]) -> Option<PingEvent> {
        match *about {
            About::Left(number) => self.departed(number).map(PingEvent::Left),
            About::Here(0) => None,
            About::Here(errno) => {
                let what = io::Error::from_raw_os_error(errno).to_string();
                Some(PingEvent::Fault { by: "this computer".to_owned(), what })
            }
            About::Icmp { kind, code, by } => {
                let which = self.quoted(quoted)?;
                let is_answer = match self.kind {
                    _ if self.of_hop && message::is_expiry(self.v6, kind, code) => true,
                    Kind::Udp(_) => message::is_closed_port(self.v6, kind, code),
                    Kind::Icmp(_) => false,
                };
                let named = || by.map_or_else(|| "somebody".to_owned(), |by| by.to_string());
                Some(match which {
                    Some(which) if is_answer => PingEvent::Answer { which, error: true, by, ds_field: None },
                    _ => PingEvent::Fault { by: named(), what: message::words(self.v6, kind, code) },
                })
            }
        }
    }

    /// Which request is quoted; `Some(None)`: one of tidegate's, but too little of it to identify; `None`:
    /// none of tidegate's.
    #[expect(clippy::option_option, reason = "one of ours, and which, are two questions")]
    fn quoted(&self, bytes: &[u8]) -> Option<Option<RequestId>> {
        match &self.kind {
            Kind::Udp(_) => match message::signed(bytes, self.sign) {
                Signed::Yes(number) => Some(Some(RequestId::Number(number))),
                Signed::TooShort => Some(None),
                Signed::No => None,
            },
            Kind::Icmp(socket) => {
                let requests = if self.v6 { [128, 128] } else { [8, 8] };
                message::echo(bytes, requests, self.sign, socket.is_raw()).map(Some)
            }
        }
    }

    /// Our number of the departure that the kernel gives this one; it reports them in order, but may leave
    /// some out.
    fn departed(&mut self, number: u32) -> Option<u64> {
        let (first, waiting) = self.departing.as_mut()?;
        let skipped = number.wrapping_sub(*first);
        if skipped as usize >= waiting.len() {
            return None;
        }
        waiting.drain(..skipped as usize);
        *first = number.wrapping_add(1);
        waiting.pop_front()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Icmp(socket) => socket.as_fd(),
            Kind::Udp(socket) => socket.as_fd(),
        }
    }
}

fn udp(to: SocketAddr) -> io::Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
        SocketAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket)
}

/// Why there is no socket.
fn refused(plan: &PingSchedule, why: io::Error) -> Error {
    match why.kind() {
        io::ErrorKind::PermissionDenied => Error::NotAllowed {
            what: "sending echo requests (ping)".to_owned(),
            remedy: "Any of these allows it: as root `sysctl -w net.ipv4.ping_group_range='0 2147483647'` \
            (for every user, until the next boot; it covers IPv6 too); `setcap cap_net_raw+ep $(command -v \
            tidegate)`; running as root. `tidegate ping --udp` needs no permission."
                .to_owned(),
        },
        _ if is_unreachable(&why) => Error::NoRoute { to: plan.address.to_string(), why },
        _ => Error::Io { what: format!("open a socket to {}", plan.address), why },
    }
}

/// Whether an error means that there is no route.
pub(super) fn is_unreachable(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::AddrNotAvailable
    )
}

/// Is there a way to an address, as far as this computer knows?
pub(super) fn is_reached(address: IpAddr) -> bool {
    // The port means nothing: nothing is sent.
    udp(SocketAddr::new(address, 7)).is_ok()
}
