//! ethtool (6.1), answered: the speed, the features, the rings.

use crate::call::Reply;
use crate::shim::ToolShim;
use crate::world;
use tidegate_gateway::DeviceSpec;
use tidegate_policy::{LinkDriver, Op, RawLink};

const VERSION: &str = "ethtool version 6.1\n";
/// Frames that a ring may hold at most.
const RING_MAX: u32 = 4096;
const ABSENT: &str = "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n";
const UNSUPPORTED: &str = "netlink error: Operation not supported\n";

/// The features that scripts turn off: ethtool's short name, the long one, and whether it is on from the
/// start.
const FEATURES: [(&str, &str, bool); 13] = [
    ("rx", "rx-checksumming", true),
    ("tx", "tx-checksumming", true),
    ("sg", "scatter-gather", true),
    ("tso", "tcp-segmentation-offload", true),
    ("gso", "generic-segmentation-offload", true),
    ("gro", "generic-receive-offload", true),
    ("lro", "large-receive-offload", false),
    ("rxvlan", "rx-vlan-offload", true),
    ("txvlan", "tx-vlan-offload", true),
    ("ntuple", "ntuple-filters", false),
    ("rxhash", "receive-hashing", true),
    ("ufo", "udp-fragmentation-offload", false),
    ("highdma", "highdma", true),
];

/// `ethtool` with these words.
pub(super) fn answer(shim: &mut ToolShim<'_>, words: &[String]) -> Reply {
    let (option, rest) = match words {
        [] => {
            let text = "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n";
            return Reply::error(1, text);
        }
        [option, rest @ ..] if option.starts_with('-') => (option.as_str(), rest),
        rest => ("", rest),
    };
    match option {
        "--version" => return Reply::text(VERSION),
        "-h" | "--help" => {
            let text = "ethtool [-i|-k|-K|-g|-G|-a|-A|-c|-C|-l|-S|-s] DEVICE [NAME VALUE]…\n";
            return Reply::text(text);
        }
        _ => {}
    }
    let Some((dev, changes)) = rest.split_first() else {
        return Reply::error(
            1,
            "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n",
        );
    };
    if matches!(option, "-K" | "-G" | "-C" | "-A" | "-s" | "-L") {
        shim.machine.grow_one(dev);
    }
    world::meet_all(shim);
    let Some(spec) = shim.machine.gateway.device(dev).map(|id| shim.machine.gateway.spec(id)) else {
        return absent(option);
    };
    match option {
        "" => Reply::text(settings(shim, dev, &spec)),
        "-i" | "--driver" => Reply::text(driver(shim, dev)),
        "-k" | "--show-features" | "--show-offload" => Reply::text(features(shim, dev)),
        "-K" | "--features" | "--offload" => change_features(shim, dev, changes, words),
        "-g" | "--show-ring" => Reply::text(rings(shim, dev, &spec)),
        "-G" | "--set-ring" => change_rings(shim, dev, changes, words),
        "-a" | "--show-pause" => Reply::text(pairs(shim, dev, "Pause parameters for", &PAUSE)),
        "-c" | "--show-coalesce" => {
            let head = "Adaptive RX: off  TX: off\n";
            Reply::text(pairs(shim, dev, "Coalesce parameters for", &COALESCE).replacen(
                '\n',
                &format!("\n{head}"),
                1,
            ))
        }
        "-l" | "--show-channels" => Reply::text(channels(dev)),
        "-S" | "--statistics" => Reply::error(94, "no stats available\n"),
        "-A" | "--pause" | "-C" | "--coalesce" | "-s" | "--change" | "-L" | "--set-channels" | "-r"
        | "-p" => {
            keep(shim, dev, changes);
            shim.did("ethtool", words);
            Reply::ok()
        }
        option => Reply::error(1, format!("ethtool: tidegate does not emulate {option}\n")),
    }
}

fn absent(option: &str) -> Reply {
    match option {
        "" => Reply::error(75, format!("{}No data available\n", ABSENT.repeat(5))),
        _ => Reply::error(1, ABSENT),
    }
}

fn settings(shim: &ToolShim<'_>, dev: &str, spec: &DeviceSpec) -> String {
    let link = shim.machine.host.links.get(dev);
    let detected = if link.is_some_and(|link| link.up) { "yes" } else { "no" };
    let Some(speed) = spec.speed_mbit else {
        return format!("Settings for {dev}:\n\tLink detected: {detected}\n");
    };
    let virtual_link = link.is_some_and(|link| !matches!(link.kind, LinkDriver::Ethernet));
    let modes = if virtual_link { "Not reported".to_owned() } else { format!("{speed}baseT/Full") };
    format!(
        "Settings for {dev}:\n\tSupported ports: [ TP ]\n\tSupported link modes:   {modes}\n\tSupported \
        pause frame use: No\n\
         \tSupports auto-negotiation: Yes\n\tSupported FEC modes: Not reported\n\tAdvertised link modes:  \
         {modes}\n\
         \tAdvertised pause frame use: No\n\tAdvertised auto-negotiation: Yes\n\tAdvertised FEC modes: Not \
         reported\n\
         \tSpeed: {speed}Mb/s\n\tDuplex: Full\n\tAuto-negotiation: on\n\tPort: Twisted Pair\n\tPHYAD: 0\n\
         \tTransceiver: internal\n\tMDI-X: Unknown\n\tLink detected: {detected}\n"
    )
}

fn driver(shim: &ToolShim<'_>, dev: &str) -> String {
    let driver = match shim.machine.host.links.get(dev).map(|link| &link.kind) {
        Some(LinkDriver::Ifb) => "ifb",
        Some(LinkDriver::Dummy) => "dummy",
        Some(LinkDriver::Bridge) => "bridge",
        Some(LinkDriver::Veth { .. }) => "veth",
        Some(LinkDriver::Vlan { .. }) => "802.1Q VLAN Support",
        Some(LinkDriver::PointToPoint) => "ppp",
        Some(LinkDriver::Raw(RawLink::Wireguard)) => "wireguard",
        Some(LinkDriver::Raw(RawLink::Tun)) => "tun",
        Some(LinkDriver::Raw(RawLink::Wwan)) => "qmi_wwan",
        Some(LinkDriver::Tunnel(_)) => "tunnel",
        _ => "e1000e",
    };
    format!(
        "driver: {driver}\nversion: 6.1.0\nfirmware-version: \nexpansion-rom-version: \nbus-info: \nsupports-statistics: no\n\
         supports-test: no\nsupports-eeprom-access: no\nsupports-register-dump: no\nsupports-priv-flags: no\n"
    )
}

/// A value that a script set, or the usual one.
fn tuned<'f>(shim: &'f ToolShim<'_>, dev: &str, key: &str, usual: &'f str) -> &'f str {
    shim.machine.host.links.get(dev).and_then(|link| link.tuned.get(key)).map_or(usual, String::as_str)
}

fn features(shim: &ToolShim<'_>, dev: &str) -> String {
    let mut out = format!("Features for {dev}:\n");
    for (short, long, on) in FEATURES {
        let state = tuned(shim, dev, short, if on { "on" } else { "off" });
        let fixed = if long == "udp-fragmentation-offload" { " [fixed]" } else { "" };
        out.push_str(&format!("{long}: {state}{fixed}\n"));
    }
    out
}

fn change_features(shim: &mut ToolShim<'_>, dev: &str, changes: &[String], words: &[String]) -> Reply {
    for pair in changes.chunks(2) {
        let known = FEATURES.iter().find(|(short, long, _)| pair[0] == *short || pair[0] == *long);
        // Drivers have many more features; a name of their pattern is believed.
        let key = known.map(|(short, _, _)| (*short).to_owned());
        let key = key.or_else(|| {
            ["tx-", "rx-", "hw-", "l2-"].iter().any(|p| pair[0].starts_with(p)).then(|| pair[0].clone())
        });
        let Some(key) = key else {
            return Reply::error(
                92,
                "netlink error: bit name not found (offset 56)\nnetlink error: Operation not supported\n",
            );
        };
        match pair.get(1).map(String::as_str) {
            Some(state @ ("on" | "off")) => keep(shim, dev, &[key, state.to_owned()]),
            _ => {
                let text = "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n";
                return Reply::error(1, text);
            }
        }
    }
    shim.did("ethtool", words);
    Reply::ok()
}

/// Remembers what was set: `NAME VALUE` pairs.
fn keep(shim: &mut ToolShim<'_>, dev: &str, changes: &[String]) {
    if let Some(link) = shim.machine.host.links.get_mut(dev) {
        for pair in changes.chunks_exact(2) {
            link.tuned.insert(pair[0].clone(), pair[1].clone());
        }
    }
}

fn has_rings(shim: &ToolShim<'_>, dev: &str) -> bool {
    shim.machine.host.links.get(dev).is_some_and(|link| link.kind == LinkDriver::Ethernet)
}

fn rings(shim: &ToolShim<'_>, dev: &str, spec: &DeviceSpec) -> String {
    let rx = tuned(shim, dev, "ring-rx", "256");
    format!(
        "Ring parameters for {dev}:\nPre-set maximums:\nRX:\t\t{RING_MAX}\nRX Mini:\tn/a\nRX \
        Jumbo:\tn/a\nTX:\t\t{RING_MAX}\n\
         Current hardware settings:\nRX:\t\t{rx}\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t{}\nRX Buf \
         Len:\t\tn/a\n\
         CQE Size:\t\tn/a\nTX Push:\toff\n",
        spec.ring
    )
}

fn change_rings(shim: &mut ToolShim<'_>, dev: &str, changes: &[String], words: &[String]) -> Reply {
    if !has_rings(shim, dev) {
        return Reply::error(81, UNSUPPORTED);
    }
    for pair in changes.chunks(2) {
        let number = pair.get(1).and_then(|text| text.parse::<u32>().ok());
        let reply = match (pair[0].as_str(), number) {
            (_, Some(frames)) if frames > RING_MAX || frames == 0 => Reply::error(
                81,
                "netlink error: requested ring size exceeds maximum\nnetlink error: Invalid argument\n",
            ),
            ("tx", Some(frames)) => match shim.apply(Op::Ring { dev: dev.into(), frames }) {
                Ok(_) => continue,
                Err(error) => Reply::error(81, format!("netlink error: {}\n", error.errno.text())),
            },
            ("rx" | "rx-mini" | "rx-jumbo", Some(frames)) => {
                keep(shim, dev, &[format!("ring-{}", pair[0]), frames.to_string()]);
                continue;
            }
            _ => Reply::error(
                1,
                "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n",
            ),
        };
        return reply;
    }
    shim.did("ethtool", words);
    Reply::ok()
}

const PAUSE: [(&str, &str, &str); 3] =
    [("autoneg", "Autonegotiate:\t", "off"), ("rx", "RX:\t\t", "off"), ("tx", "TX:\t\t", "off")];
const COALESCE: [(&str, &str, &str); 4] = [
    ("rx-usecs", "rx-usecs: ", "3"),
    ("rx-frames", "rx-frames: ", "0"),
    ("tx-usecs", "tx-usecs: ", "0"),
    ("tx-frames", "tx-frames: ", "0"),
];

fn pairs(shim: &ToolShim<'_>, dev: &str, title: &str, table: &[(&str, &str, &str)]) -> String {
    let mut out = format!("{title} {dev}:\n");
    for (key, head, usual) in table {
        out.push_str(&format!("{head}{}\n", tuned(shim, dev, key, usual)));
    }
    out
}

fn channels(dev: &str) -> String {
    let row = "RX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t1\n";
    format!("Channel parameters for {dev}:\nPre-set maximums:\n{row}Current hardware settings:\n{row}")
}
