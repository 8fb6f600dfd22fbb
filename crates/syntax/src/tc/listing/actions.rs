//! The actions of a filter in a listing, and as a command takes them.

use super::object::shown;
use super::options::args_of_buckets;
use crate::tc::spelling::ListedValue;

/// The words of a command for the actions of a listing: `action order 1: mirred (Egress Redirect to device
/// ifb0) stolen`, or a policer as it was written before there were actions.
///
/// # Errors
/// An action is not read.
pub(super) fn args(words: &[&str]) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let mut rest = words;
    if let ["police", ..] = rest {
        return police(rest);
    }
    while let ["action", "order", _, after @ ..] = rest {
        let end = after.windows(2).position(|pair| pair == ["action", "order"]).unwrap_or(after.len());
        out.push("action".to_owned());
        out.extend(action(&after[..end])?);
        rest = &after[end..];
    }
    Ok(out)
}

/// What is said of an action that is not read.
fn unread(words: &[&str]) -> String {
    format!("its action `{}` is not read from listings", shown(&words.join(" ")))
}

fn action(words: &[&str]) -> Result<Vec<String>, String> {
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    // What all kinds may have at their ends.
    let end = words.iter().position(|word| matches!(*word, "cookie" | "hw_stats" | "no_percpu" | "bind"));
    let (words, common) = words.split_at(end.unwrap_or(words.len()));
    let mut args = match words {
        ["gact", "action", rest @ ..] => gact(rest),
        ["mirred", way, what, "to", "device", dev, control @ ..] => {
            let (way, what) = (way.trim_start_matches('(').to_lowercase(), what.to_lowercase());
            let mut args = own(&["mirred", &way, &what, "dev", dev.trim_end_matches(')')]);
            let usual = if what == "redirect" { "stolen" } else { "pipe" };
            if control != [usual] {
                args.extend(own(control));
            }
            args
        }
        ["police", ..] => police(words)?,
        // Its masks are listed behind what ends its command.
        ["ctinfo", rest @ ..] => {
            let at = rest.iter().position(|word| matches!(*word, "dscp" | "cpmark")).unwrap_or(rest.len());
            [own(&["ctinfo"]), own(&rest[at..]), own(&rest[..at])].concat()
        }
        ["csum", rest @ ..] => csum(rest),
        ["pedit", "action", rest @ ..] => pedit(rest).ok_or_else(|| unread(words))?,
        ["skbedit" | "vlan" | "connmark", ..] => own(words),
        _ => return Err(unread(words)),
    };
    let of_policer = args.first().is_some_and(|kind| kind == "police");
    match common {
        [] => {}
        // Several filters that share a policer share its rate.
        ["bind", ..] if of_policer => {
            return Err("several filters share its policer, which is not read from listings".to_owned());
        }
        ["bind", _, rest @ ..] | rest => args.extend(own(rest)),
    }
    Ok(args)
}

/// `(iph, udp) action pass`
fn csum(words: &[&str]) -> Vec<String> {
    let at = words.iter().position(|word| *word == "action").unwrap_or(words.len());
    let (headers, control) = words.split_at(at);
    let headers = headers.iter().map(|word| word.trim_matches(['(', ')', ',']));
    let headers = headers.map(|word| if word == "iph" { "ip4h" } else { word });
    let control = control.iter().skip(1).copied();
    std::iter::once("csum").chain(headers).chain(control).map(str::to_owned).collect()
}

/// `pass keys 1 key #0 at 8: val 05000000 mask 00ffffff`: the mask has the bits that stay. `None`: it names
/// headers, or adds.
fn pedit(words: &[&str]) -> Option<Vec<String>> {
    let at = words.iter().position(|word| *word == "keys")?;
    let (control, rest) = words.split_at(at);
    let mut args = vec!["pedit".to_owned()];
    for key in rest.get(2..)?.chunks(8) {
        let ["key", _, "at", at, "val", value, "mask", mask] = key else { return None };
        let changed = !u32::from_str_radix(mask, 16).ok()?;
        let at: u32 = at.strip_suffix(':')?.parse().ok()?;
        let words = ["munge", "offset", &at.to_string(), "u32", "set", &format!("0x{value}"), "retain"];
        args.extend(words.map(str::to_owned));
        args.push(format!("{changed:#x}"));
    }
    args.extend(control.iter().map(|word| (*word).to_owned()));
    Some(args)
}

/// `drop random type netrand drop val 10`
fn gact(words: &[&str]) -> Vec<String> {
    let at = words.iter().position(|word| *word == "random").unwrap_or(words.len());
    let (control, random) = words.split_at(at);
    let mut args: Vec<String> = control.iter().map(|word| (*word).to_owned()).collect();
    if let ["random", "type", kind, rest @ ..] = random
        && *kind != "none"
        && let [other @ .., "val", number] = rest
    {
        args.extend(["random", kind].map(str::to_owned));
        args.extend(other.iter().map(|word| (*word).to_owned()));
        args.push((*number).to_owned());
    }
    args
}

/// `police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b linklayer ethernet`
fn police(words: &[&str]) -> Result<Vec<String>, String> {
    let mut args = vec!["police".to_owned()];
    let mut rest = words.get(2..).unwrap_or_default();
    loop {
        rest = match rest {
            [] => break,
            ["action", control, rest @ ..] => {
                args.extend(["conform-exceed", control].map(str::to_owned));
                rest
            }
            ["overhead", bytes, rest @ ..] => {
                let bytes = bytes.trim_end_matches('b');
                if bytes != "0" {
                    args.extend(["overhead", bytes].map(str::to_owned));
                }
                rest
            }
            ["linklayer", layer, rest @ ..] => {
                if *layer == "atm" {
                    args.extend(["linklayer", layer].map(str::to_owned));
                }
                rest
            }
            ["bind", ..] => {
                return Err("several filters share its policer, which is not read from listings".to_owned());
            }
            [
                key @ ("rate" | "burst" | "mtu" | "peakrate" | "avrate" | "pkts_rate" | "pkts_burst"),
                value,
                rest @ ..,
            ] => {
                args.extend([key, value].map(|word| (*word).to_owned()));
                rest
            }
            _ => return Err(unread(words)),
        };
    }
    args_of_buckets(&mut args);
    Ok(args)
}

/// The words that a listing for people has of an action in JSON.
///
/// # Errors
/// JSON does not say all of it.
pub(super) fn words_of(action: &ListedValue) -> Result<Vec<String>, String> {
    let members = action.members();
    let text =
        |key: &str| ListedValue::get(members, key).and_then(ListedValue::word).unwrap_or_default().to_owned();
    let control = control(ListedValue::get(members, "control_action"));
    let kind = text("kind");
    let mut words = match kind.as_str() {
        "gact" => {
            let mut words = vec!["gact".to_owned(), "action".to_owned()];
            words.extend(control.clone());
            if let Some(prob) = ListedValue::get(members, "prob").map(ListedValue::members) {
                let part = |key: &str| {
                    ListedValue::get(prob, key).and_then(ListedValue::word).unwrap_or("none").to_owned()
                };
                words.extend(["random".to_owned(), "type".to_owned(), part("random_type")]);
                words.extend(self::control(ListedValue::get(prob, "control_action")));
                words.extend(["val".to_owned(), part("val")]);
            }
            return Ok(words);
        }
        "mirred" => vec![
            "mirred".to_owned(),
            format!("({}", text("direction")),
            text("mirred_action"),
            "to".to_owned(),
            "device".to_owned(),
            format!("{})", text("to_dev")),
        ],
        "skbedit" => skbedit(members),
        "connmark" => vec![kind.clone(), "zone".to_owned(), text("zone")],
        "ctinfo" => {
            let mut words = vec![kind.clone(), "zone".to_owned(), text("zone")];
            words.extend(control);
            if ListedValue::get(members, "dscpmask").is_some() {
                words.extend(["dscp".to_owned(), text("dscpmask"), text("dscpstatemask")]);
            }
            if ListedValue::get(members, "cpmark").is_some() {
                words.extend(["cpmark".to_owned(), text("cpmark")]);
            }
            return Ok(words);
        }
        "vlan" => {
            let mut words = vec![kind.clone(), text("vlan_action")];
            for key in ["id", "protocol", "priority"] {
                if ListedValue::get(members, key).is_some() {
                    words.extend([key.to_owned(), text(key)]);
                }
            }
            words
        }
        _ => return Err(not_in_json(&kind)),
    };
    words.extend(control);
    if let Some(cookie) = ListedValue::get(members, "cookie").and_then(ListedValue::word) {
        words.extend(["cookie".to_owned(), cookie.to_owned()]);
    }
    Ok(words)
}

/// What is said of an action that JSON does not have whole.
pub(super) fn not_in_json(kind: &str) -> String {
    let kind = shown(kind);
    format!("tc's JSON does not say all of its action {kind}; save what `tc filter show` prints instead")
}

fn skbedit(members: &[(String, ListedValue)]) -> Vec<String> {
    let mut words = vec!["skbedit".to_owned()];
    for (key, value) in members {
        match (key.as_str(), value.word()) {
            ("queue_mapping" | "priority" | "mark" | "ptype", Some(word)) => {
                words.extend([key.clone(), word.to_owned()]);
            }
            ("mask", Some(mask)) => {
                if let Some(mark) = words.last_mut() {
                    mark.push_str(&format!("/0x{mask}"));
                }
            }
            ("inheritdsfield", None) => words.push(key.clone()),
            _ => {}
        }
    }
    words
}

/// `{"type":"goto","chain":5}`, `{"type":"drop"}`
fn control(member: Option<&ListedValue>) -> Vec<String> {
    let members = member.map_or(&[][..], ListedValue::members);
    let mut words: Vec<String> = ListedValue::get(members, "type")
        .and_then(ListedValue::word)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if let Some(chain) = ListedValue::get(members, "chain").and_then(ListedValue::word) {
        words.extend(["chain".to_owned(), chain.to_owned()]);
    }
    words
}
