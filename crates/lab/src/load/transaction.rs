//! What people wait for, over real sockets: a look-up, a dialogue, more of them side by side
//! ([`Transaction`]).

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_packet::Nanos;
use tidegate_sim::{DialogueTurn, Lookup, Transaction};
use tidegate_sys::socket;

use super::clock::{LOOK, LoadClock, any_like, is_patience, lock, spawn};
use super::listener::TICKET;
use crate::host::LabHost;

/// Bytes read or written at once.
const CHUNK: usize = 16 << 10;

/// Transactions to be.
#[derive(Clone, Debug)]
pub struct TransactionPlan {
    /// What is done.
    pub what: Transaction,
    /// The server.
    pub server: IpAddr,
    /// ns: the first.
    pub start: u64,
    /// ns: none begins from then on.
    pub stop: u64,
    /// The DS field of both sides.
    pub dsfield: u8,
}

/// How one went; ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionRecord {
    /// When it began.
    pub began: u64,
    /// Until the dialogue (or the look-up, if that was all) had ended.
    pub first: Option<u64>,
    /// Until what is needed to show something had come.
    pub paint: Option<u64>,
    /// Until everything had ended.
    pub all: Option<u64>,
}

/// Transactions, one after the other.
#[derive(Debug)]
pub struct TransactionLoad {
    records: Arc<Mutex<Vec<TransactionRecord>>>,
}

impl TransactionLoad {
    /// Sets them going.
    ///
    /// # Errors
    /// A port is taken.
    pub fn begin(
        clock: &LoadClock,
        client: &LabHost,
        server: &LabHost,
        plan: &TransactionPlan,
    ) -> io::Result<TransactionLoad> {
        let ready = Ready::serve(clock, server, plan.clone())?;
        let goes = Arc::new(Mutex::new(Vec::new()));
        let (own, clock) = (Arc::clone(&goes), clock.clone());
        client.go(move || spawn(clock, "transaction", move |clock| ready.set_out(clock, &own)))??;
        Ok(TransactionLoad { records: goes })
    }

    /// How each went so far.
    pub fn records(&self) -> Vec<TransactionRecord> {
        lock(&self.records).clone()
    }
}

/// A transaction whose server listens.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    plan: TransactionPlan,
    /// The tickets for look-ups and for calls.
    tickets: [u16; 2],
}

/// Answers a look-up after its time.
fn answer(socket: &UdpSocket, asker: SocketAddr, lookup: Lookup) {
    std::thread::sleep(duration(lookup.think));
    let _ = socket.send_to(&vec![0; lookup.reply as usize], asker);
}

fn be_server(clock: &LoadClock, stream: TcpStream, plan: &TransactionPlan) -> io::Result<()> {
    socket::ds_field(&stream, plan.server.is_ipv6(), plan.dsfield)?;
    let mut talk = DialogueConnection::new(clock, stream, clock.now().saturating_add(plan.what.patience.0))?;
    let what = &plan.what;
    // After the ticket a byte names the part of the transaction.
    match usize::from(talk.read_byte()?) {
        0 => {
            talk.converse(&what.dialogue, false, TICKET + 1)?;
            // The first of what follows continues over the same connection.
            what.followers.first().map_or(Ok(()), |more| talk.converse(more, false, 0))
        }
        n => what.followers.get(n).map_or(Ok(()), |more| talk.converse(more, false, TICKET + 1)),
    }
}

type RecordUpdate<'b> = &'b (dyn Fn(&dyn Fn(&mut TransactionRecord, u64)) + Sync);

impl Ready {
    /// Lets a host serve such transactions.
    ///
    /// # Errors
    /// A port is taken.
    pub(super) fn serve(clock: &LoadClock, server: &LabHost, plan: TransactionPlan) -> io::Result<Ready> {
        let mut tickets = [0; 2];
        if let Some(lookup) = plan.what.lookup {
            let on_question =
                Arc::new(move |socket: &UdpSocket, _: &[u8], asker| answer(socket, asker, lookup));
            tickets[0] = server.on_datagram(clock, plan.server, lookup.port, on_question)?;
        }
        if !plan.what.dialogue.is_empty() {
            let (own, at) = (plan.clone(), clock.clone());
            let on_call = Arc::new(move |stream| {
                // A client that gave up has gone.
                let _ = be_server(&at, stream, &own);
            });
            tickets[1] = server.on_call(clock, plan.server, plan.what.port, on_call)?;
        }
        Ok(Ready { plan, tickets })
    }

    /// Begins one after the other, whether or not the one before has ended.
    fn set_out(&self, clock: &LoadClock, goes: &Arc<Mutex<Vec<TransactionRecord>>>) {
        let mut due = self.plan.start;
        while due < self.plan.stop && clock.sleep_until(due) {
            due += self.plan.what.every.0.max(1_000_000);
            let number = {
                let mut goes = lock(goes);
                goes.push(TransactionRecord { began: clock.now(), ..TransactionRecord::default() });
                goes.len() - 1
            };
            let (own, goes) = (self.clone(), Arc::clone(goes));
            let _ = spawn(clock.clone(), "go", move |clock| {
                let began = lock(&goes)[number].began;
                let book = |write: &dyn Fn(&mut TransactionRecord, u64)| {
                    write(&mut lock(&goes)[number], clock.now() - began)
                };
                // What fails was abandoned.
                let _ = own.go(clock, began, &book);
            });
        }
    }

    /// Does the transaction once and waits for it.
    ///
    /// # Errors
    /// It was abandoned.
    pub(super) fn once(&self, clock: &LoadClock) -> io::Result<()> {
        self.go(clock, clock.now(), &|_| {})
    }

    fn go(&self, clock: &LoadClock, began: u64, book: RecordUpdate<'_>) -> io::Result<()> {
        let what = &self.plan.what;
        let patience = began.saturating_add(what.patience.0);
        if let Some(lookup) = what.lookup {
            self.ask(clock, lookup, patience)?;
        }
        if what.dialogue.is_empty() {
            book(&|go, took| (go.first, go.paint, go.all) = (Some(took), Some(took), Some(took)));
            return Ok(());
        }
        let mut first = self.open(clock, patience, 0, &what.dialogue)?;
        book(&|go, took| {
            go.first = Some(took);
            go.paint = Some(took).filter(|_| what.paint == 0);
        });
        let painted = AtomicUsize::new(0);
        let arrived = |part: usize| {
            if part < what.paint && painted.fetch_add(1, Ordering::Relaxed) + 1 == what.paint {
                book(&|go, took| go.paint = Some(took));
            }
        };
        std::thread::scope(|scope| {
            let side_by_side = (1..what.followers.len()).map(|part| {
                let arrived = &arrived;
                let fetch = move || {
                    self.open(clock, patience, part as u8, &what.followers[part]).map(|_| arrived(part))
                };
                scope.spawn(fetch)
            });
            let others: Vec<_> = side_by_side.collect();
            if let Some(more) = what.followers.first() {
                first.converse(more, true, 0)?;
                arrived(0);
            }
            others
                .into_iter()
                .try_for_each(|other| other.join().unwrap_or_else(|_| Err(io::Error::other("panicked"))))
        })?;
        book(&|go, took| go.all = Some(took));
        Ok(())
    }

    /// Opens the connection of a part, and takes its turns.
    fn open<'c>(
        &self,
        clock: &'c LoadClock,
        patience: u64,
        part: u8,
        turns: &[DialogueTurn],
    ) -> io::Result<DialogueConnection<'c>> {
        let to = SocketAddr::new(self.plan.server, self.plan.what.port);
        let stream = TcpStream::connect_timeout(&to, clock.until(patience).max(Duration::from_millis(1)))?;
        socket::ds_field(&stream, to.is_ipv6(), self.plan.dsfield)?;
        let mut talk = DialogueConnection::new(clock, stream, patience)?;
        let [high, low] = self.tickets[1].to_be_bytes();
        talk.stream.write_all(&[high, low, part])?;
        talk.converse(turns, true, TICKET + 1)?;
        Ok(talk)
    }

    /// Looks a name up, and sends the request again when no reply comes.
    fn ask(&self, clock: &LoadClock, lookup: Lookup, patience: u64) -> io::Result<()> {
        let server = self.plan.server;
        let socket = UdpSocket::bind((any_like(server), 0))?;
        socket::ds_field(&socket, server.is_ipv6(), self.plan.dsfield)?;
        socket.connect((server, lookup.port))?;
        let mut question = vec![0; (lookup.request as usize).max(TICKET)];
        question[..TICKET].copy_from_slice(&self.tickets[0].to_be_bytes());
        let mut answer = [0; 2048];
        for _ in 0..lookup.tries.max(1) {
            let _ = socket.send(&question);
            let until = patience.min(clock.now().saturating_add(lookup.retry.0));
            while clock.now() < until && !clock.is_over() {
                socket.set_read_timeout(Some(clock.until(until).clamp(Duration::from_micros(1), LOOK)))?;
                match socket.recv(&mut answer) {
                    Ok(_) => return Ok(()),
                    Err(error) if !is_patience(&error) => break,
                    Err(_) => {}
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// One side of a connection on which turns are taken.
struct DialogueConnection<'c> {
    clock: &'c LoadClock,
    stream: TcpStream,
    patience: u64,
    chunk: Vec<u8>,
}

impl<'c> DialogueConnection<'c> {
    fn new(clock: &'c LoadClock, stream: TcpStream, patience: u64) -> io::Result<DialogueConnection<'c>> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        Ok(DialogueConnection { clock, stream, patience, chunk: vec![0; CHUNK] })
    }

    /// Takes all turns, our own and the other side's; `given`: bytes of the first message that were sent
    /// before.
    fn converse(&mut self, turns: &[DialogueTurn], as_client: bool, given: usize) -> io::Result<()> {
        let mut given = if turns.first().is_some_and(|turn| turn.client) { given } else { 0 };
        for turn in turns {
            let data = (turn.bytes as usize).saturating_sub(std::mem::take(&mut given));
            if turn.client == as_client {
                std::thread::sleep(duration(turn.think));
                self.copy_bytes(data, |talk, n| talk.stream.write(&talk.chunk[..n]))?;
            } else {
                self.copy_bytes(data, |talk, n| talk.stream.read(&mut talk.chunk[..n]))?;
            }
        }
        Ok(())
    }

    fn copy_bytes(
        &mut self,
        bytes: usize,
        some: impl Fn(&mut Self, usize) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            if self.clock.is_over() || self.clock.now() >= self.patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match some(self, left.min(CHUNK)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(moved) => left -= moved,
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next byte from the other side.
    fn read_byte(&mut self) -> io::Result<u8> {
        self.copy_bytes(1, |talk, _| talk.stream.read(&mut talk.chunk[..1]))?;
        Ok(self.chunk[0])
    }
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.0)
}
