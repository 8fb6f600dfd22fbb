//! cake's words.

use super::{KindSpec, OptionSpec, Takes, Voice};

const fn flag(key: &'static str, default: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec::exact(key, Takes::Flag, default, doc)
}

/// The order is that of the table in tc's own help: rate, time, tins, flows, then what few need.
const CAKE: &[OptionSpec] = &[
    OptionSpec::exact("bandwidth", Takes::Rate, "unlimited", "shape to this rate"),
    flag("unlimited", "this", "do not shape: take turns as the device asks"),
    flag("autorate-ingress", "off", "follow the rate at which packets arrive"),
    OptionSpec::exact(
        "rtt",
        Takes::Time,
        "100ms",
        "round-trip time of senders; a twentieth of it is the delay to hold",
    ),
    flag("datacentre", "", "rtt 100us, for traffic within a data centre"),
    flag("lan", "", "rtt 1ms, for networks within a house"),
    flag("metro", "", "rtt 10ms, for traffic within a city"),
    flag("regional", "", "rtt 30ms, for traffic within a country"),
    flag("internet", "this", "rtt 100ms, for traffic of all kinds"),
    flag("oceanic", "", "rtt 300ms, where most senders are far away"),
    flag("satellite", "", "rtt 1s, for geostationary satellites"),
    flag("interplanetary", "", "rtt 1000s, which takes the queue control out of action"),
    flag("besteffort", "", "one tin for all packets"),
    flag("precedence", "", "eight tins by the old IP precedence"),
    flag("diffserv8", "", "eight tins by DSCP"),
    flag("diffserv4", "", "four tins by DSCP: bulk, best effort, video, voice").or(&["diffserv"]),
    flag("diffserv3", "this", "three tins by DSCP: bulk, best effort, voice"),
    flag("flowblind", "", "all packets of a tin are one flow"),
    flag("srchost", "", "senders share a tin"),
    flag("dsthost", "", "receivers share a tin"),
    flag("hosts", "", "pairs of sender and receiver share a tin"),
    flag("flows", "", "conversations share a tin"),
    flag("dual-srchost", "", "senders share a tin, and their conversations what a sender gets"),
    flag("dual-dsthost", "", "receivers share a tin, and their conversations what a receiver gets"),
    flag("triple-isolate", "this", "conversations share a tin, and none gains by an end that has many of them"),
    flag("nat", "", "tell hosts and flows apart by their addresses before translation"),
    flag("nonat", "this", "tell them apart as the packets have them"),
    flag("wash", "", "clear the DSCP once it is read"),
    flag("nowash", "this", "leave the DSCP as it is"),
    flag("split-gso", "this", "cut super-packets into what goes over the wire"),
    flag("no-split-gso", "", "leave super-packets whole"),
    flag("ack-filter", "", "leave out acknowledgements that two later ones make needless"),
    flag("ack-filter-aggressive", "", "leave out acknowledgements that one later one makes needless"),
    flag("no-ack-filter", "this", "leave none out"),
    OptionSpec::exact("memlimit", Takes::Size, "four round trips at the rate", "memory that packets may use"),
    OptionSpec::exact("fwmark", Takes::Number, "none", "bits of the firewall mark that name a tin, from 1"),
    flag("raw", "this", "count frames as the device has them"),
    OptionSpec::exact("overhead", Takes::Signed, "", "bytes that the link adds to an IP packet, -64 to 256"),
    OptionSpec::exact("mpu", Takes::Decimal, "0", "least bytes that a packet costs, 0 to 256"),
    flag("noatm", "this", "the link carries whole frames"),
    flag("atm", "", "the link cuts packets into cells of 48 bytes that cost 53"),
    flag("ptm", "", "one byte in 65 is the link's"),
    flag("conservative", "", "overhead 48 atm: as much as any link adds"),
    flag("ipoa-vcmux", "", "overhead 8 more, atm"),
    flag("ipoa-llcsnap", "", "overhead 16 more, atm"),
    flag("bridged-vcmux", "", "overhead 24 more, atm"),
    flag("bridged-llcsnap", "", "overhead 32 more, atm"),
    flag("pppoa-vcmux", "", "overhead 10 more, atm"),
    flag("pppoa-llc", "", "overhead 14 more, atm"),
    flag("pppoe-vcmux", "", "overhead 32 more, atm"),
    flag("pppoe-llcsnap", "", "overhead 40 more, atm"),
    flag("bridged-ptm", "", "overhead 22 more, ptm"),
    flag("pppoe-ptm", "", "overhead 30 more, ptm"),
    flag("via-ethernet", "", "read, without effect: once said that the device has a frame header"),
    flag("ethernet", "", "overhead 38 more, mpu 84: what Ethernet puts around a frame"),
    flag("ether-vlan", "", "overhead 4 more: a tag; may be said twice"),
    flag("docsis", "", "overhead 18 more, mpu 64, noatm: as cable modems count"),
    flag("ingress", "", "charge for dropped packets too: they came over the link"),
    flag("egress", "this", "charge for what is sent"),
];

/// cake.
pub(super) const SPEC: KindSpec = KindSpec {
    name: "cake",
    title: "shaper, tins by DSCP, fair between hosts and flows, with controlled delay: a whole home router's needs (LANMAN 2018)",
    qdisc: Some(CAKE),
    class: None,
    voice: Voice::Plain,
};
