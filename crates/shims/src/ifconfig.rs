//! ifconfig (net-tools 2.10), answered.

use crate::call::Reply;
use crate::host;
use crate::ip;
use crate::shim::ToolShim;
use crate::world;
use std::net::{IpAddr, Ipv4Addr};
use tidegate_policy::{LinkDriver, LinkOp, Op, TunnelMode};
use tidegate_syntax::ip::{LinkSelector, ShownLink};

/// What `ifconfig -V` prints.
const VERSION: &str = "net-tools 2.10\n";

/// `ifconfig` with these words.
pub(super) fn answer(shim: &mut ToolShim<'_>, words: &[String]) -> Reply {
    let (mut all, mut short) = (false, false);
    let mut at = 0;
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        match option.as_str() {
            "-a" => all = true,
            "-s" => short = true,
            "-v" => {}
            "-V" | "--version" => return Reply::text(VERSION),
            _ => return Reply::error(1, format!("ifconfig: option `{option}' not recognised.\n{USAGE}")),
        }
        at += 1;
    }
    let words = &words[at..];
    let Some((name, changes)) = words.split_first() else {
        world::meet_all(shim);
        let which = LinkSelector { up: !all, ..LinkSelector::default() };
        let mut links = ip::links(shim, &which);
        links.sort_by(|a, b| a.name.cmp(&b.name));
        return Reply::text(if short { table(&links) } else { links.iter().map(text).collect() });
    };
    if !changes.is_empty() {
        shim.machine.grow_one(name);
    }
    world::meet_all(shim);
    let which = LinkSelector { dev: Some(name.clone()), ..LinkSelector::default() };
    let Some(link) = ip::links(shim, &which).pop() else {
        return Reply::error(
            if changes.is_empty() { 1 } else { 255 },
            match changes.is_empty() {
                true => format!("{name}: error fetching interface information: Device not found\n"),
                false => format!("{name}: ERROR while getting interface flags: No such device\n"),
            },
        );
    };
    if changes.is_empty() {
        return Reply::text(if short { table(&[link]) } else { text(&link) });
    }
    match change(shim, name, changes) {
        Ok(()) => Reply::ok(),
        Err(reply) => reply,
    }
}

/// In our own words, printed where ifconfig prints its own.
const USAGE: &str = "ifconfig [-a] [-s] [DEVICE [ADDRESS] [netmask MASK] [mtu N] [txqueuelen N] [up|down]]\n";

/// One thing that ifconfig's words ask for.
enum Setting {
    Up(bool),
    Queue(u32),
    Mtu(u32),
    Mask(u8),
    Address(Ipv4Addr, Option<u8>),
    /// Accepted, and nothing to a model.
    Nothing,
}

/// The next setting; `None` at the end of the words.
fn next_setting(words: &mut std::slice::Iter<'_, String>) -> Result<Option<Setting>, Reply> {
    let Some(word) = words.next() else { return Ok(None) };
    let mut value = || words.next().ok_or_else(|| Reply::error(3, USAGE));
    let number = |text: &String, what: &str| {
        text.parse::<u32>().map_err(|_| Reply::error(1, format!("{what}: Invalid argument\n")))
    };
    let hint = "ifconfig: `--help' gives usage information.\n";
    Ok(Some(match word.as_str() {
        "up" | "down" => Setting::Up(word == "up"),
        "txqueuelen" => Setting::Queue(number(value()?, "SIOCSIFTXQLEN")?),
        "mtu" => Setting::Mtu(number(value()?, "SIOCSIFMTU")?),
        "netmask" => {
            let text = value()?;
            let mask = text
                .parse::<Ipv4Addr>()
                .map_err(|_| Reply::error(1, format!("{text}: Unknown host\n{hint}")))?;
            Setting::Mask(u32::from(mask).leading_ones() as u8)
        }
        "hw" => {
            value()?;
            value()?;
            Setting::Nothing
        }
        "broadcast" | "dstaddr" | "metric" | "pointopoint" | "media" | "mem_start" | "io_addr" | "irq" => {
            value()?;
            Setting::Nothing
        }
        "arp" | "-arp" | "promisc" | "-promisc" | "allmulti" | "-allmulti" | "multicast" | "-multicast"
        | "inet" | "add" | "-broadcast" | "dynamic" | "-dynamic" => Setting::Nothing,
        text => {
            let (text, bits) = text.split_once('/').unwrap_or((text, ""));
            let address = text.parse();
            let address =
                address.map_err(|_| Reply::error(1, format!("{text}: Host name lookup failure\n{hint}")))?;
            Setting::Address(address, bits.parse().ok().filter(|bits| *bits <= 32))
        }
    }))
}

fn change(shim: &mut ToolShim<'_>, dev: &str, words: &[String]) -> Result<(), Reply> {
    let mut words = words.iter();
    let (mut address, mut mask) = (None, None);
    while let Some(setting) = next_setting(&mut words)? {
        let (key, value) = match setting {
            Setting::Up(up) => {
                world::set_up(shim, dev, up);
                (if up { "up" } else { "down" }, None)
            }
            Setting::Queue(packets) => {
                apply(shim, Op::TxQueueLen { dev: dev.into(), packets })?;
                ("txqueuelen", Some(packets))
            }
            Setting::Mtu(bytes) => {
                apply(shim, Op::Mtu { dev: dev.into(), bytes })?;
                ("mtu", Some(bytes))
            }
            Setting::Mask(bits) => {
                mask = Some(bits);
                continue;
            }
            Setting::Address(given, bits) => {
                address = Some(given);
                mask = bits.or(mask);
                continue;
            }
            Setting::Nothing => continue,
        };
        note(
            shim,
            &["link", "set", "dev", dev, key, &value.map_or(String::new(), |value| value.to_string())],
        );
    }
    let Some(address) = address else { return Ok(()) };
    assign(shim, dev, address, mask)?;
    let prefix = mask.unwrap_or_else(|| class_prefix(address));
    note(shim, &["-4", "addr", "flush", "dev", dev]);
    note(shim, &["addr", "add", &format!("{address}/{prefix}"), "dev", dev]);
    note(shim, &["link", "set", "dev", dev, "up"]);
    Ok(())
}

/// Notes what was done, in ip's words.
fn note(shim: &mut ToolShim<'_>, words: &[&str]) {
    let words: Vec<String> =
        words.iter().filter(|word| !word.is_empty()).map(|word| (*word).to_owned()).collect();
    shim.did("ip", &words);
}

/// An address without a mask has that of its class.
fn class_prefix(address: Ipv4Addr) -> u8 {
    match address.octets()[0] {
        0..128 => 8,
        128..192 => 16,
        _ => 24,
    }
}

/// Puts the address in place of those of its family, and brings the device up.
fn assign(shim: &mut ToolShim<'_>, dev: &str, address: Ipv4Addr, mask: Option<u8>) -> Result<(), Reply> {
    let known = shim.machine.gateway.device(dev).map(|id| shim.machine.gateway.addresses(id).to_vec());
    for (old, prefix) in known.unwrap_or_default().into_iter().filter(|(old, _)| old.is_ipv4()) {
        apply(shim, Op::Link(LinkOp::Address { name: dev.into(), add: false, address: old, prefix }))?;
    }
    let prefix = mask.unwrap_or_else(|| class_prefix(address));
    apply(shim, Op::Link(LinkOp::Address { name: dev.into(), add: true, address: address.into(), prefix }))?;
    world::set_up(shim, dev, true);
    Ok(())
}

fn apply(shim: &mut ToolShim<'_>, op: Op) -> Result<(), Reply> {
    shim.apply(op).map(|_| ()).map_err(|error| Reply::error(1, format!("ifconfig: {}\n", error.errno.text())))
}

/// A device as ifconfig prints it, with the empty line after it.
fn text(link: &ShownLink) -> String {
    let flags = host::flags(&link.kind, link.up);
    const NAMES: [(u32, &str); 7] = [
        (0x1, "UP"),
        (0x2, "BROADCAST"),
        (0x8, "LOOPBACK"),
        (0x10, "POINTOPOINT"),
        (0x40, "RUNNING"),
        (0x80, "NOARP"),
        (0x1000, "MULTICAST"),
    ];
    let names: Vec<&str> =
        NAMES.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect();
    let mut out = format!("{}: flags={flags}<{}>  mtu {}\n", link.name, names.join(","), link.mtu);
    for shown in &link.addresses {
        out.push_str(&match shown.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(shown.prefix)).unwrap_or(0);
                let all = Ipv4Addr::from(u32::from(address) | !mask);
                let broadcast = match &link.kind {
                    LinkDriver::Loopback => String::new(),
                    LinkDriver::PointToPoint | LinkDriver::Raw(_) | LinkDriver::Tunnel(_) => {
                        format!("  destination {address}")
                    }
                    _ => format!("  broadcast {all}"),
                };
                format!("        inet {address}  netmask {}{broadcast}\n", Ipv4Addr::from(mask))
            }
            IpAddr::V6(address) => {
                let scope = match address.segments()[0] {
                    _ if address.is_loopback() => "0x10<host>",
                    first if first & 0xffc0 == 0xfe80 => "0x20<link>",
                    _ => "0x0<global>",
                };
                format!("        inet6 {address}  prefixlen {}  scopeid {scope}\n", shown.prefix)
            }
        });
    }
    let queue = link.txqueuelen;
    let mac = link.mac.map(|byte| format!("{byte:02x}")).join(":");
    out.push_str(&match &link.kind {
        LinkDriver::Loopback => format!("        loop  txqueuelen {queue}  (Local Loopback)\n"),
        LinkDriver::PointToPoint => format!("        ppp  txqueuelen {queue}  (Point-to-Point Protocol)\n"),
        LinkDriver::Raw(_) => {
            format!(
                "        unspec 00-00-00-00-00-00-00-00-00-00-00-00-00-00-00-00  txqueuelen {queue}  \
            (UNSPEC)\n"
            )
        }
        LinkDriver::Tunnel(tunnel) => match tunnel.mode {
            TunnelMode::Ipip => format!("        tunnel   txqueuelen {queue}  (IPIP Tunnel)\n"),
            TunnelMode::Sit => format!("        sit  txqueuelen {queue}  (IPv6-in-IPv4)\n"),
            TunnelMode::Gre => format!(
                "        unspec 00-00-00-00-00-00-00-00-00-00-00-00-00-00-00-00  txqueuelen {queue}  \
                (UNSPEC)\n"
            ),
            TunnelMode::Ip6tnl => format!(
                "        unspec 00-00-00-00-00-00-00-00-00-00-00-00-00-00-00-00  txqueuelen {queue}  \
                (UNSPEC)\n"
            ),
            TunnelMode::Gretap => format!("        ether {mac}  txqueuelen {queue}  (Ethernet)\n"),
        },
        _ => format!("        ether {mac}  txqueuelen {queue}  (Ethernet)\n"),
    });
    let (bytes, packets) = link.sent;
    out.push_str(
        "        RX packets 0  bytes 0 (0.0 B)\n        RX errors 0  dropped 0  overruns 0  frame 0\n",
    );
    out.push_str(&format!("        TX packets {packets}  bytes {bytes} ({})\n", human(bytes)));
    out.push_str("        TX errors 0  dropped 0 overruns 0  carrier 0  collisions 0\n\n");
    out
}

/// Bytes as ifconfig rounds them: `90.0 B`, `1.2 KiB`.
fn human(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// `ifconfig -s`.
fn table(links: &[ShownLink]) -> String {
    let mut out =
        String::from("Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\n");
    for link in links {
        let letters = match (&link.kind, link.up) {
            (LinkDriver::Loopback, _) => "LRU",
            (LinkDriver::PointToPoint | LinkDriver::Raw(_), _) => "MOPRU",
            (_, true) => "BMRU",
            (_, false) => "BO",
        };
        out.push_str(&format!(
            "{:<16}{:>5} {:>8} {:>6} {:>6} {:<6} {:>8} {:>6} {:>6} {:>6} {letters}\n",
            link.name, link.mtu, 0, 0, 0, 0, link.sent.1, 0, 0, 0
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As net-tools 2.10 printed the same device.
    #[test]
    fn a_device_is_printed_as_net_tools_does() {
        let link = ShownLink {
            index: 2,
            name: "eth0".into(),
            kind: LinkDriver::Ethernet,
            up: true,
            mtu: 1500,
            txqueuelen: 1000,
            qdisc: "pfifo_fast".into(),
            mac: [0x2a, 0xcb, 0xdf, 0x08, 0xe5, 0xd3],
            master: None,
            addresses: vec![tidegate_syntax::ip::ShownAddress { address: [10, 0, 0, 1].into(), prefix: 24 }],
            sent: (90, 1),
        };
        let wanted = "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 10.0.0.1  netmask 255.255.255.0  broadcast 10.0.0.255
        ether 2a:cb:df:08:e5:d3  txqueuelen 1000  (Ethernet)
        RX packets 0  bytes 0 (0.0 B)
        RX errors 0  dropped 0  overruns 0  frame 0
        TX packets 1  bytes 90 (90.0 B)
        TX errors 0  dropped 0 overruns 0  carrier 0  collisions 0

";
        assert_eq!(text(&link), wanted);
    }
}
