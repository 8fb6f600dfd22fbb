//! Long options may be abbreviated as long as they are unambiguous (getopt_long(3)): `--to` of SNAT is
//! `--to-source`. Which options there are depends on the extensions that were named before.

use super::Reader;
use tidegate_policy::netfilter::Condition;

/// Options that are always there; those of one group are one option.
const ALWAYS: &[&[&str]] = &[
    &["append"],
    &["delete"],
    &["check"],
    &["insert"],
    &["replace"],
    &["list"],
    &["list-rules"],
    &["flush"],
    &["zero"],
    &["new-chain"],
    &["delete-chain"],
    &["rename-chain"],
    &["policy"],
    &["source", "src"],
    &["destination", "dst"],
    &["protocol"],
    &["in-interface"],
    &["jump"],
    &["table"],
    &["match"],
    &["numeric"],
    &["out-interface"],
    &["verbose"],
    &["wait"],
    &["wait-interval"],
    &["exact"],
    &["fragments"],
    &["version"],
    &["help"],
    &["line-numbers"],
    &["modprobe"],
    &["set-counters"],
    &["goto"],
    &["ipv4"],
    &["ipv6"],
];

const PORTS: &[&[&str]] = &[&["source-port", "sport"], &["destination-port", "dport"]];

/// The options of a match.
fn of_match(name: &str) -> &'static [&'static [&'static str]] {
    match name {
        "tcp" => &[
            &["source-port", "sport"],
            &["destination-port", "dport"],
            &["syn"],
            &["tcp-flags"],
            &["tcp-option"],
        ],
        "udp" => PORTS,
        "icmp" => &[&["icmp-type"]],
        "icmp6" | "icmpv6" => &[&["icmpv6-type"]],
        "multiport" => &[&["source-ports", "sports"], &["destination-ports", "dports"], &["ports"]],
        "mark" | "connmark" => &[&["mark"]],
        "connbytes" => &[&["connbytes"], &["connbytes-dir"], &["connbytes-mode"]],
        "conntrack" => &[
            &["ctstate"],
            &["ctproto"],
            &["ctorigsrc"],
            &["ctorigdst"],
            &["ctreplsrc"],
            &["ctrepldst"],
            &["ctorigsrcport"],
            &["ctorigdstport"],
            &["ctreplsrcport"],
            &["ctrepldstport"],
            &["ctstatus"],
            &["ctexpire"],
            &["ctdir"],
        ],
        "state" => &[&["state"]],
        "length" => &[&["length"]],
        "dscp" => &[&["dscp"], &["dscp-class"]],
        "tos" => &[&["tos"]],
        "comment" => &[&["comment"]],
        _ => &[],
    }
}

/// The options of a target.
fn of_target(name: &str) -> &'static [&'static [&'static str]] {
    match name {
        "MARK" => &[&["set-mark"], &["set-xmark"], &["and-mark"], &["or-mark"], &["xor-mark"]],
        "CONNMARK" => &[
            &["set-mark"],
            &["set-xmark"],
            &["and-mark"],
            &["or-mark"],
            &["xor-mark"],
            &["save-mark"],
            &["restore-mark"],
            &["left-shift-mark"],
            &["right-shift-mark"],
            &["ctmask"],
            &["nfmask"],
            &["mask"],
        ],
        "TCPMSS" => &[&["set-mss"], &["clamp-mss-to-pmtu"]],
        "REJECT" => &[&["reject-with"]],
        "LOG" => &[
            &["log-level"],
            &["log-prefix"],
            &["log-tcp-sequence"],
            &["log-tcp-options"],
            &["log-ip-options"],
            &["log-uid"],
            &["log-macdecode"],
        ],
        "CT" => &[
            &["notrack"],
            &["helper"],
            &["ctevents"],
            &["expevents"],
            &["zone"],
            &["zone-orig"],
            &["zone-reply"],
            &["timeout"],
        ],
        "SNAT" => &[&["to-source"], &["random"], &["random-fully"], &["persistent"]],
        "DNAT" => &[&["to-destination"], &["random"], &["persistent"]],
        "MASQUERADE" => &[&["to-ports"], &["random"], &["random-fully"]],
        "REDIRECT" => &[&["to-ports"], &["random"]],
        "CLASSIFY" => &[&["set-class"]],
        "DSCP" => &[&["set-dscp"], &["set-dscp-class"]],
        "TOS" => &[&["set-tos"], &["and-tos"], &["or-tos"], &["xor-tos"]],
        _ => &[],
    }
}

/// The whole name that an abbreviation has among some options: `None`, if it is the name of one itself, of
/// none, or of several.
fn whole(word: &str, options: &[&'static [&'static str]]) -> Option<&'static str> {
    if options.iter().any(|names| names.contains(&word)) {
        return None;
    }
    let fitting = |names: &&&'static [&'static str]| names.iter().any(|name| name.starts_with(word));
    let mut found = options.iter().filter(fitting);
    let names = found.next()?;
    // Two extensions may have the same option.
    found.all(|other| other == names).then(|| names[0])
}

impl Reader<'_> {
    /// A long option by its whole name; others as they are.
    pub(super) fn unabbreviated(&self, name: &str) -> String {
        let Some(word) = name.strip_prefix("--").filter(|word| !word.is_empty()) else {
            return name.to_owned();
        };
        let mut options: Vec<&'static [&'static str]> = ALWAYS.to_vec();
        options.extend(self.loaded.iter().flat_map(|name| of_match(name)));
        options.extend(self.target_name.iter().flat_map(|name| of_target(name)));
        let is_known = |options: &[&[&str]]| options.iter().any(|names| names.contains(&word));
        if is_known(&options) {
            return name.to_owned();
        }
        let found = whole(word, &options).or_else(|| {
            // The match of the protocol is loaded once an option is not understood without it.
            options.extend(self.of_protocol());
            whole(word, &options)
        });
        found.map_or_else(|| name.to_owned(), |whole| format!("--{whole}"))
    }

    fn of_protocol(&self) -> &'static [&'static [&'static str]] {
        let protocol = self.basics[4].as_ref().filter(|found| !found.not).map(|found| &found.what);
        match protocol {
            Some(Condition::Protocol(6)) => of_match("tcp"),
            Some(Condition::Protocol(17 | 33 | 132)) => PORTS,
            Some(Condition::Protocol(1)) => of_match("icmp"),
            Some(Condition::Protocol(58)) => of_match("icmp6"),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{IptCommand, parse};

    fn read(line: &str) -> Result<IptCommand, (u8, String)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse("iptables", &words)
            .map(|read| read.command)
            .map_err(|refused| (refused.code, refused.stderr.lines().next().unwrap_or_default().to_owned()))
    }

    /// As iptables 1.8.9 (nf_tables) of Debian 12 has them, which was asked.
    #[test]
    fn abbreviations_are_their_options() {
        for (short, long) in [
            (
                "-t nat -A POSTROUTING -j SNAT --to 203.0.113.5",
                "-t nat -A POSTROUTING -j SNAT --to-source 203.0.113.5",
            ),
            (
                "-t nat -A PREROUTING -p tcp --dp 80 -j DNAT --to 203.0.113.5",
                "-t nat -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 203.0.113.5",
            ),
            (
                "-t nat -A PREROUTING -p tcp --dp 80 -j REDIRECT --to-port 81",
                "-t nat -A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 81",
            ),
            (
                "-t mangle -A POSTROUTING -p tcp -m multiport --dport 80,443 -j MARK --set-m 1",
                "-t mangle -A POSTROUTING -p tcp -m multiport --dports 80,443 -j MARK --set-mark 1",
            ),
            (
                "-t mangle -A POSTROUTING --dest 192.0.2.4 -j CONNMARK --save",
                "-t mangle -A POSTROUTING -d 192.0.2.4 -j CONNMARK --save-mark",
            ),
            (
                "-t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss",
                "-t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            ),
            (
                "-t mangle -A POSTROUTING -p tcp --des 192.0.2.4 --destination-p 1 -j MARK --set-mark 1",
                "-t mangle -A POSTROUTING -p tcp -d 192.0.2.4 --dport 1 -j MARK --set-mark 1",
            ),
            (
                "--tab mangle --app POSTROUTING --out eth0 --prot tcp --jump MARK --set-mark=3",
                "-t mangle -A POSTROUTING -o eth0 -p tcp -j MARK --set-mark 3",
            ),
            (
                "-t mangle -A POSTROUTING -m length --len 0:100 -m comment --com hi -j MARK --or 1",
                "-t mangle -A POSTROUTING -m length --length 0:100 -m comment --comment hi -j MARK --or-mark 1",
            ),
        ] {
            assert_eq!(read(short), read(long), "{short}");
            assert!(read(long).is_ok(), "{long}: {:?}", read(long));
        }
    }

    #[test]
    fn what_is_ambiguous_or_of_no_extension_is_refused() {
        let unknown = |name: &str| (2, format!("iptables v1.8.9 (nf_tables): unknown option \"{name}\""));
        for (line, name) in [
            ("-t mangle -A POSTROUTING -j DSCP --set-d 1", "--set-d"),
            ("-t mangle -A POSTROUTING --d 192.0.2.4 -j MARK --set-mark 1", "--d"),
            ("-t mangle -A POSTROUTING --s 192.0.2.4 -j MARK --set-mark 1", "--s"),
            ("-t mangle -A POSTROUTING -p tcp -m multiport --d 192.0.2.4 -j MARK --set-mark 1", "--d"),
            ("-t mangle -A POSTROUTING -j MARK --set 1", "--set"),
            ("-t mangle -A POSTROUTING -m conntrack --cts NEW -j MARK --set-mark 1", "--cts"),
            ("-t nat -A POSTROUTING -j SNAT --zzz 1", "--zzz"),
        ] {
            assert_eq!(read(line), Err(unknown(name)), "{line}");
        }
    }

    /// The same iptables, asked.
    #[test]
    fn masks_families_and_ports_of_udplite_are_refused_as_there() {
        let ours = |what: &str| format!("iptables v1.8.9 (nf_tables): {what}");
        let once = |option: &str| ours(&format!("CONNMARK: option \"{option}\" can only be used once."));
        let masks = "-t mangle -A PREROUTING -j CONNMARK";
        let rule = "-t mangle -A FORWARD";
        let usage = "Try `iptables -h' or 'iptables --help' for more information.";
        let together =
            |one: &str| ours(&format!("CONNMARK: option \"{one}\" cannot be used together with \"--mask\"."));
        for (line, what) in [
            (format!("{masks} --restore-mark --mask 0xff --nfmask 0xff"), together("--nfmask")),
            (format!("{masks} --save-mark --mask 0xff --ctmask 0xff"), together("--ctmask")),
            (format!("{masks} --restore-mark --nfmask 0xff --nfmask 0xf"), once("--nfmask")),
            (
                format!("{rule} -p udplite --dport 53 -j MARK --set-mark 1"),
                ours("unknown option \"--dport\""),
            ),
            (format!("-6 {rule} -j MARK --set-mark 1"), usage.to_owned()),
            (format!("{rule} -j MARK --set-mark 1 --ipv6"), usage.to_owned()),
        ] {
            assert_eq!(read(&line), Err((2, what)), "{line}");
        }
        for line in [
            format!("{masks} --restore-mark --nfmask 0xff --ctmask 0xf"),
            format!("{rule} -p dccp --dport 53 -j MARK --set-mark 1"),
            format!("{rule} -p udplite -m multiport --dports 53 -j MARK --set-mark 1"),
            format!("-4 {rule} -j MARK --set-mark 1"),
        ] {
            assert!(read(&line).is_ok(), "{line}: {:?}", read(&line));
        }
        let text =
            "*mangle\n-6 -A FORWARD -j MARK --set-mark 1\n-A FORWARD -4 -j MARK --set-mark 2\nCOMMIT\n";
        let lines = |tool: &str| {
            let restored = super::super::super::restore(tool, &[], text).expect("a file of rules");
            restored.tables[0].lines.iter().map(|(line, _)| *line).collect::<Vec<_>>()
        };
        assert_eq!((lines("iptables-restore"), lines("ip6tables-restore")), (vec![3], vec![2]));
    }

    #[test]
    fn negations_behind_the_option_and_devices_of_the_other_way_are_refused() {
        let ours = |what: &str| format!("iptables v1.8.9 (nf_tables): {what}");
        for (line, what) in [
            ("-d ! 192.168.0.0/16", "Bad argument `192.168.0.0/16'".to_owned()),
            ("-o ! eth0", "Bad argument `eth0'".to_owned()),
            ("-p ! tcp", ours("unknown protocol \"!\" specified")),
            ("-p tcp --dport ! 80", ours("invalid port/service `!' specified")),
            ("-i eth0", ours("Can't use -i with POSTROUTING")),
            ("-i +", ours("Can't use -i with POSTROUTING")),
        ] {
            let line = format!("-t mangle -A POSTROUTING {line} -j MARK --or-mark 2");
            assert_eq!(read(&line), Err((2, what)), "{line}");
        }
        for (chain, flag, is_so) in
            [("PREROUTING", "-o", true), ("INPUT", "-o", true), ("OUTPUT", "-i", true), ("mine", "-i", false)]
        {
            for verb in ["-A", "-D", "-C", "-I"] {
                let line = format!("-t mangle {verb} {chain} {flag} eth0 -j MARK --set-mark 1");
                assert_eq!(read(&line).is_err(), is_so, "{line}");
            }
        }
    }
}
