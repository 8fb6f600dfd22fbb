//! Formats that are recognised and not read, so that none of them is taken for a script or a short policy:
//! each with what shows it and a way out.

/// What to save of a policy that other software puts up.
macro_rules! listings {
    ($what:literal) => {
        concat!(
            $what,
            "; where it is in force, write the line `# dev eth0` (the device) to a file, behind it what `tc qdisc show \
             dev eth0`, `tc class show dev eth0` and `tc filter show dev eth0` print, and name that file"
        )
    };
}

/// A format.
struct Foreign {
    /// Does a file of this name with these lines, trimmed and without comments, have it?
    is: fn(name: &str, lines: &[&str]) -> bool,
    /// What it is, and what to do.
    what: &'static str,
}

const FOREIGN: [Foreign; 15] = [
    Foreign {
        is: |name, lines| {
            has_extension(name, &["network", "netdev"]) && any(lines, |line| line.starts_with('['))
                || any(lines, |line| ["[Network]", "[NetDev]"].contains(&line))
        },
        what: "is a file of systemd-networkd without a section about traffic control ([CAKE], [HierarchyTokenBucket] …), \
               which is all that is read of such files",
    },
    Foreign {
        is: |name, lines| {
            has_extension(name, &["service", "timer"])
                || any(lines, |line| line == "[Service]") && any(lines, |line| line.starts_with("Exec"))
        },
        what: "is a unit of systemd; name the script or the commands that its ExecStart= runs, as a file of their own",
    },
    Foreign {
        is: |name, lines| {
            has_extension(name, &["nmconnection"])
                || any(lines, |line| line == "[connection]")
                    && any(lines, |line| is_key(line, "uuid") || is_key(line, "id"))
        },
        what: listings!("is a connection of NetworkManager, which is not read"),
    },
    Foreign {
        is: |_, lines| {
            let of_interface = |line: &str| matches!(words(line)[..], ["iface", _, _, _, ..]);
            any(lines, of_interface)
        },
        what: "is a file of ifupdown (/etc/network/interfaces); name a file with the commands behind its `up`, \
               `post-up` and `pre-up` alone",
    },
    Foreign {
        is: |_, lines| {
            let of_policy = |line: &str| {
                ["set traffic-policy ", "set qos policy ", "set qos interface "]
                    .iter()
                    .any(|begin| line.starts_with(begin))
            };
            any(lines, of_policy)
                || any(lines, |line| line == "traffic-policy {")
                || any(lines, |line| line == "qos {")
        },
        what: listings!("is a configuration of VyOS, which is not read"),
    },
    Foreign {
        is: |_, lines| {
            let menus =
                ["/queue simple", "/queue tree", "/queue type", "/ip firewall mangle", "/interface queue"];
            any(lines, |line| menus.iter().any(|menu| line.starts_with(menu)))
        },
        what: "is a configuration of RouterOS, which is not read; say what it shapes as a short policy (tidegate \
               policy help)",
    },
    Foreign {
        is: |_, lines| {
            any(lines, |line| line.starts_with("policy-map "))
                && any(lines, |line| line.starts_with("class ") || line.starts_with("service-policy "))
        },
        what: "is a configuration in Cisco's words (policy-map), which is not read; say what it shapes as a short \
               policy (tidegate policy help)",
    },
    Foreign {
        is: |_, lines| {
            let dummynet = |line: &str| {
                let words = words(line);
                let words = words.strip_prefix(&["ipfw"]).unwrap_or(&words);
                matches!(words, ["pipe" | "queue", number, "config", ..] if number.parse::<u32>().is_ok())
            };
            any(lines, |line| line.starts_with("altq on ")) || any(lines, dummynet)
        },
        what: "is a configuration of BSD's ALTQ or dummynet, which is not read; say what it shapes as a short policy \
               (tidegate policy help)",
    },
    Foreign {
        is: |name, lines| {
            has_extension(name, &["yaml", "yml"])
                || any(lines, |line| line.starts_with("apiVersion:"))
                    && any(lines, |line| line.starts_with("kind:"))
        },
        what: listings!(
            "is YAML (Kubernetes, Ansible, netplan …), of which NetworkChaos of Chaos Mesh and pods with \
             kubernetes.io/ingress-bandwidth or egress-bandwidth are read"
        ),
    },
    Foreign {
        is: |_, lines| {
            let is_section = |line: &&str| line.starts_with("config ");
            let is_part =
                |line: &str| ["option ", "list ", "package "].iter().any(|word| line.starts_with(word));
            lines.iter().any(is_section) && lines.iter().all(|line| is_section(line) || is_part(line))
        },
        what: listings!("is OpenWrt's UCI, but not that of SQM (`config queue`), and is not read"),
    },
    Foreign {
        is: |_, lines| {
            let is_its = |line: &str| {
                let first = line.split_whitespace().next().unwrap_or_default();
                ["uci", "echo", "sleep", "exit", "service", "reload_config"].contains(&first)
                    || first.starts_with("/etc/init.d/")
            };
            any(lines, |line| line.starts_with("uci ")) && lines.iter().all(|line| is_its(line))
        },
        what: listings!(
            "sets options of OpenWrt (uci) and calls no tc itself, so it is not read; of SQM name /etc/config/sqm, \
             which it writes"
        ),
    },
    Foreign {
        is: |_, lines| any(lines, |line| line.starts_with("mininet> ")),
        what: "is copied from a terminal of mininet; write what its hosts are given (tc qdisc add dev h1-eth0 …) to a \
               file of its own, without `mininet>` and the host's name",
    },
    Foreign {
        is: |name, lines| {
            has_extension(name, &["py"])
                || lines
                    .first()
                    .is_some_and(|line| matches!(words(line)[..], ["import", _] | ["from", _, "import", ..]))
        },
        what: "is a program in Python; let its first line name the program that runs it (#!/usr/bin/env python3), or \
               name a file with the commands that it gives",
    },
    Foreign {
        is: |name, lines| {
            has_extension(name, &["c", "h", "go", "rs", "js"])
                || lines.first().is_some_and(|line| line.starts_with("#include"))
        },
        what: "is a program's source; name a file with the commands that the program gives",
    },
    Foreign {
        is: |name, lines| {
            name.ends_with("Dockerfile") || lines.first().is_some_and(|line| line.starts_with("FROM "))
        },
        what: "is a recipe for an image; name a file with the commands that configure the link alone",
    },
];

/// What a file is that is recognised and not read, and what to do. `lines` are trimmed, without comments.
pub(crate) fn recognised(name: &str, lines: &[&str]) -> Option<&'static str> {
    FOREIGN.iter().find(|format| (format.is)(name, lines)).map(|format| format.what)
}

fn any(lines: &[&str], is: impl Fn(&str) -> bool) -> bool {
    lines.iter().any(|line| is(line))
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn is_key(line: &str, key: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| name.trim() == key)
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_recognised() {
        let rows = [
            ("wan.network", "[Match]\nName=eth0\n[Network]\nDHCP=yes\n", Some("systemd-networkd")),
            (
                "x",
                "[Match]\nName = eth0\n[Network]\nDHCP=yes\n[HierarchyTokenBucket]\n",
                Some("systemd-networkd"),
            ),
            ("shape.service", "[Unit]\nDescription=x\n", Some("unit of systemd")),
            ("x", "[Unit]\nA=b\n[Service]\nExecStart=/usr/bin/tc qdisc\n", Some("unit of systemd")),
            ("x", "[connection]\nid=wan\nuuid=1-2\n[tc]\nqdisc.root=fq_codel\n", Some("NetworkManager")),
            ("x", "auto eth0\niface eth0 inet dhcp\nup tc qdisc add dev eth0 root cake\n", Some("ifupdown")),
            ("x", "set traffic-policy shaper WAN bandwidth 10mbit\n", Some("VyOS")),
            ("x", "qos {\npolicy {\n", Some("VyOS")),
            ("x", "/queue simple\nadd max-limit=1M/1M name=a target=10.0.0.2\n", Some("RouterOS")),
            ("x", "policy-map WAN\nclass VOICE\npriority 128\n", Some("Cisco")),
            ("x", "altq on em0 cbq bandwidth 1Mb queue { a, b }\n", Some("ALTQ")),
            ("x", "ipfw pipe 1 config bw 1Mbit/s\n", Some("dummynet")),
            ("x", "apiVersion: v1\nkind: Pod\nmetadata:\n", Some("YAML")),
            ("x", "config interface wan\noption classgroup \"Default\"\noption enabled 1\n", Some("UCI")),
            ("x", "import subprocess\nsubprocess.call(['tc', 'qdisc'])\n", Some("Python")),
            (
                "x",
                "uci set sqm.eth1=queue\nuci commit sqm\n/etc/init.d/sqm restart\n",
                Some("/etc/config/sqm"),
            ),
            ("x", "uci set network.lan.mtu=1400\ntc qdisc add dev eth0 root cake\n", None),
            ("x", "mininet> h1 tc qdisc show\nmininet> h1 ping -c1 h2\n", Some("mininet")),
            ("x.c", "int main() {\n", Some("source")),
            ("Dockerfile", "FROM debian\nRUN tc qdisc add dev eth0 root fq\n", Some("image")),
            // What is read, or is a script.
            ("x", "set -e\ntc qdisc add dev eth0 root cake\n", None),
            ("x.sh", "DEV=eth0\ntc qdisc add dev $DEV root handle 1: htb\nexit 0\n", None),
            (
                "x",
                "qdisc add dev eth0 root cake\nclass add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n",
                None,
            ),
            ("x", "[link]\ndevice = \"eth0\"\n", None),
            ("x", "interface eth0 world output rate 1mbit\nclass voip\nmatch udp port 5060\n", None),
            ("x", "flush ruleset\ntable ip q {\n}\n", None),
        ];
        for (name, text, expected) in rows {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let found = recognised(name, &lines);
            match expected {
                Some(word) => assert!(found.is_some_and(|what| what.contains(word)), "{text}: {found:?}"),
                None => assert_eq!(found, None, "{text}"),
            }
        }
    }
}
