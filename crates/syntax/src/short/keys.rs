//! The keys of a short policy: the one table from which the reader, the help, the schema and the documents
//! are made.

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The name of a device.
    Device,
    /// `"38mbit"`.
    Rate,
    /// `"95%"`.
    Percent,
    /// `"20%"` or `"500kbit"`.
    ShareOrRate,
    /// `"10MB"`.
    Size,
    /// A whole number, from one to another.
    Number(u32, u32),
    /// true or false.
    Truth,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The name of a preset.
    Preset,
    /// The name of a kind of link.
    Link,
    /// A list of applications.
    Apps,
    /// A list of ports: `"udp 5060-5061"`.
    Ports,
    /// A list of DSCPs by name or number.
    Dscps,
    /// A list of addresses and prefixes.
    Hosts,
}

impl Takes {
    /// In words: unit and range.
    pub fn words(self) -> String {
        match self {
            Takes::Device => "the name of a device, 15 letters at most".into(),
            Takes::Rate => "a rate with its unit: kbit, mbit or gbit, from 8kbit to 100gbit".into(),
            Takes::Percent => "per cent, from 1% to 100%".into(),
            Takes::ShareOrRate => "per cent of the link (1% to 95%), or a rate: kbit, mbit, gbit".into(),
            Takes::Size => "bytes with their unit: kB, MB or GB".into(),
            Takes::Number(low, high) => format!("a whole number from {low} to {high}"),
            Takes::Truth => "true or false".into(),
            Takes::Word(words) => {
                words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
            }
            Takes::Preset => "the name of a preset (tidegate policy list)".into(),
            Takes::Link => "the name of a kind of link (tidegate policy list)".into(),
            Takes::Apps => "a list of applications (tidegate policy list)".into(),
            Takes::Ports => "a list of ports or ranges, with udp or tcp before them if only that is meant, \
            then remote or local if only one end is"
                .into(),
            Takes::Dscps => "a list of DSCPs: CS0 to CS7, AF11 to AF43, EF, VA, LE, or 0 to 63".into(),
            Takes::Hosts => "a list of addresses or prefixes, IPv4 or IPv6".into(),
        }
    }

    /// Is it a list?
    pub const fn is_list(self) -> bool {
        matches!(self, Takes::Apps | Takes::Ports | Takes::Dscps | Takes::Hosts)
    }
}

/// The section of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// At the top of the file.
    Top,
    /// In `[classes.NAME]`.
    Class,
}

/// A key of a short policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key as it is written.
    pub name: &'static str,
    /// The section that it belongs to.
    pub section: Section,
    /// What it takes.
    pub takes: Takes,
    /// The default, in words.
    pub default: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// How it is written.
    pub example: &'static str,
}

const fn top(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    example: &'static str,
    about: &'static str,
) -> Key {
    Key { name, section: Section::Top, takes, default, about, example }
}

const fn class(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    example: &'static str,
    about: &'static str,
) -> Key {
    Key { name, section: Section::Class, takes, default, about, example }
}

/// All keys.
pub const KEYS: [Key; 23] = [
    top(
        "device",
        Takes::Device,
        "must be said",
        "device = \"eth0\"",
        "The device towards the modem or the provider.",
    ),
    top(
        "lan",
        Takes::Device,
        "an ifb is made",
        "lan = \"br-lan\"",
        "The device towards the LAN: downloads are shaped where they leave by it, so that hosts and \
        connections can be distinguished. Without it they are redirected through an ifb, where NAT still \
        hides the hosts.",
    ),
    top(
        "up",
        Takes::Rate,
        "not shaped",
        "up = \"38mbit\"",
        "The link's upload rate, as the modem or a measurement reports it.",
    ),
    top("down", Takes::Rate, "not shaped", "down = \"95mbit\"", "The link's download rate."),
    top(
        "shape",
        Takes::Percent,
        "95%",
        "shape = \"90%\"",
        "How much of the link's rate is used: a little less than all, or the queue is the modem's.",
    ),
    top(
        "link",
        Takes::Link,
        "none",
        "link = \"vdsl2 pppoe\"",
        "What the link adds to each packet; it decides how many small packets fit.",
    ),
    top(
        "overhead",
        Takes::Number(0, 256),
        "by link",
        "overhead = 34",
        "Bytes that the link adds to each IP packet, where no kind fits.",
    ),
    top(
        "mpu",
        Takes::Number(0, 256),
        "by link",
        "mpu = 84",
        "Bytes that a packet takes at least on the link.",
    ),
    top(
        "fair",
        Takes::Word(&["host", "flow", "none"]),
        "flow",
        "fair = \"host\"",
        "How a class is shared: between hosts and then their connections, between connections, or not at \
        all (first in, first out).",
    ),
    top(
        "buckets",
        Takes::Number(2, 64),
        "16",
        "buckets = 32",
        "The number of hash buckets for hosts where fair is host; two hosts with the same hash share a \
        bucket.",
    ),
    top(
        "preset",
        Takes::Preset,
        "none",
        "preset = \"home\"",
        "A policy to begin with; whatever the file says overrides it, key by key.",
    ),
    class(
        "apps",
        Takes::Apps,
        "none",
        "apps = [\"voip\", \"zoom\"]",
        "What belongs to the class, by application.",
    ),
    class(
        "ports",
        Takes::Ports,
        "none",
        "ports = [\"udp 5060-5061\", \"22\"]",
        "What belongs to the class, by port, at either end, or at the one that remote (behind the provider) \
        or local (in the LAN) names.",
    ),
    class(
        "dscp",
        Takes::Dscps,
        "none",
        "dscp = [\"EF\", \"AF41\"]",
        "What belongs to the class, by the mark that the sender gave it.",
    ),
    class(
        "hosts",
        Takes::Hosts,
        "none",
        "hosts = [\"192.168.1.50\"]",
        "What belongs to the class, by the host in the LAN.",
    ),
    class(
        "after",
        Takes::Size,
        "never",
        "after = \"10MB\"",
        "Connections belong to the class once they have carried so much, both ways, unless a first class \
        has them.",
    ),
    class(
        "first",
        Takes::Truth,
        "false",
        "first = true",
        "The class goes before all that are not first; among equals the order of the file counts.",
    ),
    class(
        "last",
        Takes::Truth,
        "false",
        "last = true",
        "The class goes behind all others, also behind what belongs to none.",
    ),
    class(
        "share",
        Takes::ShareOrRate,
        "20% (first), 5% (last), else its part of what is left",
        "share = \"20%\"",
        "The guaranteed rate of the class while all are busy.",
    ),
    class(
        "ceil",
        Takes::ShareOrRate,
        "100%",
        "ceil = \"50%\"",
        "What the class may have while the others are idle.",
    ),
    class(
        "queue",
        Takes::Word(&["short", "fair", "plain"]),
        "short (first), else fair",
        "queue = \"short\"",
        "How its packets wait: a short queue loses rather than lets wait, a fair one keeps each \
        connection's queue short, a plain one is first come, first served.",
    ),
    class(
        "fair",
        Takes::Word(&["host", "flow", "none"]),
        "as at the top; flow (first)",
        "fair = \"flow\"",
        "Between whom this class is shared.",
    ),
    class("off", Takes::Truth, "false", "off = true", "Leaves out a class of the preset."),
];

/// The keys of a section.
pub fn keys(section: Section) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section == section)
}

/// The key of that name in a section.
pub fn key(section: Section, name: &str) -> Option<&'static Key> {
    keys(section).find(|key| key.name == name)
}
