#![forbid(unsafe_code)]
//! Fuzz targets: every parser of bytes that someone else wrote, one row each.
//!
//! A target takes any bytes and must return. A panic, an arithmetic overflow, and memory or time without a
//! bound are bugs. `cargo test -p tidegate-fuzz` runs each over its kept corpus (`corpus/NAME/`) and over
//! mutations of it; the coverage-guided run of libFuzzer is in `fuzz/` beside the workspace
//! (docs/fuzzing.md).

mod binary;
mod mutate;
mod network;
mod text;

pub use mutate::Mutator;

/// A parser of foreign bytes.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// Where the bytes come from.
    pub bytes: &'static str,
    /// Runs the parser.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, bytes: &'static str, run: fn(&[u8])) -> FuzzTarget {
    FuzzTarget { name, bytes, run }
}

/// All of them.
pub const TARGETS: &[FuzzTarget] = &[
    target("tc_words", "arguments of `tc`, parsed and carried out", text::tc_words),
    target("ip_words", "arguments of `ip`, parsed and carried out", text::ip_words),
    target("iptables_words", "arguments of `iptables` and `ip6tables`", text::iptables_words),
    target("tc_batch", "a file for `tc -batch`", text::tc_batch),
    target("iptables_save", "what `iptables-save` writes", text::iptables_save),
    target("nft", "a file for `nft -f`", text::nft),
    target("short_policy", "a short policy (TOML)", text::short_policy),
    target("uci", "OpenWrt's /etc/config/sqm", text::uci),
    target("sqm_conf", "SQM's IF.iface.conf", text::sqm_conf),
    target("fireqos", "a configuration of FireQOS", text::fireqos),
    target("networkd", "a .network file of systemd-networkd", text::networkd),
    target("chaos_mesh", "experiments of Chaos Mesh (YAML)", text::chaos_mesh),
    target("pod_bandwidth", "Kubernetes manifests with bandwidth limits (YAML)", text::pod_bandwidth),
    target("listing", "what `tc … show` prints", text::listing),
    target("listing_json", "what `tc -j … show` prints", text::listing_json),
    target("recognise", "a file whose format is recognised by its content", text::recognise),
    target("scenario", "a scenario (TOML)", text::scenario),
    target("expectations", "a file of expectations for `tidegate test` (TOML)", text::expectations),
    target("packet_words", "a packet in words, for `explain`", text::packet_words),
    target("trace", "a recording of a link (mahimahi, tables, logs, delays)", text::trace),
    target("tool_calls", "calls of any tool with standard input, by the tool shim", text::tool_calls),
    target("limit_record", "what `autorate` remembers of a line's limits", text::limit_record),
    target("results", "a result document (JSON)", binary::results),
    target("flent", "flent's data file, unpacked", binary::flent),
    target("flent_gz", "flent's data file, packed", binary::flent_gz),
    target("pcap", "a capture of packets (pcap)", binary::pcap),
    target("pcapng", "a capture of packets (pcapng)", binary::pcap),
    target("frame", "one packet off a wire", binary::frame),
    target("pickle", "ping-exp's pickles", binary::pickle),
    target("tool_socket", "requests on the tool socket, and replies", binary::tool_socket),
    target("control_socket", "requests on the daemon's control socket", network::control_socket),
    target("probe_messages", "messages and datagrams of the probe protocol", network::probe_messages),
    target(
        "netlink_dump",
        "the kernel's dumps of qdiscs, classes, filters and actions",
        network::netlink_dump,
    ),
    target("netlink_messages", "netlink messages, nfqueue packets, control data", network::netlink_messages),
];

/// The target of this name.
#[must_use]
pub fn named(name: &str) -> Option<FuzzTarget> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
