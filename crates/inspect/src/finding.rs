//! What was found wrong, with what shows it and what fixes it.

use crate::reading::SourceLocation;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing; nothing goes wrong because of it alone.
    Note,
    /// Something does not do what its words mean, for some packets or at some rates.
    Warning,
    /// Something cannot work as it is.
    Error,
}

impl Level {
    /// The word for it in text and JSON: `error`, `warning` or `note`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

macro_rules! rules {
    ($($variant:ident $id:literal $name:literal $doc:literal,)*) => {
        /// A rule of the checker.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $doc] $variant,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant,)*];

            /// Its number: `R1`.
            pub const fn id(self) -> &'static str {
                match self { $(Rule::$variant => $id,)* }
            }

            /// Its name, for suppression comments and SARIF.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)* }
            }

            /// What it looks for, in a sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Rule::$variant => $doc,)* }
            }
        }
    };
}

rules! {
    Unreachable "R1" "unreachable-filter" "A filter, rule or action that no packet can reach, because \
    earlier ones match all its packets.",
    Intent "R2" "dscp-today" "A rule by TOS or DSCP that misclassifies the markings of today's senders.",
    Rates "R3" "rates" "A rate above its ceil, children with more guaranteed than their parent has, a \
    ceil above the parent's; HFSC's real time above its upper limit.",
    Quantum "R4" "quantum" "A quantum below one frame, or so large that one class sends for a long time in \
    a row.",
    Priority "R5" "priority" "A priority beyond the range, silently made the lowest.",
    Nowhere "R6" "leads-nowhere" "A flowid, parent, redirect or policer number that does not exist, or is \
    in another qdisc.",
    Protocol "R7" "wrong-header" "A match that reads another protocol's header than the filter's.",
    Marks "R8" "marks" "A mark that is read and never set, set and never read while a class gets no \
    packets, or written over on all or all but a few.",
    Connmark "R9" "connmark" "A connection's mark that is set but not restored, or restored over a mark; \
        connections' states that are read where nothing looks them up.",
    LeafFilter "R10" "filter-on-leaf" "Filters on a class without children: they are never consulted.",
    Default "R11" "default-class" "No default class, or one that does not exist: such packets bypass the \
    shaping.",
    Burst "R12" "burst" "A burst that cannot hold one frame, a policer's that cannot hold ten, or one \
    that holds a second of its rate.",
    Limit "R13" "limit" "A queue too short for the link's round trip, or so long that it is the delay it \
    should prevent.",
    OtherProtocols "R14" "other-protocols" "IPv6, ARP and other protocols that no filter matches.",
    Flush "R15" "foreign-rules" "Tables flushed that others may use.",
    Overhead "R16" "overhead" "Link overhead that is counted twice.",
    Units "R17" "units" "Units that mean something else: kbps is kilobytes, a bare rate is bits, a bare \
    time microseconds.",
    Collisions "R18" "hash-collisions" "Hosts or flows that share a bucket by chance.",
    NoAqm "R19" "no-aqm" "No leaf keeps its queue short.",
    Redirect "R20" "redirect" "A redirect to a device that is down or has no policy; an ifb with a policy to which nothing is \
    redirected.",
    Checksums "R21" "checksums" "Bytes that pedit rewrites without recomputing their checksums.",
    Capped "R22" "capped-default" "A default class that may send less than a tenth of what the device's \
    fastest class may.",
    Idle "R23" "idle-class" "A class that no packet reaches.",
    Absent "R24" "absent-device" "A device that exists only when created, and that nothing creates.",
    Void "R25" "idle-words" "Words without effect beside the others of their command: framing without a \
    rate, a mode that a later word replaces.",
    Replaced "R26" "replaced-classes" "Classes, or a root qdisc, that a later `qdisc replace` or `qdisc add` removes.",
    Rewritten "R27" "rewritten" "A filter or rule for addresses or a DSCP that NAT or another rule has \
    rewritten; cake that should share between hosts and sees one.",
    Nqb "R28" "nqb-priority" "Packets marked NQB (DSCP 45) that are served before unmarked ones.",
    L4s "R29" "l4s-classic-ecn" "A single queue that marks packets of L4S senders (ECT(1)) as those of classic ECN.",
    Release "R30" "release" "A qdisc that the release of Linux does not have, or what changes for it between two \
        (`--linux 6.1..7.2`).",
    Refused "C1" "refused" "A command that the tool or the kernel refuses.",
    Unlimited "C2" "no-rate" "Classes and priorities without a rate: the queue builds up elsewhere, and \
    they have no effect.",
    Shapes "C3" "packet-shapes" "A rule by length or flags that misses packets it is meant for, or matches \
    others.",
    Undecided "C4" "undecided" "So many rules, or sets of packets so intricate, that their classification \
    was not decided.",
}

/// What shows that a finding is true; the engine has confirmed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Witness {
    /// A packet, in the words of `tidegate explain`, and where it ended.
    Packet {
        /// The packet in words.
        packet: String,
        /// Where it went, in a few words: `1:20`, `the direct queue`.
        went: String,
    },
    /// A number, with its unit and what it is.
    Number(String),
}

/// A replacement of the text of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; with empty columns the line as a whole.
    pub place: SourceLocation,
    /// By what; a whole line may become several, or none.
    pub text: String,
}

/// A fix for a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What is done, in a few words.
    pub what: String,
    /// The replacements; without any, people must do it by hand.
    pub edits: Vec<Edit>,
}

/// Something found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// By which rule.
    pub rule: Rule,
    /// How bad.
    pub level: Level,
    /// The place of the finding.
    pub place: Option<SourceLocation>,
    /// What is wrong, in a sentence.
    pub what: String,
    /// What happens because of it, with the number.
    pub because: String,
    /// What shows it. Errors and warnings have one.
    pub witness: Option<Witness>,
    /// What fixes it.
    pub fix: Option<Fix>,
}
