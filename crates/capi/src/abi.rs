//! The functions that C calls, and the structs it gives and reads, as `include/tidegate.h` declares them: a
//! test compares both. This is the only file of the crate with code that the compiler cannot check. It
//! turns C's pointers into references and slices, and refuses those that are NULL or not aligned; what it
//! is given beside that is checked by the safe crates below. What no library can check is in the header:
//! that a pointer which is neither leads to what it should, that a device is not used after it was freed,
//! nor by two threads at once.

#![allow(non_camel_case_types)]

use crate::calls::{CDevice, guard};
use crate::text::with_message;
use ::tidegate_device::{
    EgressConfig, EgressDevice, MAX_COMMANDS, MAX_LENGTH, OfferedPacket, PacketFields, Time, XmitStatus,
};
use std::ffi::{CStr, c_char, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// A call failed.
const ERROR: c_int = -1;

/// The longest header that is read: a packet and its Ethernet header.
const MAX_HEADER: u32 = MAX_LENGTH + 14;

/// The longest name of a device that is read.
const MAX_NAME: usize = 64;

/// The packets of this device have no Ethernet header.
const NO_ETHERNET: u32 = 1;

/// A device, opaque to C.
#[derive(Debug)]
pub struct tidegate_device(CDevice);

/// How a device is made; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tidegate_config {
    /// The size of this struct: of the caller's version of it.
    pub size: u32,
    /// `NO_ETHERNET` or 0.
    pub flags: u32,
    /// The device's name; NULL: `eth0`.
    pub name: *const c_char,
    /// Bits per second; 0: the link is the caller's.
    pub rate: u64,
    /// The time of the first commands, ns.
    pub start: u64,
    /// The seed of all random draws.
    pub seed: u64,
    /// Bytes; 0: 1500.
    pub mtu: u32,
    /// Packets; 0: 1000.
    pub tx_queue_len: u32,
    /// Ticks per second; 0: 250.
    pub hz: u32,
    /// The most packets; 0: 65536.
    pub packets: u32,
}

/// A packet that is offered; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tidegate_packet {
    /// The caller's number.
    pub id: u64,
    /// Header bytes, or NULL.
    pub header: *const u8,
    /// How many.
    pub header_len: u32,
    /// Bytes on the device.
    pub length: u32,
    /// The firewall mark.
    pub mark: u32,
    /// `skb->priority`.
    pub priority: u32,
    /// 4 or 6.
    pub ip_version: u8,
    /// The IP protocol.
    pub protocol: u8,
    /// DSCP and ECN.
    pub dsfield: u8,
    /// 0.
    pub reserved: u8,
    /// Ports, in the host's byte order.
    pub source_port: u16,
    /// Ports, in the host's byte order.
    pub destination_port: u16,
    /// Addresses, in network byte order; IPv4 has the first four bytes.
    pub source: [u8; 16],
    /// Addresses, in network byte order; IPv4 has the first four bytes.
    pub destination: [u8; 16],
}

/// A packet that the device sends; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tidegate_sent {
    /// The caller's number.
    pub id: u64,
    /// When it was offered, ns.
    pub offered: u64,
    /// When its last bit is sent, ns.
    pub finished: u64,
    /// Its front as it leaves.
    pub header: *const u8,
    /// How many bytes.
    pub header_len: u32,
    /// Bytes on the device.
    pub length: u32,
    /// The firewall mark.
    pub mark: u32,
    /// `skb->priority`.
    pub priority: u32,
    /// DSCP and ECN as it leaves.
    pub dsfield: u8,
    /// 1: nothing is reported of this packet later.
    pub last: u8,
    /// 1: a queue marked it.
    pub marked: u8,
    /// 1: bytes were rewritten.
    pub rewritten: u8,
    /// 0.
    pub reserved: u32,
}

/// A packet that the device dropped; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tidegate_drop {
    /// The caller's number.
    pub id: u64,
    /// When it was offered, ns.
    pub offered: u64,
    /// When it was dropped, ns.
    pub dropped: u64,
    /// Bytes on the device.
    pub length: u32,
    /// The handle of the qdisc that dropped it.
    pub qdisc: u32,
    /// `TIDEGATE_DROP_…`.
    pub cause: u32,
    /// 1: nothing is reported of this packet later.
    pub last: u32,
}

/// Counters; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tidegate_stats {
    /// Packets taken.
    pub offered: u64,
    /// Copies that queues made.
    pub copied: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets sent with a mark that they came without.
    pub marked: u64,
    /// Packets waiting.
    pub waiting: u32,
    /// Bytes waiting.
    pub waiting_bytes: u32,
    /// The root's `overlimits`.
    pub overlimits: u32,
    /// 0.
    pub reserved: u32,
}

/// What a pointer leads to.
///
/// # Safety
/// A pointer that is neither NULL nor misaligned must lead to a `T` that nothing changes meanwhile.
unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, String> {
    check(pointer, name)?;
    // SAFETY: it is aligned and not NULL; the rest is the caller's promise.
    Ok(unsafe { &*pointer })
}

/// The same, to change.
///
/// # Safety
/// A pointer that is neither NULL nor misaligned must lead to a `T` that nothing else reads or changes
/// meanwhile.
unsafe fn exclusive<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, String> {
    check(pointer, name)?;
    // SAFETY: it is aligned and not NULL; the rest is the caller's promise.
    Ok(unsafe { &mut *pointer })
}

/// Writes a result.
///
/// # Safety
/// A pointer that is neither NULL nor misaligned must lead to memory for a `T`.
unsafe fn write<T>(pointer: *mut T, name: &str, value: T) -> Result<(), String> {
    check(pointer, name)?;
    // SAFETY: it is aligned and not NULL; what was there is plain data, if anything.
    unsafe { pointer.write(value) };
    Ok(())
}

fn check<T>(pointer: *const T, name: &str) -> Result<(), String> {
    if pointer.is_null() {
        Err(format!("`{name}` is NULL: pass its address"))
    } else if !pointer.is_aligned() {
        Err(format!("`{name}` is not aligned to {} bytes: pass the address of its type", align_of::<T>()))
    } else {
        Ok(())
    }
}

/// A text of at most so many bytes.
///
/// # Safety
/// A pointer that is not NULL must lead to a text that ends with NUL, or to more bytes than `most`.
unsafe fn text<'a>(pointer: *const c_char, name: &str, most: usize) -> Result<&'a str, String> {
    check(pointer, name)?;
    let mut length = 0;
    // SAFETY: no byte behind the NUL, nor behind `most`, is read.
    while unsafe { *pointer.add(length) } != 0 {
        length += 1;
        if length > most {
            return Err(format!("`{name}` has more than {most} bytes: end it with NUL, or give it in parts"));
        }
    }
    // SAFETY: these bytes were read.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) };
    let place = |error: std::str::Utf8Error| {
        format!("`{name}` is not UTF-8 from byte {} on: write it in ASCII or UTF-8", error.valid_up_to())
    };
    std::str::from_utf8(bytes).map_err(place)
}

/// The configuration that C's means.
///
/// # Safety
/// As [`shared`]; its name as [`text`].
unsafe fn config_of(config: *const tidegate_config) -> Result<EgressConfig, String> {
    let mut wanted = EgressConfig::default();
    if config.is_null() {
        return Ok(wanted);
    }
    // SAFETY: the caller's promise.
    let config = unsafe { shared(config, "config") }?;
    let size = size_of::<tidegate_config>() as u32;
    if config.size != size {
        return Err(format!(
            "`config.size` is {}, not {size}: set it to sizeof(tidegate_config), and compile with this version's \
            header",
            config.size
        ));
    }
    if config.flags & !NO_ETHERNET != 0 {
        return Err(format!("`config.flags` is {:#x}: only TIDEGATE_NO_ETHERNET is known", config.flags));
    }
    if !config.name.is_null() {
        // SAFETY: the caller's promise.
        wanted.name = unsafe { text(config.name, "config.name", MAX_NAME) }?.to_owned();
    }
    let or = |given: u32, default: u32| if given == 0 { default } else { given };
    Ok(EgressConfig {
        name: wanted.name,
        rate: Some(config.rate).filter(|rate| *rate > 0),
        mtu: or(config.mtu, wanted.mtu),
        ethernet: config.flags & NO_ETHERNET == 0,
        tx_queue_len: or(config.tx_queue_len, wanted.tx_queue_len),
        hz: or(config.hz, wanted.hz),
        start: Time(config.start),
        seed: config.seed,
        packets: or(config.packets, wanted.packets),
    })
}

/// An address of C's.
fn address(version: u8, bytes: [u8; 16]) -> Result<IpAddr, String> {
    match version {
        4 => {
            let [a, b, c, d, ..] = bytes;
            Ok(Ipv4Addr::new(a, b, c, d).into())
        }
        6 => Ok(Ipv6Addr::from(bytes).into()),
        other => Err(format!(
            "`packet.ip_version` is {other}: set 4 or 6 and the addresses, or give the packet's bytes in \
            `packet.header`"
        )),
    }
}

/// Makes a device; see the header.
///
/// # Safety
/// `config` is NULL or leads to a `tidegate_config`; `commands` is NULL or leads to a text that ends with
/// NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_create(
    config: *const tidegate_config,
    commands: *const c_char,
) -> *mut tidegate_device {
    guard("tidegate_create", ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let config = unsafe { config_of(config) }?;
        let commands = if commands.is_null() {
            ""
        } else {
            // SAFETY: the caller's promise.
            unsafe { text(commands, "commands", MAX_COMMANDS) }?
        };
        let device = EgressDevice::new(&config, "").map_err(|error| error.to_string())?;
        let mut device = CDevice::new(device);
        device.tc(config.start.0, commands)?;
        Ok(Box::into_raw(Box::new(tidegate_device(device))))
    })
}

/// Carries out tc commands; see the header.
///
/// # Safety
/// `device` is NULL or from `tidegate_create` and not freed; `commands` is NULL or leads to a text that
/// ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_tc(
    device: *mut tidegate_device,
    now: u64,
    commands: *const c_char,
) -> *const c_char {
    guard("tidegate_tc", ptr::null(), || {
        // SAFETY: the caller's promise.
        let (device, commands) =
            unsafe { (exclusive(device, "device")?, text(commands, "commands", MAX_COMMANDS)?) };
        device.0.tc(now, commands).map(|listing| listing.as_ptr())
    })
}

/// Offers a packet; see the header.
///
/// # Safety
/// `device` is NULL or from `tidegate_create` and not freed; `packet` is NULL or leads to a
/// `tidegate_packet` whose `header` is NULL or leads to `header_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_offer(
    device: *mut tidegate_device,
    now: u64,
    packet: *const tidegate_packet,
) -> c_int {
    guard("tidegate_offer", ERROR, || {
        // SAFETY: the caller's promise.
        let (device, packet) = unsafe { (exclusive(device, "device")?, shared(packet, "packet")?) };
        let mut offered = if packet.header.is_null() {
            if packet.header_len != 0 {
                return Err(format!(
                    "`packet.header` is NULL, and {} bytes long: give the bytes, or 0 and the addresses",
                    packet.header_len
                ));
            }
            let fields = PacketFields {
                source: address(packet.ip_version, packet.source)?,
                destination: address(packet.ip_version, packet.destination)?,
                source_port: packet.source_port,
                destination_port: packet.destination_port,
                protocol: packet.protocol,
                dsfield: packet.dsfield,
            };
            OfferedPacket::from_fields(packet.id, fields, packet.length)
        } else if packet.header_len > MAX_HEADER {
            return Err(format!(
                "`packet.header_len` is {}, more than any packet has: at most {MAX_HEADER}",
                packet.header_len
            ));
        } else {
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::slice::from_raw_parts(packet.header, packet.header_len as usize) };
            OfferedPacket::from_bytes(packet.id, bytes, packet.length)
        };
        (offered.mark, offered.priority) = (packet.mark, packet.priority);
        let status = device.0.with(|device| device.offer(Time(now), &offered))?;
        match status.map_err(|error| error.to_string())? {
            XmitStatus::Queued | XmitStatus::Away => Ok(0),
            XmitStatus::Congested => Ok(1),
            XmitStatus::Refused | XmitStatus::Stopped => Ok(2),
        }
    })
}

/// The next packet that the device sends; see the header.
///
/// # Safety
/// `device` is NULL or from `tidegate_create` and not freed; `sent` is NULL or leads to memory for a
/// `tidegate_sent`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_poll(
    device: *mut tidegate_device,
    now: u64,
    sent: *mut tidegate_sent,
) -> c_int {
    guard("tidegate_poll", ERROR, || {
        check(sent, "sent")?;
        // SAFETY: the caller's promise.
        let device = &mut unsafe { exclusive(device, "device") }?.0;
        let polled = device.with(|device| device.poll(Time(now)))?.map_err(|error| error.to_string())?;
        device.sent = polled;
        let Some(packet) = &device.sent else { return Ok(0) };
        let header = packet.header();
        let value = tidegate_sent {
            id: packet.id,
            offered: packet.offered.0,
            finished: packet.finished.0,
            header: header.as_ptr(),
            header_len: header.len() as u32,
            length: packet.length,
            mark: packet.mark,
            priority: packet.priority,
            dsfield: packet.dsfield,
            last: packet.last.into(),
            marked: packet.marked.into(),
            rewritten: packet.rewritten.into(),
            reserved: 0,
        };
        // SAFETY: the caller's promise.
        unsafe { write(sent, "sent", value) }?;
        Ok(1)
    })
}

/// When to poll next; see the header.
///
/// # Safety
/// `device` is NULL or from `tidegate_create` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_next_time(device: *mut tidegate_device) -> u64 {
    guard("tidegate_next_time", Time::NEVER.0, || {
        // SAFETY: the caller's promise.
        let device = unsafe { exclusive(device, "device") }?;
        Ok(device.0.with(EgressDevice::next_time)?.unwrap_or(Time::NEVER).0)
    })
}

/// The oldest drop that was not read; see the header.
///
/// # Safety
/// `device` is NULL or from `tidegate_create` and not freed; `drop` is NULL or leads to memory for a
/// `tidegate_drop`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_next_drop(device: *mut tidegate_device, drop: *mut tidegate_drop) -> c_int {
    guard("tidegate_next_drop", ERROR, || {
        check(drop, "drop")?;
        // SAFETY: the caller's promise.
        let device = unsafe { exclusive(device, "device") }?;
        let Some(packet) = device.0.with(EgressDevice::next_drop)? else { return Ok(0) };
        let value = tidegate_drop {
            id: packet.id,
            offered: packet.offered.0,
            dropped: packet.dropped.0,
            length: packet.length,
            qdisc: packet.qdisc.0,
            cause: packet.cause as u32,
            last: packet.last.into(),
        };
        // SAFETY: the caller's promise.
        unsafe { write(drop, "drop", value) }?;
        Ok(1)
    })
}

/// Counters; see the header.
///
/// # Safety
/// `device` is NULL or from `tidegate_create` and not freed; `stats` is NULL or leads to memory for a
/// `tidegate_stats`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_stats(
    device: *mut tidegate_device,
    stats: *mut tidegate_stats,
) -> c_int {
    guard("tidegate_get_stats", ERROR, || {
        check(stats, "stats")?;
        // SAFETY: the caller's promise.
        let device = unsafe { exclusive(device, "device") }?;
        let counted = device.0.with(EgressDevice::stats)?;
        let value = tidegate_stats {
            offered: counted.offered,
            copied: counted.copied,
            sent: counted.sent,
            sent_bytes: counted.sent_bytes,
            dropped: counted.dropped,
            marked: counted.marked,
            waiting: counted.waiting,
            waiting_bytes: counted.waiting_bytes,
            overlimits: counted.overlimits,
            reserved: 0,
        };
        // SAFETY: the caller's promise.
        unsafe { write(stats, "stats", value) }?;
        Ok(0)
    })
}

/// What the last call of this thread has to say; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_last_error() -> *const c_char {
    with_message(CStr::as_ptr).unwrap_or(c"".as_ptr())
}

/// The version of the library; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Frees a device; see the header.
///
/// # Safety
/// `device` is NULL or from `tidegate_create` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_free(device: *mut tidegate_device) {
    guard("tidegate_free", (), || {
        if device.is_null() {
            return Ok(());
        }
        check(device, "device")?;
        // SAFETY: the caller's promise.
        let device = unsafe { Box::from_raw(device) };
        if device.0.is_whole() {
            drop(device);
        } else {
            // Its parts are as a panic left them.
            std::mem::forget(device);
        }
        Ok(())
    });
}
