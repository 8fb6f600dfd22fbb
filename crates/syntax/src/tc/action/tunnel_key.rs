//! `tunnel_key set src_ip … dst_ip … id …`, `tunnel_key unset`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::json::Json;
use crate::number::{u8_in, u16_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::prefix::dotted;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use std::net::{IpAddr, Ipv4Addr};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{
    Act, Action, Control, GeneveOption, TunnelFields, TunnelHow, TunnelKey, TunnelOptions,
};

/// `tunnel_key`.
pub(super) const ROW: Row = Row {
    name: "tunnel_key",
    form: "tunnel_key unset | set src_ip ADDRESS dst_ip ADDRESS [id N] [dst_port N] [tos N] [ttl N] \
    [csum|nocsum] [geneve_opts|vxlan_opts|erspan_opts OPTIONS] [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

const FORM: &str = "A tunnel's metadata are given so: tunnel_key set src_ip 192.0.2.1 dst_ip 192.0.2.2 id 5.";
/// In tc's order: an abbreviation goes to the first that fits.
const KEYS: [&str; 13] = [
    "unset",
    "set",
    "src_ip",
    "dst_ip",
    "id",
    "dst_port",
    "geneve_opts",
    "vxlan_opts",
    "erspan_opts",
    "tos",
    "ttl",
    "csum",
    "nocsum",
];

/// What was given so far.
#[derive(Default)]
struct Given {
    verb: Option<&'static str>,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    id: Option<u32>,
    port: Option<u16>,
    tos: u8,
    ttl: u8,
    no_checksum: bool,
    options: TunnelOptions,
}

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let mut given = Given::default();
    if words.peek().is_none() {
        words.need()?;
    }
    while let Some(word) = words.peek() {
        let Some(name) = KEYS.into_iter().find(|name| begins(word, name)) else { break };
        words.skip();
        take(&mut given, name, word, words)?;
    }
    let control = control_after(words)?.unwrap_or(Control::Pipe);
    let index = own_index(words, |_| "tunnel_key: Illegal \"index\"".into())?;
    let how = match given.verb {
        Some("set") => Some(TunnelHow::Set(fields(given)?)),
        Some(_) => Some(TunnelHow::Unset),
        None => None,
    };
    Ok(Action { index, ..Act::TunnelKey(TunnelKey { how, control }).into() })
}

fn take(given: &mut Given, name: &'static str, word: &str, words: &mut Words<'_>) -> Result<(), Failed> {
    match name {
        "set" | "unset" if given.verb.is_some() => {
            let line = format!("unexpected \"{word}\" - action already specified\nUsage: {}", ROW.form);
            return Err(Failed::say(line, FORM));
        }
        "set" | "unset" => given.verb = Some(name),
        "src_ip" => given.source = Some(address(words)?),
        "dst_ip" => given.destination = Some(address(words)?),
        "id" => given.id = Some(value(words, "id", |text| u32_in(text, 10))?),
        "dst_port" => {
            given.port = Some(value(words, "dst port", |text| u16_in(text, 10))?).filter(|port| *port > 0);
        }
        "tos" => given.tos = value(words, "tos", |text| u8_in(text, 0))?,
        "ttl" => given.ttl = value(words, "ttl", |text| u8_in(text, 0))?,
        "csum" => given.no_checksum = false,
        "nocsum" => given.no_checksum = true,
        "geneve_opts" => given.options = value(words, name, geneve)?,
        "vxlan_opts" => given.options = value(words, name, vxlan)?,
        _ => given.options = value(words, name, erspan)?,
    }
    Ok(())
}

fn value<T>(words: &mut Words<'_>, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Failed> {
    let text = words.need()?;
    read(text).ok_or_else(|| {
        Failed::say(format!("Illegal \"{name}\""), format!("\"{text}\" is no value for {name}."))
    })
}

/// An address. tc ends where it cannot read one.
fn address(words: &mut Words<'_>) -> Result<IpAddr, Failed> {
    let text = words.need()?;
    if matches!(text, "default" | "any" | "all") {
        let refused = Refusal::new(2, "Error: Failed to parse nested tunnel key attributes.");
        return Err(refused
            .then("We have an error talking to the kernel")
            .at(words.last())
            .remedy(FORM)
            .into());
    }
    let short = || dotted(text).map(|bits| IpAddr::V4(Ipv4Addr::from(bits)));
    text.parse().ok().or_else(short).ok_or_else(|| {
        let sentence = format!("Error: any valid address is expected rather than \"{text}\".");
        Refusal::new(1, sentence).at_once().at(words.last()).remedy(FORM).into()
    })
}

/// `CLASS:TYPE:DATA,…` in hexadecimal; what is missing is the kernel's to refuse.
fn geneve(text: &str) -> Option<TunnelOptions> {
    let all = text.split(',').filter(|one| !one.is_empty()).map(|one| {
        let mut parts = one.split(':');
        let mut option = GeneveOption::default();
        if let Some(class) = parts.next().filter(|class| !class.is_empty()) {
            option.class = u16_in(class, 16)?;
        }
        if let Some(kind) = parts.next().filter(|kind| !kind.is_empty()) {
            option.kind = u8_in(kind, 16)?;
        }
        option.data = bytes(parts.next().unwrap_or_default())?;
        parts.next().is_none().then_some(option)
    });
    Some(TunnelOptions::Geneve(all.collect::<Option<_>>()?))
}

/// Pairs of hexadecimal digits; an odd one at the end is left out.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    Some(digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The kernel keeps the group and two of the flags.
fn vxlan(text: &str) -> Option<TunnelOptions> {
    const KEPT: u32 = 0x0048_ffff;
    Some(TunnelOptions::Vxlan(u32_in(text, 0)? & KEPT))
}

/// `VERSION:INDEX:DIRECTION:HARDWARE`; version 1 has the index, version 2 the rest.
fn erspan(text: &str) -> Option<TunnelOptions> {
    let mut parts = text.split(':');
    let version = u8_in(parts.next()?, 0)?;
    let index = match parts.next() {
        Some(index) => u32_in(index, 0)?,
        None => 0,
    };
    let direction = match (parts.next(), parts.next()) {
        (Some(direction), Some(hardware)) => Some((u8_in(direction, 0)? & 1, u8_in(hardware, 0)? & 0x3f)),
        _ => None,
    };
    Some(match version {
        1 => TunnelOptions::Erspan { version, index, direction: None },
        _ => TunnelOptions::Erspan { version, index: 0, direction },
    })
}

fn fields(given: Given) -> Result<TunnelFields, Failed> {
    let Given { source: Some(source), destination: Some(destination), .. } = given else {
        return Err(Failed::say(format!("set needs tunnel_key parameters\nUsage: {}", ROW.form), FORM));
    };
    let Given { id, port, tos, ttl, no_checksum, options, .. } = given;
    Ok(TunnelFields { source, destination, id, port, tos, ttl, no_checksum, options })
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::TunnelKey(tunnel) = &dump.action.act else { return };
    let verb = if matches!(tunnel.how, Some(TunnelHow::Set(_))) { "set" } else { "unset" };
    entry.say(&format!("tunnel_key  {verb}"));
    entry.member("mode", Json::text(verb));
    if let Some(TunnelHow::Set(fields)) = &tunnel.how {
        show_fields(fields, entry);
    }
    entry.say(&format!(" {}", control_name(tunnel.control)));
    entry.member("control_action", type_of(tunnel.control));
}

fn show_fields(fields: &TunnelFields, entry: &mut Entry) {
    for (key, address) in [("src_ip", fields.source), ("dst_ip", fields.destination)] {
        entry.say(&format!("\n\t{key} {address}"));
        entry.member(key, Json::text(address.to_string()));
    }
    for (key, number) in [("key_id", fields.id), ("dst_port", fields.port.map(u32::from))] {
        if let Some(number) = number {
            entry.number(key, number, &format!("\n\t{key} {number}"));
        }
    }
    show_options(&fields.options, entry);
    let flag = if fields.no_checksum { "nocsum" } else { "csum" };
    entry.say(&format!("\n\t{flag}"));
    entry.member("flag", Json::text(flag));
    if fields.tos > 0 {
        entry.number("tos", fields.tos, &format!("\n\ttos {:#x}", fields.tos));
    }
    if fields.ttl > 0 {
        entry.number("ttl", fields.ttl, &format!("\n\tttl {}", fields.ttl));
    }
}

fn show_options(options: &TunnelOptions, entry: &mut Entry) {
    match options {
        TunnelOptions::None => {}
        TunnelOptions::Geneve(all) => {
            let text = all.iter().map(|option| {
                let data: String = option.data.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{:04x}:{:02x}:{data}", option.class, option.kind)
            });
            entry.say(&format!("\n\tgeneve_opts {}", text.collect::<Vec<_>>().join(",")));
            let object = |option: &GeneveOption| {
                let data = option.data.iter().map(Json::number).collect();
                Json::Object(vec![
                    ("class", Json::number(option.class)),
                    ("type", Json::number(option.kind)),
                    ("data", Json::List(data)),
                ])
            };
            entry.member("geneve_opts", Json::List(all.iter().map(object).collect()));
        }
        TunnelOptions::Vxlan(policy) => {
            entry.say(&format!("\n\tvxlan_opts {policy}"));
            entry.member("vxlan_opts", Json::List(vec![Json::Object(vec![("gbp", Json::number(policy))])]));
        }
        TunnelOptions::Erspan { version, index, direction } => {
            let (direction, hardware) = direction.unwrap_or_default();
            entry.say(&format!("\n\terspan_opts {version}:{index}:{direction}:{hardware}"));
            let object = vec![
                ("ver", Json::number(version)),
                ("index", Json::number(index)),
                ("dir", Json::number(direction)),
                ("hwid", Json::number(hardware)),
            ];
            entry.member("erspan_opts", Json::List(vec![Json::Object(object)]));
        }
    }
}
