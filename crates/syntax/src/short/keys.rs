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
    /// `"20%"` or `"500kbit"`, up to so many per cent.
    ShareOrRate(u8),
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
            Takes::ShareOrRate(most) => {
                format!("per cent of the link (1% to {most}%), or a rate: kbit, mbit, gbit")
            }
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
pub const KEYS: [Key; 25] = [
    top(
        "device",
        Takes::Device,
        "required",
        "device = \"eth0\"",
        "The device that leads to the modem or the provider.",
    ),
    top(
        "lan",
        Takes::Device,
        "an ifb is created",
        "lan = \"br-lan\"",
        "The device that leads to the LAN. Downloads are shaped on it, where hosts and connections \
        are visible. Without it they are shaped on an ifb, where NAT hides the hosts.",
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
        "95% of up; of down 90% (cake) or 85%",
        "shape = \"85%\"",
        "The share of the link's rates to shape to; below 100 %, so that the queue does not build up \
        in the modem or at the provider.",
    ),
    top(
        "shape_down",
        Takes::Percent,
        "shape, where it is given; else 90% (cake) or 85%",
        "shape_down = \"85%\"",
        "The share of the download rate to shape to, if it is not the one of the upload rate. Downloads are \
        shaped behind the bottleneck, where a queue at the provider is drained only by what is less than the \
        link's rate.",
    ),
    top(
        "link",
        Takes::Link,
        "none",
        "link = \"vdsl2 pppoe\"",
        "The kind of link, which sets the overhead of each packet.",
    ),
    top(
        "overhead",
        Takes::Number(0, 256),
        "by link",
        "overhead = 34",
        "Bytes that the link adds to each IP packet, if no kind of link fits. HTB counts Ethernet's 14 bytes at \
        least; 0: frames as the device counts them.",
    ),
    top(
        "mpu",
        Takes::Number(0, 256),
        "by link",
        "mpu = 84",
        "Minimum size of a packet on the link, in bytes.",
    ),
    top(
        "kind",
        Takes::Word(&["classes", "cake", "fq_codel"]),
        "classes where the file has any, else cake; where the kernel has no cake, fq_codel",
        "kind = \"classes\"",
        "The queues: a tree of classes (HTB and fq_codel); or one cake in each direction, in which DSCPs choose \
        one of four tins (diffserv4) and fair separates hosts behind NAT too; or one fq_codel in each direction, \
        in a class of HTB. The latter two have no classes of the file's or the preset's, and shape downloads on \
        an ifb.",
    ),
    top(
        "fair",
        Takes::Word(&["host", "flow", "none"]),
        "flow",
        "fair = \"host\"",
        "How a class is shared: between hosts and then their connections, between connections, or \
        not at all (FIFO).",
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
        "A policy to start from; keys in the file override it.",
    ),
    class(
        "apps",
        Takes::Apps,
        "none",
        "apps = [\"voip\", \"zoom\"]",
        "Traffic of the class, by application.",
    ),
    class(
        "ports",
        Takes::Ports,
        "none",
        "ports = [\"udp 5060-5061\", \"22\"]",
        "Traffic of the class, by port: at either end, or only remote (on the Internet) or local (in \
        the LAN).",
    ),
    class(
        "dscp",
        Takes::Dscps,
        "none",
        "dscp = [\"EF\", \"AF41\"]",
        "Traffic of the class, by the DSCP that the sender set.",
    ),
    class(
        "hosts",
        Takes::Hosts,
        "none",
        "hosts = [\"192.168.1.50\"]",
        "Traffic of the class, by host in the LAN.",
    ),
    class(
        "after",
        Takes::Size,
        "never",
        "after = \"10MB\"",
        "Connections move to the class after this amount of data, both directions together, unless \
        they are in a first class.",
    ),
    class(
        "first",
        Takes::Truth,
        "false",
        "first = true",
        "The class is served before those that are not first; among equals the order in the file \
        counts.",
    ),
    class(
        "last",
        Takes::Truth,
        "false",
        "last = true",
        "The class is served after all others, and after unclassified traffic.",
    ),
    class(
        "share",
        Takes::ShareOrRate(95),
        "20% (first), 5% (last), else an equal part of the rest",
        "share = \"20%\"",
        "The guaranteed rate of the class when all classes are busy.",
    ),
    class(
        "ceil",
        Takes::ShareOrRate(100),
        "100%",
        "ceil = \"50%\"",
        "The maximum rate of the class when the others are idle.",
    ),
    class(
        "queue",
        Takes::Word(&["short", "fair", "plain"]),
        "short (first), else fair",
        "queue = \"short\"",
        "The queue of the class: short drops rather than delays, fair keeps each connection's queue \
        short, plain is a FIFO.",
    ),
    class(
        "fair",
        Takes::Word(&["host", "flow", "none"]),
        "as at the top; flow (first)",
        "fair = \"flow\"",
        "How this class is shared.",
    ),
    class("off", Takes::Truth, "false", "off = true", "Omits a class of the preset."),
];

/// The keys of a section.
pub fn keys(section: Section) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section == section)
}

/// The key of that name in a section.
pub fn key(section: Section, name: &str) -> Option<&'static Key> {
    keys(section).find(|key| key.name == name)
}
