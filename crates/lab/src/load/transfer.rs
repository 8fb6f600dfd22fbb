//! Bytes from one host to another over TCP: several connections, each read by the kernel's own account.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tidegate_sim::Transaction;
use tidegate_sys::socket::{self, TcpInfo};

use super::clock::{LOOK, LoadClock, is_patience, lock, spawn};
use super::transaction::{Ready, TransactionPlan};
use crate::host::LabHost;

/// Bytes written and read at once.
const CHUNK: usize = 64 << 10;
/// Between the beginnings of several, as in the simulator.
const APART: u64 = 10_000_000;

/// Transfers to be.
#[derive(Clone, Debug)]
pub struct TransferPlan {
    /// How many at once.
    pub count: u32,
    /// The host that is called: the receiver, or where the receiver opens, the sender.
    pub called: SocketAddr,
    /// The receiver opens the connection.
    pub receiver_opens: bool,
    /// Payload bytes; `None`: without an end.
    pub bytes: Option<u64>,
    /// The sender's congestion control, as Linux calls it.
    pub control: Option<String>,
    /// The login before it, over a connection of its own.
    pub login: Option<Transaction>,
    /// The DS field of both sides.
    pub dsfield: u8,
    /// ns: the first.
    pub start: u64,
    /// ns: nothing more is sent from then on.
    pub stop: u64,
}

/// Transfers.
#[derive(Debug)]
pub struct TransferLoad {
    flows: Vec<Arc<Mutex<TransferFlow>>>,
}

/// One connection.
#[derive(Debug, Default)]
pub struct TransferFlow {
    /// The sender's side.
    socket: Option<TcpStream>,
    /// ns: when the connection was there.
    pub began: Option<u64>,
    /// ns: when all had arrived.
    pub finished: Option<u64>,
    /// The last `TCP_INFO`.
    pub info: TcpInfo,
    /// Why it ended early, if it did.
    pub problem: Option<String>,
}

impl TransferLoad {
    /// Sets them going.
    ///
    /// # Errors
    /// A port is taken, or the congestion control unknown.
    pub fn begin(
        clock: &LoadClock,
        sender: &LabHost,
        receiver: &LabHost,
        plan: &TransferPlan,
    ) -> io::Result<TransferLoad> {
        let flows: Vec<_> = (0..plan.count).map(|_| Arc::new(Mutex::new(TransferFlow::default()))).collect();
        let (called, caller) = if plan.receiver_opens { (sender, receiver) } else { (receiver, sender) };
        let (own, at, all, next) = (plan.clone(), clock.clone(), flows.clone(), AtomicUsize::new(0));
        // Of several the n-th call is the n-th.
        let on_call = Arc::new(move |stream| {
            let Some(flow) = all.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let went = if own.receiver_opens { speak(&at, stream, &own, flow) } else { listen(&at, stream) };
            note(flow, went);
        });
        let ticket = called.on_call(clock, plan.called.ip(), plan.called.port(), on_call)?;
        let login = plan.login.clone().map(|what| {
            let server = plan.called.ip();
            let transaction_plan =
                TransactionPlan { what, server, start: plan.start, stop: plan.stop, dsfield: plan.dsfield };
            Ready::serve(clock, called, transaction_plan)
        });
        let login = login.transpose()?;
        for (number, flow) in flows.iter().enumerate() {
            let (own, at, flow, login) = (plan.clone(), clock.clone(), Arc::clone(flow), login.clone());
            caller.go(move || {
                spawn(at, "caller", move |at| {
                    let start = own.start + APART * number as u64;
                    note(&flow, call(at, &own, ticket, login.as_ref(), start, &flow));
                })
            })??;
        }
        Ok(TransferLoad { flows })
    }

    /// Reads one of them, with its present `TCP_INFO`.
    pub fn look<T>(&self, number: usize, f: impl FnOnce(&TransferFlow) -> T) -> Option<T> {
        let mut flow = lock(self.flows.get(number)?);
        if let Some(info) = flow.socket.as_ref().and_then(|socket| socket::tcp_info(socket).ok()) {
            flow.info = info;
        }
        Some(f(&flow))
    }
}

fn note(flow: &Mutex<TransferFlow>, went: io::Result<()>) {
    if let Err(error) = went {
        lock(flow).problem = Some(error.to_string());
    }
}

fn call(
    clock: &LoadClock,
    plan: &TransferPlan,
    ticket: u16,
    login: Option<&Ready>,
    start: u64,
    flow: &Mutex<TransferFlow>,
) -> io::Result<()> {
    if !clock.sleep_until(start) {
        return Ok(());
    }
    if let Some(login) = login {
        login.once(clock)?;
    }
    let mut stream = TcpStream::connect(plan.called)?;
    socket::ds_field(&stream, plan.called.is_ipv6(), plan.dsfield)?;
    stream.write_all(&ticket.to_be_bytes())?;
    if plan.receiver_opens { listen(clock, stream) } else { speak(clock, stream, plan, flow) }
}

/// The sender's part.
fn speak(
    clock: &LoadClock,
    mut stream: TcpStream,
    plan: &TransferPlan,
    flow: &Mutex<TransferFlow>,
) -> io::Result<()> {
    stream.set_write_timeout(Some(LOOK))?;
    socket::ds_field(&stream, plan.called.is_ipv6(), plan.dsfield)?;
    if let Some(control) = &plan.control {
        socket::congestion_control(&stream, control)?;
    }
    {
        let mut flow = lock(flow);
        flow.socket = Some(stream.try_clone()?);
        flow.began = Some(clock.now());
    }
    let chunk = [0; CHUNK];
    let mut left = plan.bytes.unwrap_or(u64::MAX);
    while left > 0 && clock.now() < plan.stop && !clock.is_over() {
        match stream.write(&chunk[..left.min(CHUNK as u64) as usize]) {
            Ok(written) => left -= written as u64,
            Err(error) if is_patience(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if plan.bytes.is_none() {
        // What it has written lies in the kernel yet: it must not continue being sent.
        return stream.shutdown(Shutdown::Both).or(Ok(()));
    }
    stream.shutdown(Shutdown::Write)?;
    if wait_for_end(clock, &mut stream)? {
        lock(flow).finished = Some(clock.now());
    }
    Ok(())
}

/// The receiver's part.
fn listen(clock: &LoadClock, mut stream: TcpStream) -> io::Result<()> {
    wait_for_end(clock, &mut stream).map(drop)
}

/// Reads until the other side has ended; false: all was over before.
fn wait_for_end(clock: &LoadClock, stream: &mut TcpStream) -> io::Result<bool> {
    stream.set_read_timeout(Some(LOOK))?;
    let mut chunk = vec![0; CHUNK];
    while !clock.is_over() {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(true),
            Err(error) if !is_patience(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(false)
}
