//! `ip`: the commands about links, addresses, routes and tunnels that traffic-control scripts issue.

mod address;
mod command;
mod link;
mod route;
mod show;
mod words;

use crate::{Env, Refusal};
use words::{help, is_show, later};

pub use command::{IpCommand, IpCommandLine, IpFlags, LinkSelector, LinkSet, Route, RouteVerb};
pub use show::{ShownAddress, ShownLink, link_json, link_text, route_text};

/// What `ip -V` prints.
pub const VERSION: &str = "ip utility, iproute2-6.1.0, libbpf 1.1.2\n";

const OBJECTS: [&str; 10] =
    ["address", "link", "maddress", "monitor", "neighbour", "netns", "route", "rule", "tunnel", "tuntap"];

/// Reads a command line of `ip`, without the program's name.
///
/// # Errors
/// In ip's words, with its exit code.
pub fn parse(args: &[String], env: &Env) -> Result<IpCommandLine, Refusal> {
    let mut flags = IpFlags::default();
    let (mut batch, mut force) = (false, false);
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
        let option = word.trim_start_matches('-');
        let is = |name: &str| name.starts_with(option);
        match option {
            "4" => flags.family = Some(false),
            "6" => flags.family = Some(true),
            "0" | "B" | "M" | "N" | "a" | "h" | "iec" => {}
            "br" => flags.brief = true,
            _ if is("family") => {
                at += 1;
                flags.family = args.get(at).map(|family| family == "inet6");
            }
            _ if is("stats") || is("statistics") => flags.stats = true,
            _ if is("details") => flags.details = true,
            _ if is("oneline") => flags.oneline = true,
            _ if is("json") => flags.json = true,
            _ if is("pretty") => flags.pretty = true,
            _ if is("brief") && option.len() > 1 => flags.brief = true,
            _ if is("batch") => {
                at += 1;
                batch = true;
            }
            _ if is("force") => force = true,
            _ if is("Version") => return Ok(IpCommandLine { command: IpCommand::Version, flags }),
            _ if is("help") => return Ok(IpCommandLine { command: help(), flags }),
            _ if is("color") || option.starts_with("color=") || is("resolve") || is("timestamp") => {}
            _ if is("netns") || is("loops") || is("rcvbuf") => {
                return Err(later(&format!("the option {word}"), at));
            }
            _ => {
                return Err(
                    Refusal::new(255, format!("Option \"{word}\" is unknown, try \"ip -help\".")).at(at)
                );
            }
        }
        at += 1;
    }
    if batch {
        return Ok(IpCommandLine { command: IpCommand::Batch { force }, flags });
    }
    Ok(IpCommandLine { command: parse_line(args.get(at..).unwrap_or(&[]), &mut flags, env)?, flags })
}

/// Reads a line without options before the object, as in a batch file.
///
/// # Errors
/// In ip's words, with its exit code.
pub fn parse_line(args: &[String], flags: &mut IpFlags, env: &Env) -> Result<IpCommand, Refusal> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some((object, rest)) = words.split_first() else { return Ok(help()) };
    if *object == "help" {
        return Ok(help());
    }
    let object =
        OBJECTS.into_iter().find(|name| !object.is_empty() && name.starts_with(object)).unwrap_or(object);
    match object {
        "link" => link::link(rest, env),
        "address" => address::address(rest, flags, env),
        "route" => route::route(rest, flags, env),
        "tunnel" => link::tunnel(rest, env),
        "tuntap" => link::tuntap(rest, env),
        "rule" | "neighbour" | "maddress" => match rest.first() {
            None => Ok(if object == "rule" { IpCommand::ShowRules } else { IpCommand::ShowNothing }),
            Some(verb) if is_show(verb) => {
                Ok(if object == "rule" { IpCommand::ShowRules } else { IpCommand::ShowNothing })
            }
            Some(verb) => Err(later(&format!("ip {object} {verb}"), 1)),
        },
        "monitor" | "netns" => Err(later(&format!("ip {object}"), 0)),
        _ => Err(Refusal::new(1, format!("Object \"{object}\" is unknown, try \"ip help\".")).at(0)),
    }
}

#[cfg(test)]
mod tests;
