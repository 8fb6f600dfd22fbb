//! Options of matches: `-m multiport --dports 80,443` and the like.

use super::super::refused::later;
use super::super::values;
use super::Reader;
use crate::Refusal;
use tidegate_policy::netfilter::{Condition, Connbytes, Match};

impl<'a> Reader<'a> {
    pub(super) fn match_option(
        &mut self,
        name: &str,
        joined: Option<&'a str>,
        not: bool,
    ) -> Result<(), Refusal> {
        let needs = |reader: &Self, extension: &str, fits: bool| {
            if fits || reader.loaded.iter().any(|loaded| loaded == extension) {
                return Ok(());
            }
            Err(reader.complain(format!("unknown option \"{name}\"")).at(reader.at - 1).remedy(format!(
                "{name} is understood after -m {extension} (ports: after -p tcp or -p udp)."
            )))
        };
        let with_ports = matches!(
            self.basics[4].as_ref().map(|m| &m.what),
            Some(Condition::Protocol(6 | 17 | 33 | 132 | 136))
        );
        // iptables 1.8.9 has no match for udplite.
        let udplite = matches!(self.basics[4].as_ref().map(|m| &m.what), Some(Condition::Protocol(136)));
        let tcp = matches!(self.basics[4].as_ref().map(|m| &m.what), Some(Condition::Protocol(6)));
        match name {
            "--sport" | "--source-port" | "--dport" | "--destination-port" if udplite => {
                let list = if name.starts_with("--s") { "--sports" } else { "--dports" };
                Err(self
                    .complain(format!("unknown option \"{name}\""))
                    .at(self.at - 1)
                    .remedy(format!("iptables 1.8.9 has no match of udplite's own: -m multiport {list}.")))
            }
            "--sport" | "--source-port" | "--dport" | "--destination-port" => {
                needs(self, "tcp", with_ports || self.loaded.iter().any(|loaded| loaded == "udp"))?;
                let (text, not) = self.inverted(name, joined, not)?;
                let range = values::port_range(text).ok_or_else(|| {
                    self.complain(format!("invalid port/service `{text}' specified")).at(self.at - 1)
                })?;
                let source = name.starts_with("--s");
                let condition =
                    if source { Condition::SourcePort(range) } else { Condition::DestinationPort(range) };
                let again =
                    |one: &Match| std::mem::discriminant(&one.what) == std::mem::discriminant(&condition);
                if self.matches.iter().any(again) {
                    return Err(self.once(source));
                }
                self.matches.push(Match { not, what: condition });
                Ok(())
            }
            "--sports" | "--source-ports" | "--dports" | "--destination-ports" | "--ports" => {
                needs(self, "multiport", false)?;
                if !with_ports {
                    return Err(self.complain(
                        "multiport needs `-p tcp', `-p udp', `-p udplite', `-p sctp' or `-p dccp'",
                    ));
                }
                let (text, not) = self.inverted(name, joined, not)?;
                let ranges = values::port_list(text).map_err(|why| {
                    let remedy = if text.contains('-') {
                        "A range of ports is written with a colon: 1000:2000."
                    } else {
                        "A list holds at most 15 ports, separated by commas, a range (1000:2000) counting twice."
                    };
                    self.complain(why).at(self.at - 1).remedy(remedy)
                })?;
                let what = match name {
                    "--ports" => Condition::Ports(ranges),
                    _ if name.starts_with("--s") => Condition::SourcePorts(ranges),
                    _ => Condition::DestinationPorts(ranges),
                };
                self.matches.push(Match { not, what });
                Ok(())
            }
            "--syn" => {
                needs(self, "tcp", tcp)?;
                self.matches.push(Match { not, what: Condition::TcpFlags(0x17, 0x02) });
                Ok(())
            }
            "--tcp-flags" => {
                needs(self, "tcp", tcp)?;
                let (mask, not) = self.inverted(name, joined, not)?;
                let wanted = self.value(name)?;
                let bits = |reader: &Self, text: &str| {
                    values::tcp_flags(text).ok_or_else(|| {
                        reader
                            .complain(format!("Unknown TCP flag `{text}'"))
                            .at(reader.at - 1)
                            .remedy("The flags are SYN, ACK, FIN, RST, URG, PSH, ALL and NONE, with commas.")
                    })
                };
                let (mask, wanted) = (bits(self, mask)?, bits(self, wanted)?);
                self.matches.push(Match { not, what: Condition::TcpFlags(mask, wanted) });
                Ok(())
            }
            "--mark" => {
                // Two extensions have the option: the one loaded last is meant.
                let of_connection =
                    self.loaded.iter().rfind(|l| l.ends_with("mark")).is_some_and(|l| l == "connmark");
                let sets = matches!(self.target_name.as_deref(), Some("MARK" | "CONNMARK"));
                needs(self, "mark", of_connection).map_err(|refusal| match sets {
                    true => refusal.remedy("--set-mark sets a mark; --mark matches one, after -m mark."),
                    false => refusal,
                })?;
                let extension = if of_connection { "connmark" } else { "mark" };
                let (text, not) = self.inverted(name, joined, not)?;
                let (value, mask) = values::mark(text).ok_or_else(|| self.bad(extension, name, text))?;
                let mask = mask.unwrap_or(u32::MAX);
                let what = if of_connection {
                    Condition::Connmark(value, mask)
                } else {
                    Condition::Mark(value, mask)
                };
                self.matches.push(Match { not, what });
                Ok(())
            }
            "--ctstate" | "--state" => {
                let extension = if name == "--state" { "state" } else { "conntrack" };
                needs(self, extension, false)?;
                let (text, not) = self.inverted(name, joined, not)?;
                let translated =
                    |word: &str| ["SNAT", "DNAT"].iter().any(|one| one.eq_ignore_ascii_case(word));
                if extension == "conntrack" && text.split(',').any(translated) {
                    return Err(later(format!("the state {text}"), self.at - 1));
                }
                let states = values::states(text).ok_or_else(|| {
                    self.complain(format!("{extension}: Bad state \"{text}\"")).at(self.at - 1).remedy(
                        "The states are NEW, ESTABLISHED, RELATED, INVALID and UNTRACKED, with commas.",
                    )
                })?;
                let what =
                    if name == "--state" { Condition::State(states) } else { Condition::Connstate(states) };
                self.matches.push(Match { not, what });
                Ok(())
            }
            "--connbytes" => {
                needs(self, "connbytes", false)?;
                let (text, not) = self.inverted(name, joined, not)?;
                let (from, to) = values::amount(text).ok_or_else(|| self.bad("connbytes", name, text))?;
                if from > to {
                    return Err(self.complain(format!("{from} should be less than {to}")).at(self.at - 1));
                }
                self.amount = Some((not, from, to));
                Ok(())
            }
            "--connbytes-mode" => {
                needs(self, "connbytes", false)?;
                let text = self.joined_or_next(name, joined)?;
                let mode = values::COUNT_MODES.iter().find(|(word, _)| *word == text);
                let unknown = || self.complain(format!("Unknown --connbytes-mode `{text}'")).at(self.at - 1);
                self.mode = Some(mode.ok_or_else(unknown)?.1);
                Ok(())
            }
            "--connbytes-dir" => {
                needs(self, "connbytes", false)?;
                let text = self.joined_or_next(name, joined)?;
                let direction = values::COUNT_DIRECTIONS.iter().find(|(word, _)| *word == text);
                let unknown = || self.complain(format!("Unknown --connbytes-dir `{text}'")).at(self.at - 1);
                self.direction = Some(direction.ok_or_else(unknown)?.1);
                Ok(())
            }
            "--icmp-type" | "--icmpv6-type" => {
                let protocol = self.basics[4].as_ref().map(|m| &m.what);
                let fits = matches!(protocol, Some(Condition::Protocol(1 | 58)));
                needs(self, if self.ipv6 { "icmp6" } else { "icmp" }, fits)?;
                let (text, not) = self.inverted(name, joined, not)?;
                let (kind, codes) = values::icmp_type(text, self.ipv6)
                    .ok_or_else(|| self.complain(format!("Invalid ICMP type `{text}'")).at(self.at - 1))?;
                self.matches.push(Match { not, what: Condition::IcmpType(kind, codes) });
                Ok(())
            }
            "--length" => {
                needs(self, "length", false)?;
                let (text, not) = self.inverted(name, joined, not)?;
                let (low, high) = values::length(text).ok_or_else(|| self.bad("length", name, text))?;
                self.matches.push(Match { not, what: Condition::Length(low, high) });
                Ok(())
            }
            "--dscp" | "--dscp-class" => {
                needs(self, "dscp", false)?;
                let (text, not) = self.inverted(name, joined, not)?;
                let value = if name == "--dscp" { values::dscp(text) } else { values::dscp_class(text) };
                let value = value.ok_or_else(|| self.bad("dscp", name, text))?;
                self.matches.push(Match { not, what: Condition::Dscp(value) });
                Ok(())
            }
            "--tos" => {
                needs(self, "tos", false)?;
                let (text, not) = self.inverted(name, joined, not)?;
                let (value, mask) = values::tos(text).ok_or_else(|| self.bad("tos", name, text))?;
                self.matches.push(Match { not, what: Condition::Tos(value, mask) });
                Ok(())
            }
            "--random" | "--persistent" | "--random-fully" if self.translates(name) => {
                self.choose(name);
                Ok(())
            }
            _ if self.is_later(name, tcp) => Err(later(format!("the option {name}"), self.at - 1)),
            _ => Err(self.complain(format!("unknown option \"{name}\"")).at(self.at - 1)),
        }
    }

    /// Options that the tool has, of extensions that are read here, and that are not built.
    fn is_later(&self, name: &str, tcp: bool) -> bool {
        const OF_CONNTRACK: [&str; 12] = [
            "--ctstatus",
            "--ctdir",
            "--ctproto",
            "--ctexpire",
            "--ctorigsrc",
            "--ctorigdst",
            "--ctreplsrc",
            "--ctrepldst",
            "--ctorigsrcport",
            "--ctorigdstport",
            "--ctreplsrcport",
            "--ctrepldstport",
        ];
        let tracks = self.loaded.iter().any(|loaded| loaded == "conntrack");
        tracks && OF_CONNTRACK.contains(&name) || tcp && name == "--tcp-option"
    }

    /// The refusal of a port that is given twice.
    fn once(&self, source: bool) -> Refusal {
        let option = if source { "--source-port" } else { "--destination-port" };
        let tcp = matches!(self.basics[4].as_ref().map(|m| &m.what), Some(Condition::Protocol(6)));
        let refusal = match tcp {
            true => self.complain(format!("Only one `{option}' allowed")),
            false => self.complain(format!("udp: option \"{option}\" can only be used once.\n")),
        };
        refusal.at(self.at - 1).remedy("Several ports: -m multiport --dports 80,443.")
    }

    /// The connbytes match, once all its options must have been read.
    pub(super) fn counted(&self) -> Result<Option<Match>, Refusal> {
        let parts = (self.amount, self.mode, self.direction);
        let missing = |name: &str| self.complain(format!("connbytes: option \"{name}\" must be specified\n"));
        match parts {
            (None, None, None) if !self.loaded.iter().any(|loaded| loaded == "connbytes") => Ok(None),
            (None, ..) => Err(missing("--connbytes")),
            (_, _, None) => Err(missing("--connbytes-dir")),
            (_, None, _) => Err(missing("--connbytes-mode")),
            (Some((not, from, to)), Some(mode), Some(direction)) => {
                Ok(Some(Match { not, what: Condition::Connbytes(Connbytes { from, to, mode, direction }) }))
            }
        }
    }
}
