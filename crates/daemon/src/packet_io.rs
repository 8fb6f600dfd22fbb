//! Which backend packets come by.

use crate::error::{ErrorContext, Result};
use crate::options::{DaemonOptions, PacketIoBackend};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_dataplane::packet_io::capture::CaptureIo;
use tidegate_dataplane::packet_io::queue::QueueIo;
use tidegate_dataplane::packet_io::tun::{TunEnd, TunIo};
use tidegate_dataplane::packet_io::{AttachPoint, PacketIo, TrafficDirection};
use tidegate_plan::rebind::real_devices;
use tidegate_policy::Op;
use tidegate_sys::netlink::Links;
use tidegate_sys::{link_monitor, namespace_thread};

/// What the device inside is called, what it is called where there is one of that name, and the bytes of its
/// largest packet.
const INSIDE: &str = "eth0";
const BESIDE: &str = "tidegate0";
const MTU: u32 = 1500;

/// Opens the backend of a daemon.
pub(crate) struct Opener {
    kind: PacketIoBackend,
    /// The backend between two namespaces, which is there before anything else is known.
    between: Option<Between>,
    /// The name of the backend that was opened.
    pub(crate) opened: Arc<Mutex<&'static str>>,
}

impl Opener {
    /// What the options ask for, for a policy that did this. A TUN device is made here, so that the policy
    /// finds it.
    ///
    /// # Errors
    /// The TUN backend cannot be opened.
    pub(crate) fn new(options: &DaemonOptions, log: &[Op]) -> Result<Opener> {
        let between = match options.packet_io {
            PacketIoBackend::Tun => Some(Between::new(options, log)?),
            _ => None,
        };
        Ok(Opener { kind: options.packet_io, between, opened: Arc::default() })
    }

    /// The places of the backend: for those that the policy needs.
    pub(crate) fn spots(&self, needed: Vec<AttachPoint>) -> Vec<AttachPoint> {
        match &self.between {
            // What passes it passes it in both directions.
            Some(between) => [TrafficDirection::Egress, TrafficDirection::Ingress]
                .map(|direction| AttachPoint { dev: between.ends[0].name.clone(), direction })
                .to_vec(),
            None => needed,
        }
    }

    /// Opens the packet I/O backend.
    ///
    /// # Errors
    /// The backend's.
    pub(crate) fn open(&mut self, spots: &[AttachPoint]) -> io::Result<Box<dyn PacketIo>> {
        let (name, packet_io): (_, Box<dyn PacketIo>) = match self.kind {
            PacketIoBackend::Capture => ("capture", Box::new(CaptureIo::open(spots)?)),
            PacketIoBackend::Nfqueue => ("nfqueue", Box::new(QueueIo::anywhere(spots)?)),
            PacketIoBackend::Tun => {
                let between = self.between.as_mut().ok_or(io::ErrorKind::InvalidInput)?;
                let packet_io = between.opened.take().map_or_else(|| between.open(), Ok)?;
                ("tun", Box::new(packet_io))
            }
            PacketIoBackend::Auto => match CaptureIo::open(spots) {
                Ok(packet_io) => ("capture", Box::new(packet_io)),
                // No BPF, or none for us: what is IP comes by netfilter.
                Err(first) if first.kind() != io::ErrorKind::NotFound => match QueueIo::anywhere(spots) {
                    Ok(packet_io) => ("nfqueue", Box::new(packet_io)),
                    Err(_) => return Err(first),
                },
                Err(gone) => return Err(gone),
            },
        };
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = name;
        Ok(packet_io)
    }
}

/// A TUN backend and its ends.
struct Between {
    ends: [TunEnd; 2],
    addresses: [IpAddr; 2],
    opened: Option<TunIo>,
}

impl Between {
    fn new(options: &DaemonOptions, log: &[Op]) -> Result<Between> {
        let need = "--packet-io tun needs --inside (a process, or a file of its network namespace) and \
        --addresses HERE,THERE";
        let inside = options.inside.as_ref().context(need)?;
        let [here, there] = options.addresses.as_slice() else { bail!(Policy, "{need}") };
        let name = options
            .dev
            .clone()
            .or_else(|| real_devices(log).into_iter().next())
            .context("the policy names no device")?;
        ensure!(
            link_monitor::links()?.iter().all(|link| link.name != name),
            Device,
            "there is a device `{name}` already; --packet-io tun makes its own: name another with --dev"
        );
        let inside = match inside.parse::<u32>() {
            Ok(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
            Err(_) => PathBuf::from(inside),
        };
        let namespace = File::open(&inside).with_context(|| inside.display().to_string())?;
        let known = namespace_thread::inside(namespace, link_monitor::links)
            .context("the namespace inside cannot be entered")??;
        let name_inside = if known.iter().any(|link| link.name == INSIDE) { BESIDE } else { INSIDE };
        let end = |namespace, name: &str| TunEnd { namespace, name: name.to_owned(), mtu: MTU };
        let ends = [end(None, &name), end(Some(inside), name_inside)];
        let mut between = Between { ends, addresses: [*here, *there], opened: None };
        let packet_io = between.open().context("the packet path between the two cannot be opened")?;
        between.opened = Some(packet_io);
        Ok(between)
    }

    /// A device on either side, with its address and the way to the other; inside, everything goes that way.
    fn open(&self) -> io::Result<TunIo> {
        let packet_io = TunIo::open(&self.ends)?;
        let [here, there] = self.addresses;
        let [outer, inner] = &self.ends;
        let mut links = Links::open()?;
        links.address(&outer.name, here)?;
        links.add_route(&outer.name, there)?;
        let name = inner.name.clone();
        let namespace = File::open(inner.namespace.as_ref().ok_or(io::ErrorKind::InvalidInput)?)?;
        namespace_thread::inside(namespace, move || {
            let mut links = Links::open()?;
            links.address(&name, there)?;
            links.add_default_route(&name, here)
        })??;
        Ok(packet_io)
    }
}
