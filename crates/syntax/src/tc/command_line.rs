//! What a command line of tc requests: what to do or to show, and how.

use crate::TcVersion;
use tidegate_packet::Handle;
use tidegate_policy::{ActionId, Op};

/// What `tc -V` prints.
pub const VERSION: &str = "tc utility, iproute2-6.1.0, libbpf 1.1.2\n";

/// A command understood.
#[derive(Clone, Debug, PartialEq)]
pub struct TcCommandLine {
    /// What to do.
    pub command: TcCommand,
    /// How to show.
    pub flags: ShowFlags,
    /// What was accepted and means nothing here, for the reader of a script.
    pub notes: Vec<String>,
    /// What tc prints to stderr before it continues.
    pub stderr: String,
}

/// What a command line of tc requests.
#[derive(Clone, Debug, PartialEq)]
pub enum TcCommand {
    /// An operation on the machine.
    Apply(Op),
    /// To show something.
    Show(ShowWhat),
    /// To show one filter.
    GetFilter(GetFilter),
    /// To show chains of filters.
    ShowChains(ShowChains),
    /// To show some of the machine's actions.
    ShowActions(ShowActions),
    /// To print changes as they come, until it is ended.
    Monitor,
    /// `-batch FILE` (`-` = standard input): [`crate::batch`] reads it.
    Batch {
        /// The file's name.
        file: String,
        /// Go on after an error.
        force: bool,
    },
    /// A text about how to write commands, in our own words; tc prints it on stderr and exits with 0.
    Help(String),
    /// `-V`: print [`VERSION`].
    Version,
}

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Qdiscs.
    Qdisc,
    /// Classes.
    Class,
    /// Filters.
    Filter,
}

impl Object {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Object::Qdisc => "qdisc",
            Object::Class => "class",
            Object::Filter => "filter",
        }
    }
}

/// Which of them.
///
/// The printers select qdiscs and classes themselves. Of filters, give those of `parent`; without one, those
/// of the device's root qdisc. `tc class show` and `tc filter show` without a device print nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowWhat {
    /// What is shown.
    pub object: Object,
    /// Of this device only.
    pub dev: Option<String>,
    /// Under this parent only. For filters [`Handle::ROOT`] for `root`, [`Handle::INGRESS`] for `ingress`,
    /// and ffff:fff3 for `egress`.
    pub parent: Option<Handle>,
    /// The qdisc of this handle only; classes: those of this qdisc.
    pub handle: Option<Handle>,
    /// The class of this id only.
    pub classid: Option<Handle>,
    /// Show the qdiscs without a handle too.
    pub invisible: bool,
    /// Filters of this preference only.
    pub pref: Option<u16>,
    /// Filters of this protocol only.
    pub protocol: Option<u16>,
    /// Filters of this chain only.
    pub chain: Option<u32>,
    /// Those of this shared block instead of a device's; 0: of none.
    pub block: u32,
}

impl ShowWhat {
    /// All of these.
    pub fn of(object: Object) -> ShowWhat {
        ShowWhat {
            object,
            dev: None,
            parent: None,
            handle: None,
            classid: None,
            invisible: false,
            pref: None,
            protocol: None,
            chain: None,
            block: 0,
        }
    }

    /// All of these, of a device.
    pub fn on(object: Object, dev: &str) -> ShowWhat {
        ShowWhat { dev: Some(dev.into()), ..ShowWhat::of(object) }
    }
}

/// How to show: tc's options before the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShowFlags {
    /// `-s`: counters.
    pub stats: bool,
    /// `-d`: details.
    pub details: bool,
    /// `-r`: raw values too.
    pub raw: bool,
    /// `-p`: laid out.
    pub pretty: bool,
    /// `-j`: JSON.
    pub json: bool,
    /// `-o`: one line each.
    pub oneline: bool,
    /// `-g`: classes as a tree.
    pub graph: bool,
    /// `-iec`: rates in units of 1024.
    pub iec: bool,
    /// `-N`: numbers for names.
    pub numeric: bool,
    /// `-br`: filters in short.
    pub brief: bool,
    /// The release of tc.
    pub tc: TcVersion,
}

impl ShowFlags {
    /// `-s -d`, as the recorded runs show their end.
    pub const FULL: ShowFlags = ShowFlags {
        stats: true,
        details: true,
        raw: false,
        pretty: false,
        json: false,
        oneline: false,
        graph: false,
        iec: false,
        numeric: false,
        brief: false,
        tc: TcVersion::V6_1,
    };
}

/// Which filter `tc filter get` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetFilter {
    /// Of this device; empty where a block is named.
    pub dev: String,
    /// Of this shared block; 0: of none.
    pub block: u32,
    /// Of this qdisc or class; [`Handle::NONE`]: of the root qdisc.
    pub parent: Handle,
    /// The filter's EtherType.
    pub protocol: u16,
    /// The filter's preference.
    pub pref: u16,
    /// The filter's chain.
    pub chain: u32,
    /// The filter's kind.
    pub kind: String,
    /// Its handle, as the kind counts.
    pub handle: u32,
}

/// Which chains are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowChains {
    /// Of this device; empty: none are listed.
    pub dev: String,
    /// Of this shared block; 0: of none.
    pub block: u32,
    /// Of this qdisc or class; [`Handle::NONE`]: of the root qdisc.
    pub parent: Handle,
    /// This one alone (`get`), which must be there.
    pub only: Option<u32>,
    /// This one alone, of a listing, which then leaves its number out.
    pub chain: Option<u32>,
}

/// Which actions are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowActions {
    /// All of a kind; nothing, where the name is unknown.
    Kind(String),
    /// These.
    Numbered(Vec<ActionId>),
}
