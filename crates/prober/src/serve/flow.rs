//! A TCP flow of a session, the server's side.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use tidegate_probe_wire::{ConnectionId, FlowDirection, FlowPlan, SessionKey, TcpSample};
use tidegate_sys::socket;

use super::shared::Shared;
use crate::flow::sample;
use crate::line::is_patience;

/// How often it is looked whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// The most that may be unsent in the kernel, bytes, so that the flow's figures are current.
const UNSENT: u32 = 128 << 10;
/// The client ends a flow; we do a little later, should it not, ns.
const GRACE_NS: u64 = 2_000_000_000;
/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// Lets it flow until its time has run out, or either side has ended it.
pub(super) fn let_flow(
    shared: &Shared,
    call: ConnectionId,
    stream: TcpStream,
    early: Vec<u8>,
    (plan, key): (&FlowPlan, &SessionKey),
) -> io::Result<()> {
    let v6 = stream.peer_addr()?.is_ipv6();
    socket::ds_field(&stream, v6, plan.dscp << 2)?;
    let most = shared.sessions().quotas().limits.bits_per_second / 8;
    match plan.way {
        FlowDirection::Up => receive(shared, call, stream, early.len() as u64, most),
        FlowDirection::Down => send(shared, call, stream, (plan, key), most),
    }
}

fn is_over(shared: &Shared, call: ConnectionId) -> bool {
    shared.is_over() || shared.sessions().is_overdue(shared.clock.now(), call)
}

fn send(
    shared: &Shared,
    call: ConnectionId,
    mut stream: TcpStream,
    (plan, key): (&FlowPlan, &SessionKey),
    most: u64,
) -> io::Result<()> {
    if !plan.control.is_empty() {
        socket::congestion_control(&stream, &plan.control)?;
    }
    socket::most_unsent(&stream, UNSENT)?;
    // A rate of this many bytes that it does not fit is none.
    if let Ok(most) = u32::try_from(most) {
        socket::most_per_second(&stream, most)?;
    }
    stream.set_write_timeout(Some(LOOK))?;
    let began = shared.clock.now();
    let mut block = vec![0x5a; TcpSample::BLOCK];
    let mut seal = key.samples();
    while !is_over(shared, call) {
        let info = socket::tcp_info(&stream)?;
        let at_ns = shared.clock.now() - began;
        block[..TcpSample::SEALED]
            .copy_from_slice(&TcpSample { at_ns, ..sample(&info) }.write_sealed(&mut seal));
        if at_ns > plan.length_ns.saturating_add(GRACE_NS) || !write_whole(shared, call, &mut stream, &block)?
        {
            break;
        }
    }
    stream.shutdown(Shutdown::Both)
}

/// Writes a block, however long that takes; false: it is over before.
fn write_whole(
    shared: &Shared,
    call: ConnectionId,
    stream: &mut TcpStream,
    mut block: &[u8],
) -> io::Result<bool> {
    while !block.is_empty() {
        match stream.write(block) {
            Ok(written) => block = &block[written..],
            Err(error) if is_patience(&error) => {
                if is_over(shared, call) {
                    return Ok(false);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Reads no faster than `most` bytes per second: the sender's window closes.
fn receive(
    shared: &Shared,
    call: ConnectionId,
    mut stream: TcpStream,
    early: u64,
    most: u64,
) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK))?;
    let began = shared.clock.now();
    let mut chunk = vec![0; CHUNK];
    let mut total = early;
    while !is_over(shared, call) {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(bytes) => total += bytes as u64,
            Err(error) if is_patience(&error) => {}
            Err(error) => return Err(error),
        }
        let due = u128::from(total) * 1_000_000_000 / u128::from(most.max(1));
        let early = due.saturating_sub(u128::from(shared.clock.now() - began));
        std::thread::sleep(Duration::from_nanos(u64::try_from(early).unwrap_or(0)).min(LOOK));
    }
    Ok(())
}
