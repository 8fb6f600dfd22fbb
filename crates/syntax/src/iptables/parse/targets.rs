//! Options of targets: `-j MARK --set-mark 1` and the like.

use super::super::values;
use super::Reader;
use crate::Refusal;
use crate::number::u32_in;
use crate::units::parse_classid;
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, NetfilterTarget, Translate, Translator};

impl<'a> Reader<'a> {
    /// False: no option of the target that was named.
    pub(super) fn target_option(&mut self, name: &str, joined: Option<&'a str>) -> Result<bool, Refusal> {
        let Some(target) = self.target_name.clone() else { return Ok(false) };
        let target = target.as_str();
        match (target, name) {
            (
                "MARK" | "CONNMARK",
                "--set-mark" | "--set-xmark" | "--and-mark" | "--or-mark" | "--xor-mark",
            ) => {
                let text = self.joined_or_next(name, joined)?;
                let (value, mask) = values::mark(text).ok_or_else(|| self.bad(target, name, text))?;
                if mask.is_some() && !name.starts_with("--set") {
                    return Err(self.bad(target, name, text));
                }
                let (value, mask) = match name {
                    "--set-mark" => (value, mask.map_or(u32::MAX, |mask| mask | value)),
                    "--set-xmark" => (value, mask.unwrap_or(u32::MAX)),
                    "--and-mark" => (0, !value),
                    "--or-mark" => (value, value),
                    _ => (value, 0),
                };
                let of_packet = target == "MARK";
                self.set(if of_packet {
                    NetfilterTarget::Mark { value, mask }
                } else {
                    NetfilterTarget::Connmark(ConnmarkTarget::Set { value, mask })
                })
            }
            ("CONNMARK", "--save-mark") => self
                .set(NetfilterTarget::Connmark(ConnmarkTarget::Save { nfmask: u32::MAX, ctmask: u32::MAX })),
            ("CONNMARK", "--restore-mark") => self.set(NetfilterTarget::Connmark(ConnmarkTarget::Restore {
                nfmask: u32::MAX,
                ctmask: u32::MAX,
            })),
            ("CONNMARK", "--mask" | "--nfmask" | "--ctmask") => {
                let text = self.joined_or_next(name, joined)?;
                let bits = u32_in(text, 0).ok_or_else(|| self.bad("CONNMARK", name, text))?;
                self.masks(name, bits)
            }
            ("TCPMSS", "--clamp-mss-to-pmtu") => self.set(NetfilterTarget::Tcpmss(None)),
            ("TCPMSS", "--set-mss") => {
                let text = self.joined_or_next(name, joined)?;
                let mss = text.parse().map_err(|_| self.bad("TCPMSS", name, text))?;
                self.set(NetfilterTarget::Tcpmss(Some(mss)))
            }
            ("REJECT", "--reject-with") => {
                let text = self.joined_or_next(name, joined)?;
                let known = values::REJECTIONS[usize::from(self.ipv6)].iter().find(|word| **word == text);
                let word = known.ok_or_else(|| {
                    let list = values::REJECTIONS[usize::from(self.ipv6)].join(", ");
                    self.complain(format!("unknown reject type \"{text}\""))
                        .at(self.at - 1)
                        .remedy(format!("The answers are {list}."))
                })?;
                self.target = Some(NetfilterTarget::Reject((*word).into()));
                Ok(())
            }
            ("LOG", "--log-prefix" | "--log-level") => {
                let text = self.joined_or_next(name, joined)?;
                let level_said = values::log_level(text);
                let bad = self.bad("LOG", name, text);
                let Some(NetfilterTarget::Log { level, prefix, .. }) = &mut self.target else {
                    return Ok(false);
                };
                if name == "--log-prefix" {
                    *prefix = text.into();
                } else {
                    *level = level_said.ok_or(bad)?;
                }
                Ok(())
            }
            ("LOG", "--log-tcp-sequence" | "--log-tcp-options" | "--log-ip-options" | "--log-uid") => {
                let bit = values::LOG_FLAGS.iter().position(|flag| name.ends_with(flag)).unwrap_or(0);
                if let Some(NetfilterTarget::Log { flags, .. }) = &mut self.target {
                    *flags |= 1 << bit;
                }
                Ok(())
            }
            ("CT", "--notrack") => self.set(NetfilterTarget::Notrack(true)),
            ("SNAT", "--to-source") => self.translated(Translator::Source, name, joined),
            ("DNAT", "--to-destination") => self.translated(Translator::Destination, name, joined),
            ("MASQUERADE", "--to-ports") => self.translated(Translator::Masquerade, name, joined),
            ("REDIRECT", "--to-ports") => self.translated(Translator::Redirect, name, joined),
            ("CLASSIFY", "--set-class") => {
                let text = self.joined_or_next(name, joined)?;
                let class = parse_classid(text).filter(|_| text.contains(':'));
                let class = class.ok_or_else(|| self.bad("CLASSIFY", name, text))?;
                self.set(NetfilterTarget::Classify(class))
            }
            ("DSCP", "--set-dscp" | "--set-dscp-class") => {
                let text = self.joined_or_next(name, joined)?;
                let value = if name == "--set-dscp" { values::dscp(text) } else { values::dscp_class(text) };
                let value = value.ok_or_else(|| self.bad("DSCP", name, text))?;
                self.set(NetfilterTarget::Dscp(value))
            }
            ("TOS", "--set-tos" | "--and-tos" | "--or-tos" | "--xor-tos") => {
                let text = self.joined_or_next(name, joined)?;
                let (value, mask) = values::tos(text).ok_or_else(|| self.bad("TOS", name, text))?;
                self.set(match name {
                    "--set-tos" => NetfilterTarget::Tos(value, mask),
                    "--and-tos" => NetfilterTarget::Tos(0, !value),
                    "--or-tos" => NetfilterTarget::Tos(value, value),
                    _ => NetfilterTarget::Tos(value, 0),
                })
            }
            _ => return Ok(false),
        }
        .map(|()| true)
    }

    /// The value of `--to-source`, `--to-destination` or `--to-ports`.
    fn translated(&mut self, how: Translator, name: &str, joined: Option<&'a str>) -> Result<(), Refusal> {
        let text = self.joined_or_next(name, joined)?;
        let ports_only = matches!(how, Translator::Masquerade | Translator::Redirect);
        let to = if ports_only { values::to_ports(text) } else { values::translation(text, self.ipv6) };
        let mut to = to.map_err(|why| {
            self.complain(why).at(self.at - 1).remedy(match ports_only {
                true => "Write a port, or FIRST-LAST.",
                false => "Write an address or FIRST-LAST, with :PORT or :FIRST-LAST behind it if wanted.",
            })
        })?;
        // A protocol that is negated counts too, and so does ICMP.
        let protocol = self.basics[4].as_ref().map(|m| &m.what);
        if to.ports.is_some() && !matches!(protocol, Some(Condition::Protocol(1 | 6 | 17 | 33 | 132))) {
            return Err(self
                .complain("Need TCP, UDP, SCTP or DCCP with port specification")
                .at(self.at - 1)
                .remedy("Write -p tcp or -p udp before it."));
        }
        if let Some(NetfilterTarget::Translate(Translate { to: before, .. })) = self.target {
            to.choice = before.choice;
        }
        self.target = Some(NetfilterTarget::Translate(Translate { how, to }));
        Ok(())
    }

    /// The masks that may follow `--save-mark` and `--restore-mark`.
    fn masks(&mut self, name: &str, bits: u32) -> Result<(), Refusal> {
        let Some(NetfilterTarget::Connmark(
            ConnmarkTarget::Save { nfmask, ctmask } | ConnmarkTarget::Restore { nfmask, ctmask },
        )) = &mut self.target
        else {
            return Err(self
                .complain(format!("CONNMARK: {name} goes with --save-mark or --restore-mark"))
                .at(self.at - 2)
                .remedy("Write --save-mark or --restore-mark before it."));
        };
        let option = ["--mask", "--nfmask", "--ctmask"].into_iter().find(|known| *known == name);
        let before =
            self.masks.iter().find(|before| **before == name || [**before, name].contains(&"--mask"));
        if let Some(before) = before {
            let what = match *before == name {
                true => "can only be used once".to_owned(),
                false => format!("cannot be used together with \"{before}\""),
            };
            return Err(self
                .complain(format!("CONNMARK: option \"{name}\" {what}.\n"))
                .at(self.at - 2)
                .remedy("Write --mask alone, or --nfmask and --ctmask, each once."));
        }
        self.masks.extend(option);
        if name != "--ctmask" {
            *nfmask = bits;
        }
        if name != "--nfmask" {
            *ctmask = bits;
        }
        Ok(())
    }
}
