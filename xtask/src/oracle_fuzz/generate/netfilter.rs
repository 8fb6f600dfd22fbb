//! Routed packets: rules of iptables before the queues, and conversations with both sides.

use super::World;
use super::filters::PORTS;
use crate::oracle_fuzz::case::Row;

/// Matches that anything may be requested.
const MATCHES: &[&str] = &[
    "",
    "-p tcp",
    "-p udp",
    "! -p tcp",
    "-p icmp",
    "-p icmp --icmp-type echo-request",
    "-s 10.0.0.0/30",
    "! -s 10.0.0.2",
    "-d 10.9.0.1",
    "-d 10.0.0.0/29",
    "-m length --length 100:600",
    "-m length ! --length 0:400",
    "-m dscp --dscp 0",
    "-m dscp ! --dscp-class EF",
    "-m tos --tos 0x10/0x1e",
    "-m tos ! --tos 0x08/0x3f",
    "-m mark --mark 0",
    "-m mark --mark 0x2/0x3",
    "-m mark ! --mark 1",
    "-m connmark --mark 0",
    "-m connmark ! --mark 2/0x6",
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate ESTABLISHED,RELATED",
    "-m conntrack ! --ctstate INVALID",
    "-m conntrack --ctstate UNTRACKED",
    "-m state --state INVALID",
    "-m connbytes --connbytes 3 --connbytes-mode packets --connbytes-dir both",
    "-m connbytes --connbytes :4000 --connbytes-mode bytes --connbytes-dir original",
    "-m connbytes ! --connbytes 1: --connbytes-mode packets --connbytes-dir reply",
    "-m connbytes --connbytes 200:900 --connbytes-mode avgpkt --connbytes-dir both",
    "-p tcp --syn",
    "-p tcp ! --syn",
    "-p tcp --tcp-flags ALL ACK",
    "-p tcp --tcp-flags FIN,SYN,RST NONE",
    "-m comment --comment any",
];
/// What is done, in any chain of mangle.
const TARGETS: &[&str] = &[
    "-j CONNMARK --restore-mark",
    "-j CONNMARK --save-mark",
    "-j CONNMARK --save-mark --nfmask 0x3 --ctmask 0xf",
    "-j CONNMARK --restore-mark --nfmask 0x1 --ctmask 0x7",
    "-j CONNMARK --or-mark 4",
    "-j CONNMARK --set-mark 3",
    "-j CONNMARK --set-xmark 0x2/0x3",
    "-j MARK --or-mark 8",
    "-j MARK --and-mark 0x3",
    "-j MARK --xor-mark 1",
    "-j MARK --set-mark 2/0x6",
    "-j DSCP --set-dscp 10",
    "-j DSCP --set-dscp-class EF",
    "-j TOS --set-tos 0x10",
    "-j TOS --or-tos 0x04",
    "-j RETURN",
    "-j ACCEPT",
    "",
];

impl World {
    /// Rules for packets that are routed.
    pub(super) fn rules(&mut self) {
        let own = self.rng.chance(60);
        if own {
            self.script.push("iptables -t mangle -N own".to_owned());
        }
        for _ in 0..self.rng.range(2, 14) {
            let chains = ["PREROUTING", "FORWARD", "POSTROUTING", "own"];
            let chain = chains[self.rng.below(if own { 4 } else { 3 }) as usize];
            let condition = self.packet();
            let target = self.target(chain, own);
            self.rule("mangle", chain, &condition, &target);
        }
        if self.rng.chance(20) {
            let condition = self.packet();
            self.rule("filter", "FORWARD", &condition, "-j DROP");
        }
    }

    fn rule(&mut self, table: &str, chain: &str, condition: &str, target: &str) {
        let words = ["iptables", "-t", table, "-A", chain, condition, target];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        self.script.push(words.join(" "));
    }

    fn packet(&mut self) -> String {
        if self.rng.chance(35) { self.port() } else { (*self.rng.pick(MATCHES)).to_owned() }
    }

    fn port(&mut self) -> String {
        let (one, other) = (*self.rng.pick(PORTS), *self.rng.pick(PORTS));
        let protocol = *self.rng.pick(&["tcp", "udp"]);
        match self.rng.below(6) {
            0 => format!("-p {protocol} --dport {one}"),
            1 => format!("-p {protocol} --sport {one}"),
            2 => format!("-p {protocol} -m multiport --dports {one},{other},5000:9000"),
            3 => format!("-p {protocol} -m multiport --ports {one},{other}"),
            4 => format!("-p {protocol} ! --dport 1000:"),
            _ => format!("-p tcp --tcp-flags SYN SYN --dport {one}"),
        }
    }

    fn target(&mut self, chain: &str, own: bool) -> String {
        match self.rng.below(10) {
            0..3 => format!("-j MARK --set-mark {}", self.rng.range(0, 6)),
            3 if own && chain != "own" => "-j own".to_owned(),
            4 if own && chain != "own" => "-g own".to_owned(),
            5 if matches!(chain, "FORWARD" | "POSTROUTING") => match self.any_class() {
                Some(class) => format!("-j CLASSIFY --set-class {}", class.id),
                None => "-j CLASSIFY --set-class 0:3".to_owned(),
            },
            6 if self.rng.chance(10) => "-j DROP".to_owned(),
            _ => (*self.rng.pick(TARGETS)).to_owned(),
        }
    }

    /// Makes conversations of the flows: answers, flags, and no marks from outside.
    pub(super) fn converse(&mut self, rows: &mut [Row]) {
        let flagged = self.rng.chance(50);
        for row in rows.iter_mut().filter(|row| row.command().is_none()) {
            let mut fields: Vec<String> = row.rest.split(',').map(str::to_owned).collect();
            let [_, size, src, dst, proto, sport, dport, _, mark, prio, flags, seq, ack] =
                fields.as_mut_slice()
            else {
                continue;
            };
            (*mark, *prio) = ("0".to_owned(), "0".to_owned());
            if proto == "tcp" && flagged && self.rng.chance(40) {
                // Without payload, as such segments are; its sequence numbers would matter otherwise.
                *size = "54".to_owned();
                *flags = (*self.rng.pick(&["S", "SA", "A", "FA", "R", "PA"])).to_owned();
            }
            if self.rng.chance(40) {
                std::mem::swap(src, dst);
                std::mem::swap(seq, ack);
                if proto != "icmp" {
                    std::mem::swap(sport, dport);
                }
            }
            row.rest = fields.join(",");
        }
    }
}
