//! flower: its words, and how it is listed.

use super::row::{Given, ListedFilter, NO_CARD, Read, Row, class, no_card, number};
use crate::json::Json;
use crate::number::{u8_in, u16_in, u32_in};
use crate::tc::action;
use crate::tc::build::later;
use crate::tc::prefix::{parse_prefix4, parse_prefix6, prefix_mask};
use crate::tc::protocols::{parse_protocol, protocol};
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use std::net::{Ipv4Addr, Ipv6Addr};
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::spec::{FLOWER, REFUSED_FLOWER_KEYS, why_not};
use tidegate_policy::{FilterParams, FlowerField, FlowerKey, FlowerParams, Indev};

/// SCTP's protocol number.
const SCTP: u8 = 132;

/// Names of protocols behind the network header, as tc knows them.
const PROTOCOLS: [(&str, u8); 5] = [
    ("tcp", proto::TCP),
    ("udp", proto::UDP),
    ("sctp", SCTP),
    ("icmp", proto::ICMP),
    ("icmpv6", proto::ICMPV6),
];

struct Reader {
    params: FlowerParams,
    /// The network protocol of what is compared.
    network: u16,
    protocol: Option<u8>,
    tagged: bool,
}

/// `flower`.
pub(super) const ROW: Row = Row { name: "flower", parse, show };

fn parse(handle: Given<'_>, protocol: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let number = number(handle)?;
    let tagged = is_tag(protocol);
    let mut reader = Reader { params: FlowerParams::default(), network: protocol, protocol: None, tagged };
    let (mut actions, mut only_card) = (Vec::new(), None);
    while let Some(word) = words.take() {
        let word = key(word);
        match word {
            "classid" | "flowid" => reader.params.classid = Some(class(words)?),
            "action" => actions = action::parse(words, env)?,
            "verbose" => {}
            "indev" => reader.params.indev = Some(Indev::named(words.need()?)),
            "skip_hw" => reader.params.skip_hw = true,
            "skip_sw" => only_card = Some(words.last()),
            "help" => return Err(Refusal { stderr: FLOWER.help(), code: 1, ..Refusal::default() }),
            _ => reader.field(word, words)?,
        }
    }
    if let Some(place) = only_card {
        return Err(match reader.params.skip_hw {
            true => Refusal::new(2, "RTNETLINK answers: Invalid argument")
                .then("We have an error talking to the kernel")
                .at(place)
                .remedy(NO_CARD),
            false => no_card(place),
        });
    }
    if let Some(network) = reader.network_behind_tags(protocol) {
        reader.all(FlowerField::EthType, u128::from(network));
    }
    reader.leave_out();
    Ok(Read { handle: number, params: Some(FilterParams::Flower(reader.params)), actions })
}

/// Does a protocol begin with a VLAN tag?
fn is_tag(protocol: u16) -> bool {
    matches!(protocol, ethertype::VLAN | ethertype::QINQ)
}

/// The key that a word begins, or the word itself; in the order in which tc looks.
fn key(word: &str) -> &str {
    const KEYS: [&str; 45] = [
        "classid",
        "flowid",
        "hw_tc",
        "skip_hw",
        "skip_sw",
        "verbose",
        "ip_flags",
        "indev",
        "vlan_id",
        "vlan_prio",
        "vlan_ethtype",
        "cvlan_id",
        "cvlan_prio",
        "cvlan_ethtype",
        "mpls",
        "mpls_label",
        "mpls_tc",
        "mpls_bos",
        "mpls_ttl",
        "dst_mac",
        "src_mac",
        "ip_proto",
        "ip_tos",
        "ip_ttl",
        "dst_ip",
        "src_ip",
        "dst_port",
        "src_port",
        "tcp_flags",
        "type",
        "code",
        "arp_tip",
        "arp_sip",
        "arp_op",
        "arp_tha",
        "arp_sha",
        "enc_dst_ip",
        "enc_src_ip",
        "enc_key_id",
        "enc_dst_port",
        "ct_state",
        "ct_zone",
        "ct_mark",
        "ct_label",
        "action",
    ];
    match KEYS.contains(&word) {
        true => word,
        false => KEYS.into_iter().find(|key| begins(word, key)).unwrap_or(word),
    }
}

impl Reader {
    fn all(&mut self, field: FlowerField, value: u128) {
        self.masked(field, value, field.all());
    }

    fn masked(&mut self, field: FlowerField, value: u128, mask: u128) {
        self.params.set(FlowerKey { field, value: value & mask, mask, range: false });
    }

    /// Leaves out what the kernel does not read, whatever the order of the words: the DS field and the time
    /// to live without IP, TCP's flags without TCP, an address without bits beside one with some.
    fn leave_out(&mut self) {
        let value = |field| self.params.key(field).map(|key| key.value);
        let is_ip = [ethertype::IPV4, ethertype::IPV6]
            .into_iter()
            .any(|network| value(FlowerField::EthType) == Some(u128::from(network)));
        let is_tcp = value(FlowerField::IpProto) == Some(u128::from(proto::TCP));
        let is_address = |field| matches!(field, FlowerField::SrcIp | FlowerField::DstIp);
        let compares_address = self.params.keys.iter().any(|key| is_address(key.field) && !key.never_holds());
        self.params.keys.retain(|key| match key.field {
            FlowerField::IpTos | FlowerField::IpTtl => is_ip,
            FlowerField::TcpFlags => is_tcp,
            _ => !(compares_address && key.never_holds()),
        });
    }

    fn field(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        use FlowerField as F;
        match word {
            "ip_proto" => self.ip_proto(words),
            "src_ip" | "dst_ip" => self.address(word, words),
            "src_port" | "dst_port" => self.port(word, words),
            "ip_tos" => self.byte(F::IpTos, word, words),
            "ip_ttl" => self.byte(F::IpTtl, word, words),
            "tcp_flags" => self.tcp_flags(words),
            "type" | "code" => self.icmp(word, words),
            "src_mac" | "dst_mac" | "arp_sha" | "arp_tha" => self.mac(word, words),
            "arp_sip" | "arp_tip" => self.arp_address(word, words),
            "arp_op" => self.arp_op(words),
            "ip_flags" => self.ip_flags(words),
            "ct_state" => self.ct_state(words),
            "ct_mark" => self.ct_mark(words),
            "num_of_vlans" => {
                let text = words.need()?;
                let count = u8_in(text, 10).ok_or_else(|| illegal(word, text, words.last()))?;
                self.tagged |= count > 0;
                self.all(F::NumVlans, u128::from(count));
                Ok(())
            }
            "vlan_id" | "vlan_prio" | "vlan_ethtype" | "cvlan_id" | "cvlan_prio" | "cvlan_ethtype" => {
                self.vlan(word, words)
            }
            _ => Err(match why_not(REFUSED_FLOWER_KEYS, word) {
                Some(why) => later("flower key", word, words.last()).remedy(format!("Not built: {why}.")),
                None => Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&FLOWER.help())
                    .at(words.last())
                    .remedy(
                        "flower takes fields of the headers: ip_proto, src_ip, dst_ip, src_port, dst_port, \
                    ip_tos, ip_ttl, tcp_flags …",
                    ),
            }),
        }
    }

    fn ip_proto(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        let (fits, remedy) = match named {
            Some(proto::ICMP) => {
                (self.network == ethertype::IPV4, "icmp is of IPv4: say protocol ip, or icmpv6.")
            }
            Some(proto::ICMPV6) => {
                (self.network == ethertype::IPV6, "icmpv6 is of IPv6: say protocol ipv6, or icmp.")
            }
            _ => (
                matches!(self.network, ethertype::IPV4 | ethertype::IPV6),
                "Only IP has this field: say protocol ip or ipv6.",
            ),
        };
        if !fits {
            return Err(Refusal::new(1, "Illegal \"eth_type\" for ip proto".to_owned())
                .then("Illegal \"ip_proto\"")
                .at(words.last())
                .remedy(remedy));
        }
        let number = named.or_else(|| u8_in(text, 16)).ok_or_else(|| {
            illegal("ip_proto", text, words.last())
                .remedy("ip_proto takes tcp, udp, sctp, icmp, icmpv6 or a hexadecimal number.")
        })?;
        self.protocol = Some(number);
        self.all(FlowerField::IpProto, u128::from(number));
        Ok(())
    }

    fn address(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let field = if name == "src_ip" { FlowerField::SrcIp } else { FlowerField::DstIp };
        let six = self.network == ethertype::IPV6;
        if !six && self.network != ethertype::IPV4 {
            return Err(illegal(name, text, words.last()).remedy(if self.tagged {
                "Say vlan_ethtype ip before an IPv4 address, and vlan_ethtype ipv6 before one of IPv6."
            } else {
                "The filter's protocol must be ip for an IPv4 address, and ipv6 for one of IPv6."
            }));
        }
        if matches!(text, "any" | "all") {
            // tc sends an address of no bytes.
            return Err(Refusal::new(2, "RTNETLINK answers: Numerical result out of range".to_owned())
                .then("We have an error talking to the kernel\n")
                .at(words.last())
                .remedy("Leave the key out: a filter without it takes any address."));
        }
        let read = match (text, six) {
            ("default", _) => Some((0, 0)),
            (_, true) => parse_prefix6(text).map(|(raw, length)| (u128::from_be_bytes(raw), mask6(length))),
            (_, false) => parse_prefix4(text).map(|(address, mask)| (u128::from(address), u128::from(mask))),
        };
        let (address, mask) = read.ok_or_else(|| {
            Refusal::new(
                1,
                format!(
                    "Error: inet{} prefix is expected rather than \"{text}\".",
                    if six { "6" } else { "" }
                ),
            )
            .at(words.last())
            .remedy("Write an address of the filter's protocol, with a prefix length if need be: 10.0.0.0/8.")
        })?;
        // The address is shown as it was written.
        self.params.set(FlowerKey { field, value: address, mask, range: false });
        Ok(())
    }

    fn port(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let field = if name == "src_port" { FlowerField::SrcPort } else { FlowerField::DstPort };
        let fail = || illegal(name, text, words.last());
        if !matches!(self.protocol, Some(proto::TCP | proto::UDP | SCTP)) {
            return Err(fail().remedy("Ports are of tcp, udp or sctp: say ip_proto before."));
        }
        let (value, mask, range) = if let Some((low, high)) = text.split_once('-') {
            let (low, high) = u16_in(low, 10).zip(u16_in(high, 10)).ok_or_else(fail)?;
            if high <= low {
                let sentence = "max value should be greater than min value";
                return Err(Refusal::new(1, sentence).then(&format!("Illegal \"{name}\"")).at(words.last()));
            }
            (low, high, true)
        } else {
            let (value, mask) =
                text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
            let mask = mask.map_or(Some(u16::MAX), |mask| u16_in(mask, 16));
            (u16_in(value, 0).ok_or_else(fail)?, mask.ok_or_else(fail)?, false)
        };
        self.params.set(FlowerKey { field, value: value.into(), mask: mask.into(), range });
        Ok(())
    }

    fn byte(&mut self, field: FlowerField, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let fail = || illegal(name, text, words.last());
        let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        // What is no decimal number is taken for a hexadecimal one; a mask is always hexadecimal.
        let value = u8_in(value, 10).or_else(|| u8_in(value, 16)).ok_or_else(fail)?;
        let mask = mask.map_or(Some(0xff), |mask| u8_in(mask, 16)).ok_or_else(fail)?;
        self.params.set(FlowerKey { field, value: value.into(), mask: mask.into(), range: false });
        Ok(())
    }

    fn tcp_flags(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let fail = || illegal("tcp_flags", text, words.last());
        let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        let value = u16_in(value, 16).filter(|flags| *flags <= 0xfff).ok_or_else(fail)?;
        let mask = mask
            .map_or(Some(0xfff), |mask| u16_in(mask, 16))
            .filter(|mask| *mask <= 0xfff)
            .ok_or_else(fail)?;
        self.params.set(FlowerKey {
            field: FlowerField::TcpFlags,
            value: value.into(),
            mask: mask.into(),
            range: false,
        });
        Ok(())
    }

    fn icmp(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let field = if name == "type" { FlowerField::IcmpType } else { FlowerField::IcmpCode };
        let written = format!("icmp {name}");
        let fail = || illegal(&written, text, words.last());
        let right = match self.protocol {
            Some(proto::ICMP) => self.network == ethertype::IPV4,
            Some(proto::ICMPV6) => self.network == ethertype::IPV6,
            _ => false,
        };
        if !right {
            return Err(fail().remedy("Say ip_proto icmp (or icmpv6) before."));
        }
        let value = u8_in(text, 10).ok_or_else(fail)?;
        self.all(field, value.into());
        Ok(())
    }

    fn mac(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let field = match name {
            "src_mac" => FlowerField::SrcMac,
            "dst_mac" => FlowerField::DstMac,
            "arp_sha" => FlowerField::ArpSha,
            _ => FlowerField::ArpTha,
        };
        let fail = || illegal(name, text, words.last());
        if field >= FlowerField::ArpSip && self.network != ethertype::ARP {
            return Err(fail().remedy("Say protocol arp."));
        }
        let wrong = |part: &str| {
            Refusal { stderr: format!("\"{part}\" is invalid lladdr.\n"), code: 1, ..Refusal::default() }
                .then(&fail().stderr)
                .at(words.last())
                .remedy("An address is six bytes with colons, such as 02:00:00:00:00:01.")
        };
        let (address, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        let bytes = link_bytes(address).map_err(wrong)?;
        let Ok(value) = <[u8; 6]>::try_from(bytes.as_slice()) else {
            let what =
                format!("tidegate: {name} {address} is not supported: it has {} of 6 bytes", bytes.len());
            return Err(Refusal::new(1, what).at(words.last()).remedy(
                "tc fills the others with what its memory holds: write all six, and a mask behind `/`.",
            ));
        };
        let mask = match mask.map(|mask| (mask, u32_in(mask, 10))) {
            None => field.all(),
            Some((_, Some(bits @ 1..=48))) => field.all() & !(field.all() >> bits),
            Some((_, Some(bits))) => {
                let what = format!("tidegate: a mask of {bits} bits is not supported: {name} {text}");
                return Err(Refusal::new(1, what).at(words.last()).remedy(format!(
                    "tc makes another mask of it: leave {name} out where any address is meant."
                )));
            }
            // tc reads a mask over the address: bytes that are not written are those of the address.
            Some((mask, None)) => {
                let mut bytes = value;
                for (byte, written) in bytes.iter_mut().zip(link_bytes(mask).map_err(wrong)?) {
                    *byte = written;
                }
                number_of(bytes)
            }
        };
        self.masked(field, number_of(value), mask);
        Ok(())
    }

    fn arp_address(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let field = if name == "arp_sip" { FlowerField::ArpSip } else { FlowerField::ArpTip };
        let read = parse_prefix4(text).filter(|_| self.network == ethertype::ARP);
        let (address, mask) = read.ok_or_else(|| {
            illegal(name, text, words.last()).remedy("Say protocol arp, and an IPv4 prefix.")
        })?;
        self.params.set(FlowerKey { field, value: address.into(), mask: mask.into(), range: false });
        Ok(())
    }

    fn arp_op(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let number = match text {
            "request" => Some(1),
            "reply" => Some(2),
            _ => u8_in(text, 10),
        };
        let number = number
            .filter(|_| self.network == ethertype::ARP)
            .ok_or_else(|| illegal("arp_op", text, words.last()))?;
        self.all(FlowerField::ArpOp, number.into());
        Ok(())
    }

    fn ip_flags(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let (mut value, mut mask) = (0, 0);
        for word in text.split('/') {
            let (name, set) = word.strip_prefix("no").map_or((word, true), |name| (name, false));
            let bit = match name {
                "frag" => 1,
                "firstfrag" => 2,
                _ => return Err(illegal("ip_flags", text, words.last())),
            };
            mask |= bit;
            value |= if set { bit } else { 0 };
        }
        self.masked(FlowerField::IpFlags, value, mask);
        Ok(())
    }

    /// `+trk-new`: what must be so and what must not.
    fn ct_state(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let (value, mask) = connection_bits(text).ok_or_else(|| illegal("ct_state", text, words.last()))?;
        let [new, established, .., tracked, invalid, answer] = CT_STATES.map(|(bit, _)| value & bit != 0);
        let why = match () {
            () if value != 0 && !tracked => "no trk, so no other flag can be set",
            () if new && established => "new and est are mutually exclusive",
            () if invalid && value & !(CT_TRACKED | CT_INVALID) != 0 => {
                "when inv is set, only trk may be set"
            }
            () if new && answer => "new and rpl are mutually exclusive",
            () => {
                self.params.set(FlowerKey {
                    field: FlowerField::CtState,
                    value: value.into(),
                    mask: mask.into(),
                    range: false,
                });
                return Ok(());
            }
        };
        Err(from_kernel(why, words.last()))
    }

    fn ct_mark(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let fail = || illegal("ct_mark", text, words.last());
        let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        let value = u32_in(value, 0).ok_or_else(fail)?;
        let mask = mask.map_or(Some(u32::MAX), |mask| u32_in(mask, 0)).ok_or_else(fail)?;
        self.params.set(FlowerKey {
            field: FlowerField::CtMark,
            value: value.into(),
            mask: mask.into(),
            range: false,
        });
        Ok(())
    }

    /// The value that was given for a field of 16 bits at most.
    fn given(&self, field: FlowerField) -> Option<u16> {
        self.params.key(field).map(|key| key.value as u16)
    }

    /// The network protocol that the kernel compares: `None` where it looks at tags only, and for `all`.
    fn network_behind_tags(&self, protocol: u16) -> Option<u16> {
        let tags = self.given(FlowerField::NumVlans).unwrap_or(0);
        if !self.tagged && tags == 0 {
            return Some(protocol).filter(|protocol| !matches!(protocol, 0 | 3));
        }
        match self.given(FlowerField::VlanEthtype) {
            Some(network) if tags < 2 && !is_tag(network) => Some(network),
            None if tags < 2 => None,
            _ => self.given(FlowerField::CvlanEthtype),
        }
    }

    fn vlan(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        use FlowerField as F;
        let text = words.need()?;
        let tags = self.given(F::NumVlans).unwrap_or(0);
        if !self.tagged && tags == 0 && !name.starts_with('c') {
            let line =
                format!("Can't set \"{name}\" if ethertype isn't 802.1Q or 802.1AD and num_of_vlans is 0");
            return Err(Refusal::new(1, line).at(words.last()).remedy(
                "Say protocol 802.1q, on the device beneath: a VLAN's own device gets its frames without \
                the tag.",
            ));
        }
        if name.starts_with('c') && tags < 2 && !self.given(F::VlanEthtype).is_some_and(is_tag) {
            let why = match name {
                "cvlan_ethtype" => "ethertype isn't 802.1Q or 802.1AD and num_of_vlans less than 2",
                _ => "inner vlan ethertype isn't 802.1Q or 802.1AD and num_of_vlans is less than 2",
            };
            return Err(Refusal::new(1, format!("Can't set \"{name}\" if {why}"))
                .at(words.last())
                .remedy("Write vlan_ethtype 802.1q before it, for the tag inside the first."));
        }
        let fail = || illegal(name, text, words.last());
        let (field, value) = match name {
            "vlan_id" | "cvlan_id" => {
                let id = u16_in(text, 10).filter(|id| *id <= 0xfff).ok_or_else(fail)?;
                (if name == "vlan_id" { F::VlanId } else { F::CvlanId }, id)
            }
            "vlan_prio" | "cvlan_prio" => {
                let prio = u8_in(text, 10).filter(|prio| *prio <= 7).ok_or_else(fail)?;
                (if name == "vlan_prio" { F::VlanPrio } else { F::CvlanPrio }, prio.into())
            }
            _ => {
                let text = if text == "ipv4" { "ip" } else { text };
                let protocol = parse_protocol(text).ok_or_else(fail)?;
                self.network = protocol;
                (if name == "vlan_ethtype" { F::VlanEthtype } else { F::CvlanEthtype }, protocol)
            }
        };
        self.all(field, value.into());
        Ok(())
    }
}

const CT_TRACKED: u16 = 8;
const CT_INVALID: u16 = 16;
/// What a packet is to its connection, in the order of the bits.
const CT_STATES: [(u16, &str); 6] =
    [(1, "new"), (2, "est"), (4, "rel"), (CT_TRACKED, "trk"), (CT_INVALID, "inv"), (32, "rpl")];
/// The order in which they are listed.
const CT_LISTED: [&str; 6] = ["trk", "new", "est", "rel", "inv", "rpl"];

fn connection_bits(text: &str) -> Option<(u16, u16)> {
    let (mut value, mut mask) = (0, 0);
    let mut rest = text;
    while !rest.is_empty() {
        let (sign, words) = rest.split_at_checked(1)?;
        let end = words.find(['+', '-']).unwrap_or(words.len());
        let bit = CT_STATES.iter().find(|(_, name)| *name == &words[..end])?.0;
        match sign {
            "+" => value |= bit,
            "-" => {}
            _ => return None,
        }
        mask |= bit;
        rest = &words[end..];
    }
    (mask != 0).then_some((value, mask))
}

fn connection_words(key: &FlowerKey) -> String {
    let one = |name: &&str| {
        let bit = u128::from(CT_STATES.iter().find(|(_, known)| known == name)?.0);
        let sign = if key.value & bit != 0 { '+' } else { '-' };
        (key.mask & bit != 0).then(|| format!("{sign}{name}"))
    };
    CT_LISTED.iter().filter_map(one).collect()
}

/// As the kernel refuses.
fn from_kernel(why: &str, place: usize) -> Refusal {
    Refusal::new(2, format!("Error: {why}.")).then("We have an error talking to the kernel").at(place)
}

fn mask6(length: u32) -> u128 {
    u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0)
}

/// The first six bytes of a link address, or fewer; the error is the one that is none. With dots tc reads an
/// IPv4 address, which has four.
fn link_bytes(text: &str) -> Result<Vec<u8>, &str> {
    let separator = if text.contains('.') { '.' } else { ':' };
    text.split(separator).take(6).map(|part| hexadecimal_byte(part).ok_or(part)).collect()
}

/// A number that C's `%x` reads, up to 255; what follows its digits is not looked at.
fn hexadecimal_byte(text: &str) -> Option<u8> {
    let digits = text.trim_start();
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u8::from_str_radix(&digits[..end], 16).ok()
}

/// The bytes of a link address as one number.
fn number_of(bytes: [u8; 6]) -> u128 {
    bytes.into_iter().fold(0, |address, byte| address << 8 | u128::from(byte))
}

fn illegal(name: &str, text: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("Illegal \"{name}\""))
        .at(place)
        .remedy(format!("\"{text}\" is not a value for {name}."))
}

/// One of the keys as it is listed.
pub(in crate::tc) fn key_words(params: &FlowerParams, key: &FlowerKey) -> String {
    let six = params.key(FlowerField::EthType).is_some_and(|key| key.value == u128::from(ethertype::IPV6));
    let mut entry = Entry::new();
    line(key, six, &mut entry);
    entry.text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let (FilterParams::Flower(params), handle) = (filter.params, filter.handle) else { return None };
    let mut entry = Entry::new();
    entry.number("handle", handle, &format!("handle {handle:#x} "));
    if filter.flags.brief {
        entry.member("keys", Json::Object(Vec::new()));
        card(params, &mut entry);
        action::show(filter.actions, filter.flags, &mut entry);
        return Some(entry);
    }
    if let Some(class) = params.classid.filter(|class| !class.is_none()) {
        entry.word("classid", &class.to_string());
    }
    if let Some(indev) = params.indev.as_ref().filter(|indev| !indev.name.is_empty()) {
        entry.say(&format!("\n  indev {}", indev.name));
        entry.member("indev", Json::text(indev.name.clone()));
    }
    let mut keys = Entry::new();
    let six = params.key(FlowerField::EthType).is_some_and(|key| key.value == u128::from(ethertype::IPV6));
    for key in params.keys.iter().filter(|key| !key.never_holds()) {
        line(key, six, &mut keys);
    }
    entry.say(&keys.text);
    entry.member("keys", Json::Object(keys.members));
    card(params, &mut entry);
    action::show(filter.actions, filter.flags, &mut entry);
    Some(entry)
}

/// Whether a card does its work.
fn card(params: &FlowerParams, entry: &mut Entry) {
    if params.skip_hw {
        entry.say("\n  skip_hw");
        entry.member("skip_hw", Json::Bool(true));
    }
    entry.say("\n  not_in_hw");
    entry.member("not_in_hw", Json::Bool(true));
}

/// The line of a field.
fn line(key: &FlowerKey, six: bool, out: &mut Entry) {
    use FlowerField as F;
    let name = name(key.field);
    let word = |out: &mut Entry, text: String| {
        out.say(&format!("\n  {name} {text}"));
        out.member(name, Json::text(text));
    };
    match key.field {
        F::EthType => word(out, network_name(key.value as u16)),
        F::VlanEthtype | F::CvlanEthtype => word(out, protocol(key.value as u16)),
        F::IpProto => {
            let known = PROTOCOLS.iter().find(|(_, number)| u128::from(*number) == key.value);
            word(out, known.map_or_else(|| format!("{:02x}", key.value), |(name, _)| (*name).into()));
        }
        F::DstIp | F::SrcIp | F::ArpSip | F::ArpTip => word(out, prefix(key, six)),
        F::DstMac | F::SrcMac | F::ArpSha | F::ArpTha => word(out, link(key)),
        F::ArpOp => word(
            out,
            match key.value {
                1 => "request".into(),
                2 => "reply".into(),
                other => other.to_string(),
            },
        ),
        F::TcpFlags => word(out, format!("{:#x}/{:x}", key.value, key.mask)),
        F::IcmpType | F::IcmpCode => word(out, key.value.to_string()),
        F::IpFlags => flags(key, out),
        F::CtState => word(out, connection_words(key)),
        F::DstPort | F::SrcPort if key.range => {
            out.say(&format!("\n  {name} {}-{}", key.value, key.mask));
            let ends = vec![("start", Json::number(key.value)), ("end", Json::number(key.mask))];
            out.member(name, Json::Object(ends));
        }
        _ => {
            out.number(name, key.value, &format!("\n  {name} {}", key.value));
            if key.mask != key.field.all() {
                out.say(&format!("/{:#x}", key.mask));
                let name = match key.field {
                    F::DstPort => "dst_port_mask",
                    F::SrcPort => "src_port_mask",
                    F::IpTos => "ip_tos_mask",
                    F::CtMark => "ct_mark_mask",
                    _ => "ip_ttl_mask",
                };
                out.member(name, Json::text(format!("{:x}", key.mask)));
            }
        }
    }
}

fn flags(key: &FlowerKey, out: &mut Entry) {
    let mut words = Vec::new();
    let mut members = Vec::new();
    for (bit, name) in [(1, "frag"), (2, "firstfrag")] {
        if key.mask & bit != 0 {
            let set = key.value & bit != 0;
            words.push(if set { name.to_owned() } else { format!("no{name}") });
            members.push((name, Json::Bool(set)));
        }
    }
    out.say(&format!("\n  ip_flags {}", words.join("/")));
    out.member("ip_flags", Json::Object(members));
}

fn network_name(number: u16) -> String {
    match number {
        ethertype::IPV4 => "ipv4".into(),
        ethertype::IPV6 => "ipv6".into(),
        ethertype::ARP => "arp".into(),
        other => format!("{other:04x}"),
    }
}

fn prefix(key: &FlowerKey, six: bool) -> String {
    let wide = six && matches!(key.field, FlowerField::DstIp | FlowerField::SrcIp);
    let (address, bits) = if wide {
        (Ipv6Addr::from(key.value).to_string(), 128)
    } else {
        (Ipv4Addr::from(key.value as u32).to_string(), 32)
    };
    let length = key.mask.count_ones();
    let plain = if wide { key.mask == mask6(length) } else { key.mask as u32 == prefix_mask(length) };
    match length == bits {
        true => address,
        false if plain => format!("{address}/{length}"),
        false => format!("{address}/{}", Ipv4Addr::from(key.mask as u32)),
    }
}

fn link(key: &FlowerKey) -> String {
    let text = |address: u128| {
        let bytes = address.to_be_bytes();
        bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
    };
    let all = key.field.all();
    let length = key.mask.count_ones();
    match key.mask {
        mask if mask == all => text(key.value),
        mask if mask == all & !(all >> length) => format!("{}/{length}", text(key.value)),
        mask => format!("{}/{}", text(key.value), text(mask)),
    }
}

fn name(field: FlowerField) -> &'static str {
    use FlowerField as F;
    match field {
        F::NumVlans => "num_of_vlans",
        F::VlanId => "vlan_id",
        F::VlanPrio => "vlan_prio",
        F::VlanEthtype => "vlan_ethtype",
        F::CvlanId => "cvlan_id",
        F::CvlanPrio => "cvlan_prio",
        F::CvlanEthtype => "cvlan_ethtype",
        F::DstMac => "dst_mac",
        F::SrcMac => "src_mac",
        F::EthType => "eth_type",
        F::IpProto => "ip_proto",
        F::IpTos => "ip_tos",
        F::IpTtl => "ip_ttl",
        F::DstIp => "dst_ip",
        F::SrcIp => "src_ip",
        F::DstPort => "dst_port",
        F::SrcPort => "src_port",
        F::TcpFlags => "tcp_flags",
        F::IcmpType => "icmp_type",
        F::IcmpCode => "icmp_code",
        F::ArpSip => "arp_sip",
        F::ArpTip => "arp_tip",
        F::ArpOp => "arp_op",
        F::ArpSha => "arp_sha",
        F::ArpTha => "arp_tha",
        F::IpFlags => "ip_flags",
        F::CtState => "ct_state",
        F::CtMark => "ct_mark",
    }
}
