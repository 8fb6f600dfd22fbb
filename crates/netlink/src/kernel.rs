//! The kernel of a network namespace, as operations and dumps.

use crate::decode::{self, Unread};
use crate::encode::{self, NetlinkMessage, Unsent};
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use std::io;
use tidegate_netlink_wire::numbers::{NLM_F_ACK, RTM_GETACTION, RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, ClassDump, FilterDump, Installed, QdiscDump};
use tidegate_policy::{Filters, Kind, LinkDriver, LinkOp, Op};
use tidegate_sys::netlink::{LinkUpdate, Links};
use tidegate_sys::netlink_socket::{KernelRefusal, NetlinkSocket};

/// Packets that a new link's transmit queue holds, as `ip link add` has it; an ifb has its driver's 32.
const QUEUE: u32 = 1000;
const IFB_QUEUE: u32 = 32;

/// Why an operation was not carried out.
#[derive(Debug)]
#[non_exhaustive]
pub enum KernelError {
    /// It cannot be sent.
    Unsent(Unsent),
    /// The kernel refused it.
    Refused(KernelRefusal),
    /// The link could not be made or changed.
    Link(io::Error),
    /// The way to the kernel is broken.
    Broken(io::Error),
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelError::Unsent(unsent) => unsent.fmt(f),
            KernelError::Refused(refused) => write!(f, "the kernel refused it: {refused}"),
            KernelError::Link(error) => write!(f, "the link: {error}"),
            KernelError::Broken(error) => write!(f, "netlink: {error}"),
        }
    }
}

impl core::error::Error for KernelError {}

/// What is installed on a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstalledQdiscs {
    /// Its qdiscs, those that was not requested included.
    pub qdiscs: Vec<QdiscDump>,
    /// The classes, in the kernel's order.
    pub classes: Vec<ClassDump>,
    /// The kinds of qdiscs and classes that are there too and are not read.
    pub unread: BTreeSet<String>,
}

/// The messages about a device as the kernel sent them: for [`Kernel::read`], now or later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawDump {
    /// The device's number.
    pub number: u32,
    /// Messages about its qdiscs,
    pub qdiscs: Vec<Vec<u8>>,
    /// its classes,
    pub classes: Vec<Vec<u8>>,
    /// and the filters of both.
    pub filters: Vec<Vec<u8>>,
}

impl RawDump {
    /// Where filters may be attached.
    fn places(&self, dev: &str) -> Result<Vec<Handle>, Unread> {
        let (qdiscs, _) = decode::qdiscs(dev, self.number, &self.qdiscs)?;
        let (classes, _) = decode::classes(dev, self.number, &self.classes)?;
        let on_classes = classes.iter().filter(|class| class.kind.filters() == Filters::OfClassesToo);
        let on_classes = on_classes.map(|class| class.classid).filter(|class| class.minor() != 0);
        Ok(qdiscs.iter().flat_map(QdiscDump::filter_lists).chain(on_classes).collect())
    }
}

/// A netlink socket to the kernel of the network namespace it was opened in.
#[derive(Debug)]
pub struct Kernel {
    talk: NetlinkSocket,
    links: Links,
    numbers: BTreeMap<String, u32>,
}

impl Kernel {
    /// Opens a route netlink socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No socket can be had.
    pub fn open() -> io::Result<Kernel> {
        Ok(Kernel { talk: NetlinkSocket::open()?, links: Links::open()?, numbers: BTreeMap::new() })
    }

    /// Carries out operations in order, one by one, up to the first that fails; the error comes with that
    /// operation. (Many in one message are no faster, and what follows a refusal would be tried all the
    /// same.)
    ///
    /// # Errors
    /// That trouble.
    pub fn carry_out<'o>(
        &mut self,
        ops: impl IntoIterator<Item = &'o Op>,
    ) -> Result<(), (usize, KernelError)> {
        ops.into_iter().enumerate().try_for_each(|(at, op)| self.apply(op).map_err(|problem| (at, problem)))
    }

    /// Sends operations of traffic control in one piece, with one acknowledgement: fewer calls than
    /// [`Kernel::carry_out`], for changes of which those behind a refused one do no harm.
    ///
    /// # Errors
    /// Why the first that was refused was; one that cannot be sent, before any is.
    pub fn carry_out_together(&mut self, ops: &[Op]) -> Result<(), KernelError> {
        let mut messages = Vec::with_capacity(ops.len());
        for op in ops {
            messages.push(self.message(op)?);
        }
        let Some(last) = messages.len().checked_sub(1) else { return Ok(()) };
        let all = messages.iter().enumerate().map(|(at, message)| {
            let flags = message.flags & !NLM_F_ACK | if at == last { NLM_F_ACK } else { 0 };
            (message.kind, flags, &message.body[..])
        });
        let sent = self.talk.send_all(all).map_err(KernelError::Broken)?;
        sent.map_err(|(_, refusal)| KernelError::Refused(refusal))
    }

    /// The message for an operation of traffic control; one look-up for each device, however many operations
    /// name it.
    fn message(&mut self, op: &Op) -> Result<NetlinkMessage, KernelError> {
        let Kernel { links, numbers, .. } = self;
        let names = core::cell::RefCell::new(numbers);
        let number = |name: &str| {
            let known = names.borrow().get(name).copied();
            known.or_else(|| {
                let number = links.index(name).ok()?;
                names.borrow_mut().insert(name.to_owned(), number);
                Some(number)
            })
        };
        encode::message(op, &number).map_err(KernelError::Unsent)
    }

    /// Carries out an operation.
    ///
    /// # Errors
    /// Why it was not.
    pub fn apply(&mut self, op: &Op) -> Result<(), KernelError> {
        match op {
            Op::Link(op) => self.on_link(op).map_err(KernelError::Link),
            Op::TxQueueLen { dev, packets } => {
                self.change(dev, LinkUpdate { txqlen: Some(*packets), ..LinkUpdate::default() })
            }
            Op::Mtu { dev, bytes } => {
                self.change(dev, LinkUpdate { mtu: Some(*bytes), ..LinkUpdate::default() })
            }
            op => {
                let message = self.message(op)?;
                let answer = self
                    .talk
                    .request(message.kind, message.flags, &message.body)
                    .map_err(KernelError::Broken)?;
                answer.map_err(KernelError::Refused)
            }
        }
    }

    fn change(&mut self, dev: &str, change: LinkUpdate) -> Result<(), KernelError> {
        self.links.change(dev, &change).map_err(KernelError::Link)
    }

    fn on_link(&mut self, op: &LinkOp) -> io::Result<()> {
        self.numbers.clear();
        match op {
            LinkOp::Add { name, kind: LinkDriver::Ifb } => self.links.create(name, "ifb", IFB_QUEUE),
            LinkOp::Add { name, kind: LinkDriver::Dummy } => self.links.create(name, "dummy", QUEUE),
            LinkOp::Add { name, kind: LinkDriver::Bridge } => self.links.create(name, "bridge", QUEUE),
            LinkOp::Add { name, kind } => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("`{name}` is a {kind:?}, which is not made here: let it be there before"),
            )),
            LinkOp::Delete { name } => self.links.delete(name),
            LinkOp::Rename { name, to } => {
                let change = LinkUpdate { name: Some(to.clone()), ..LinkUpdate::default() };
                self.links.change(name, &change)
            }
            LinkOp::TxQueues { name, .. } => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("the transmit queues of `{name}` are not set here: let it be there before"),
            )),
            // Addresses belong to the machine's administrator.
            LinkOp::Address { .. } => Ok(()),
        }
    }

    /// What is installed on a device.
    ///
    /// # Errors
    /// There is no such device, or what is reported of it is not as it should be.
    pub fn qdiscs(&mut self, dev: &str) -> Result<InstalledQdiscs, Unread> {
        let number = self.number(dev)?;
        let qdiscs = self.dump(RTM_GETQDISC, number, Handle::NONE)?;
        let classes = self.classes(number, &qdiscs)?;
        let (qdiscs, mut unread) = decode::qdiscs(dev, number, &qdiscs)?;
        let (classes, others) = decode::classes(dev, number, &classes)?;
        unread.extend(others);
        Ok(InstalledQdiscs { qdiscs, classes, unread })
    }

    /// The root qdisc of a device, with its counters; `None`: none that is read.
    ///
    /// # Errors
    /// As for [`Kernel::qdiscs`].
    pub fn root(&mut self, dev: &str) -> Result<Option<QdiscDump>, Unread> {
        let number = self.number(dev)?;
        Ok(self.roots(&[(dev, number)])?.pop().flatten())
    }

    /// The root qdiscs of devices, by their numbers, with their counters, read at once; `None`: none that is
    /// read. The names are for their dumps.
    ///
    /// # Errors
    /// As for [`Kernel::qdiscs`].
    pub fn roots(&mut self, devices: &[(&str, u32)]) -> Result<Vec<Option<QdiscDump>>, Unread> {
        // The kernel lists the qdiscs of all devices whichever is asked for, so one listing is enough. It can
        // report one qdisc alone, too, but then does so to every program that listens for changes.
        let listed = self.listed(RTM_GETQDISC, &encode::all_question())?;
        let mut all = Vec::with_capacity(devices.len());
        for (dev, number) in devices {
            let root = listed.iter().find(|body| decode::is_at(body, *number, Handle::ROOT));
            let found = root.map(|body| decode::qdiscs(dev, *number, core::slice::from_ref(body)));
            all.push(found.transpose()?.and_then(|(qdiscs, _)| qdiscs.into_iter().next()));
        }
        Ok(all)
    }

    /// The messages about everything that is installed on a device, filters included.
    ///
    /// # Errors
    /// There is no such device, or what is reported of it is not as it should be.
    pub fn raw(&mut self, dev: &str) -> Result<RawDump, Unread> {
        let number = self.number(dev)?;
        let qdiscs = self.dump(RTM_GETQDISC, number, Handle::NONE)?;
        let classes = self.classes(number, &qdiscs)?;
        let mut reported = RawDump { number, qdiscs, classes, filters: Vec::new() };
        for place in reported.places(dev)? {
            // Kinds without filters refuse the listing.
            reported.filters.extend(self.dump(RTM_GETTFILTER, number, place).unwrap_or_default());
        }
        Ok(reported)
    }

    /// What is installed, decoded; beside it the kinds that cannot be decoded.
    ///
    /// # Errors
    /// As for [`Kernel::raw`].
    pub fn installed(&mut self, dev: &str) -> Result<(Installed, BTreeSet<String>), Unread> {
        let dump = self.raw(dev)?;
        self.read(dev, &dump)
    }

    /// Decodes the messages about a device, new or stored.
    ///
    /// # Errors
    /// It is not as it should be.
    pub fn read(&self, dev: &str, dump: &RawDump) -> Result<(Installed, BTreeSet<String>), Unread> {
        let (qdiscs, mut unread) = decode::qdiscs(dev, dump.number, &dump.qdiscs)?;
        let (classes, others) = decode::classes(dev, dump.number, &dump.classes)?;
        unread.extend(others);
        let names = |wanted: u32| self.links.name(wanted).ok();
        let mut filters = Vec::new();
        for bytes in &dump.filters {
            match decode::filters(dev, core::slice::from_ref(bytes), &names) {
                Ok(one) => filters.extend(one),
                Err(Unread::Kind(kind)) => drop(unread.insert(kind)),
                Err(other) => return Err(other),
            }
        }
        let has_ingress = qdiscs.iter().any(|qdisc| qdisc.kind == Kind::Ingress);
        for filter in filters
            .iter_mut()
            .filter(|filter| has_ingress && filter.parent.qdisc() == Handle::INGRESS.qdisc())
        {
            // Its filters are one list, which the kernel reports under the class that was named last.
            filter.parent = Handle::INGRESS.qdisc();
        }
        Ok((Installed { qdiscs, classes, filters }, unread))
    }

    /// The filters of a qdisc or class; those of the root qdisc for [`Handle::NONE`].
    ///
    /// # Errors
    /// As for [`Kernel::qdiscs`]; or one of them is of a kind that is not read.
    pub fn filters(&mut self, dev: &str, parent: Handle) -> Result<Vec<FilterDump>, Unread> {
        let number = self.number(dev)?;
        let reported = self.dump(RTM_GETTFILTER, number, parent)?;
        let names = |wanted: u32| self.links.name(wanted).ok();
        decode::filters(dev, &reported, &names)
    }

    /// The machine's actions of a kind.
    ///
    /// # Errors
    /// One of them is not as it should be.
    pub fn actions(&mut self, kind: &str) -> Result<Vec<ActionDump>, Unread> {
        let body = encode::actions_question(kind);
        let reported =
            self.talk.dump(RTM_GETACTION, &body).map_err(|error| Unread::Broken(error.to_string()))?;
        let reported: Vec<Vec<u8>> = reported.into_iter().map(|reported| reported.body).collect();
        let names = |wanted: u32| self.links.name(wanted).ok();
        decode::actions(&reported, &names)
    }

    /// All classes of a device. Where Linux ends its list early, what follows is requested qdisc by
    /// qdisc.
    fn classes(&mut self, number: u32, qdiscs: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Unread> {
        let mut reported = self.dump(RTM_GETTCLASS, number, Handle::NONE)?;
        for handle in decode::unlisted(number, qdiscs, &reported)? {
            reported.extend(self.dump(RTM_GETTCLASS, number, handle)?);
        }
        Ok(reported)
    }

    /// The number of a device.
    ///
    /// # Errors
    /// There is no such device.
    pub fn number(&self, dev: &str) -> Result<u32, Unread> {
        self.links.index(dev).map_err(|_| Unread::NoDevice(dev.to_owned()))
    }

    fn dump(&mut self, kind: u16, number: u32, parent: Handle) -> Result<Vec<Vec<u8>>, Unread> {
        self.listed(kind, &encode::question(number, parent))
    }

    fn listed(&mut self, kind: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, Unread> {
        let reported = self.talk.dump(kind, body).map_err(|error| Unread::Broken(error.to_string()))?;
        // What is reported is of the type that makes such a thing, two below the one that requests it.
        Ok(reported
            .into_iter()
            .filter(|reported| reported.kind + 2 == kind)
            .map(|reported| reported.body)
            .collect())
    }
}
