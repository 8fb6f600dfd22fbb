//! A short policy that was read.

use super::apps::App;
use crate::nft::Span;
use std::net::IpAddr;

/// A value and its place; a value of a preset has the place where the preset is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value itself.
    pub value: T,
    /// Its place in the file.
    pub span: Span,
}

/// By what a class is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fair {
    /// Hosts, then their connections.
    Host,
    /// Connections.
    #[default]
    Flow,
    /// Nothing: first come, first served.
    None,
}

/// The queues that a policy comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// Classes of HTB, with a queue in each.
    Classes,
    /// One cake in each direction.
    Cake,
    /// One `fq_codel` in each direction, in a class of HTB that shapes.
    FqCodel,
}

/// Why a policy comes to these queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeReason {
    /// The file says so: `kind = …`.
    Written,
    /// The file has classes or keys that only classes have.
    HasClasses,
    /// Nothing asks for classes.
    NothingAsked,
    /// Nothing asks for classes, and the kernel that it is for has no cake.
    NoCake,
}

/// How a class's packets wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// They are dropped rather than wait.
    Short,
    /// Each connection's queue is kept short.
    #[default]
    Fair,
    /// First come, first served.
    Plain,
}

/// Before or behind the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Before.
    First,
    /// As the file has them.
    #[default]
    Middle,
    /// Behind all, also behind what belongs to no class.
    Last,
}

/// A part of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Per cent.
    Percent(u32),
    /// Bits a second.
    Rate(u64),
}

/// The end of a connection that has a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortEnd {
    /// Either.
    #[default]
    Either,
    /// The one behind the provider: destination of uploads, source of downloads.
    Remote,
    /// The one in the LAN: source of uploads, destination of downloads.
    Local,
}

impl PortEnd {
    /// All.
    pub const ALL: [PortEnd; 3] = [PortEnd::Either, PortEnd::Remote, PortEnd::Local];

    /// The word for it before a port; none for either.
    pub const fn word(self) -> &'static str {
        match self {
            PortEnd::Either => "",
            PortEnd::Remote => "remote",
            PortEnd::Local => "local",
        }
    }
}

/// A range of ports of a protocol; `None`: of TCP and UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// IP protocol.
    pub protocol: Option<u8>,
    /// At which end.
    pub end: PortEnd,
    /// From one to another.
    pub range: (u16, u16),
}

/// Hosts: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Address.
    pub address: IpAddr,
    /// Bits that count.
    pub bits: u8,
}

/// What the link adds to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkOverhead {
    /// Bytes beside the IP packet.
    pub overhead: u32,
    /// Bytes at least.
    pub mpu: u32,
    /// In ATM cells.
    pub atm: bool,
    /// One byte of 65 is the line's own.
    pub ptm: bool,
}

/// A class of a short policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The class's name, and where it is written.
    pub name: Spanned<String>,
    /// Where among the others.
    pub rank: Rank,
    /// By application.
    pub apps: Vec<Spanned<&'static App>>,
    /// By port.
    pub ports: Vec<Spanned<Ports>>,
    /// By DSCP.
    pub dscp: Vec<Spanned<u8>>,
    /// By host.
    pub hosts: Vec<Spanned<Network>>,
    /// Connections that have carried so many bytes.
    pub after: Option<Spanned<u64>>,
    /// Its guaranteed share.
    pub share: Option<Spanned<Share>>,
    /// What it may have.
    pub ceil: Option<Spanned<Share>>,
    /// How its packets wait.
    pub queue: Option<Spanned<Queue>>,
    /// By what the class is shared.
    pub fair: Option<Spanned<Fair>>,
}

/// A short policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Short {
    /// Towards the modem.
    pub device: Spanned<String>,
    /// Towards the LAN.
    pub lan: Option<Spanned<String>>,
    /// Bits a second away.
    pub up: Option<Spanned<u64>>,
    /// The download rate in bits per second.
    pub down: Option<Spanned<u64>>,
    /// Per cent of the upload rate that are used.
    pub shape: u32,
    /// Per cent of the download rate that are used, where the file says it.
    pub shape_down: Option<u32>,
    /// What the link adds.
    pub link: LinkOverhead,
    /// The queues. A cake and an `fq_codel` have no classes of the policy.
    pub kind: TreeKind,
    /// Why these.
    pub reason: TreeReason,
    /// By what the link is shared.
    pub fair: Fair,
    /// How many hosts are distinguished.
    pub buckets: u32,
    /// The classes, the best first.
    pub classes: Vec<Class>,
}

impl TreeKind {
    /// All, as a file names them.
    pub const WORDS: [(&str, TreeKind); 3] =
        [("classes", TreeKind::Classes), ("cake", TreeKind::Cake), ("fq_codel", TreeKind::FqCodel)];

    /// One of its queues, with an article.
    pub const fn one(self) -> &'static str {
        match self {
            TreeKind::Classes => "a class",
            TreeKind::Cake => "a cake",
            TreeKind::FqCodel => "an fq_codel",
        }
    }
}

impl Short {
    /// Per cent of the download rate that are used.
    ///
    /// Downloads are shaped behind the bottleneck, where a queue that came into being at the provider is
    /// drained only by what is less than the line's rate. A cake that counts what it drops as arrived
    /// (`ingress`) needs less slack than other queues (docs/policy.md has the measurements).
    pub const fn down_share(&self) -> u32 {
        match (self.shape_down, self.kind) {
            (Some(share), _) => share,
            (None, TreeKind::Cake) => 90,
            (None, TreeKind::Classes | TreeKind::FqCodel) => 85,
        }
    }

    /// The same policy for a kernel that has no cake, where the file leaves the choice of the queues open.
    #[must_use]
    pub fn without_cake(self) -> Short {
        match self.reason {
            TreeReason::NothingAsked => Short { kind: TreeKind::FqCodel, reason: TreeReason::NoCake, ..self },
            _ => self,
        }
    }
}
