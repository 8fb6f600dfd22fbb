//! Listings of tc, in one file or several: read, made on the machine, and listed again. What does not come
//! back is refused, so that nothing is shown as if it had been read whole.

use crate::format::{InputFormat, shown_name};
use crate::lists::ListedCall;
use crate::tcjson;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tidegate_capture::ScriptRun;
use tidegate_packet::{Pool, RandomSource};
use tidegate_shims::{Answer, Call, Machine};
use tidegate_syntax::TcVersion;
use tidegate_syntax::tc::{self, ListedObject, ListingDifference, NotListed, Object};

/// The most devices that listings may name.
const MAX_DEVICES: usize = 4096;
/// The most places that a refusal names.
const MAX_PLACES: usize = 8;
/// The most characters of each.
const MAX_LINE: usize = 400;

/// Listings that belong together, whatever file each is in: parents come before children.
pub(super) struct Listings {
    /// Each with its path, its text, and whether it is JSON.
    pub(super) files: Vec<(PathBuf, String, bool)>,
    objects: Vec<ListedObject>,
    /// The calls that make what is listed.
    calls: Vec<tc::Listed>,
}

/// A file that cannot be read, and why.
#[derive(Debug)]
pub(super) struct Unread(pub(super) PathBuf, pub(super) String);

/// Something about a listing: its file's number, its line, and a sentence.
type Fault = (usize, usize, String);

impl Listings {
    /// `dev` is the device of entries that name none.
    ///
    /// # Errors
    /// What cannot be read.
    pub(super) fn of(files: Vec<(PathBuf, String, bool)>, dev: Option<&str>) -> Result<Listings, Unread> {
        let read = |files: &[(PathBuf, String, bool)]| {
            let mut objects = Vec::new();
            for (number, (_, text, is_json)) in files.iter().enumerate() {
                objects.extend(match is_json {
                    true => tcjson::objects(text, (dev, None), number)?,
                    false => tc::objects_of_listing(text, number)?,
                });
            }
            tc::number_tables(&mut objects);
            let calls = tc::commands_of_listing(&objects)?;
            match tc::without_classes(&objects).filter(|_| !files.iter().any(lists_classes)) {
                Some(unknown) => Err(unknown),
                None => Ok((objects, calls)),
            }
        };
        match read(&files) {
            Ok((objects, calls)) => Ok(Listings { files, objects, calls }),
            Err(NotListed { file, line, why }) => Err(refusal(&files, &[(file, line, why)], "")),
        }
    }

    /// What they are together.
    pub(super) fn format(&self) -> InputFormat {
        match self.files.iter().any(|(_, _, is_json)| *is_json) {
            true => InputFormat::TcJson,
            false => InputFormat::Listing,
        }
    }

    /// The devices that they name.
    pub(super) fn devices(&self) -> BTreeSet<String> {
        let here = self.objects.iter().map(|object| &object.dev);
        let pairs = self.calls.iter().flat_map(|call| call.args.windows(2));
        let named = pairs.filter(|pair| pair[0] == "dev").map(|pair| &pair[1]);
        let fits = |name: &&String| !name.is_empty() && name.len() <= 15 && !name.contains('/');
        here.chain(named).filter(fits).take(MAX_DEVICES).cloned().collect()
    }

    /// The calls that make what is listed.
    pub(super) fn calls(&self) -> Vec<ListedCall> {
        let call = |listed: &tc::Listed| {
            let call = Call {
                tool: "tc".into(),
                args: listed.args.clone(),
                stdin: None,
                cwd: PathBuf::from("/"),
                netns: None,
            };
            ListedCall { file: listed.file, ..ListedCall::new(call, Some(listed.line)) }
        };
        self.calls.iter().map(call).collect()
    }

    /// Why there is nothing to say about them: they list no qdisc that somebody attached.
    pub(super) fn nothing(&self) -> Option<String> {
        if !self.calls.is_empty() {
            return None;
        }
        let devices: BTreeSet<&str> = self.objects.iter().map(|object| object.dev.as_str()).collect();
        Some(match self.objects.iter().all(ListedObject::is_default) {
            _ if devices.is_empty() => "the listing is empty, so nothing can be said of it".to_owned(),
            false => {
                "the listing has no qdisc that somebody attached, and nothing else that a command makes, so \
                      nothing can be said of it"
                    .to_owned()
            }
            true => format!(
                "the listing has nothing but what the kernel attaches on its own (handle 0:, noqueue) on {}, so \
                 nothing can be said of it",
                tc_names(&devices)
            ),
        })
    }

    /// Compares what is listed with the machine that was made of it; the result are caveats.
    ///
    /// # Errors
    /// Something that is listed is not there.
    pub(super) fn verify(
        &self,
        machine: &mut Machine,
        outcome: &ScriptRun,
        draws: &mut dyn RandomSource,
    ) -> Result<Vec<String>, Unread> {
        let mut faults = self.refused(outcome);
        let mut caveats = Vec::new();
        // What was not made is missing elsewhere, too.
        let differences = if faults.is_empty() { self.differences(machine, draws) } else { Vec::new() };
        for ListingDifference { file, line, what, is_refused } in differences {
            if is_refused {
                faults.push((file, line, what));
            } else {
                caveats.push(sentence(&self.files, &(file, line, what)));
            }
        }
        if faults.is_empty() {
            return Ok(caveats);
        }
        faults.sort();
        let more = "\ntidegate makes what a listing says and lists it again, and not all of it came back, so nothing \
                    is said of it; give the commands that made it instead, or leave these lines out";
        Err(refusal(&self.files, &faults, more))
    }

    /// The calls that were refused.
    fn refused(&self, outcome: &ScriptRun) -> Vec<Fault> {
        let calls = self.calls.iter().zip(&outcome.calls).filter(|(_, recorded)| recorded.code != 0);
        calls
            .map(|(listed, recorded)| {
                let mut reasons =
                    tc::refusal_lines(&recorded.stderr).map(|line| line.trim_start_matches("tc: "));
                let reason = reasons.next().unwrap_or("no reason is given");
                let what =
                    format!("the command made of it is refused ({reason}): tc {}", listed.args.join(" "));
                (listed.file, listed.line, what)
            })
            .collect()
    }

    /// What the machine does not list as it was given.
    fn differences(&self, machine: &mut Machine, draws: &mut dyn RandomSource) -> Vec<ListingDifference> {
        let (mut out, own) = (Vec::new(), machine.tc);
        for is_json in [false, true] {
            let is_here = |object: &&ListedObject| self.files[object.file].2 == is_json;
            let given: Vec<ListedObject> = self.objects.iter().filter(is_here).cloned().collect();
            if given.is_empty() {
                continue;
            }
            let mut pool = Pool::new(0);
            let mut again = Vec::new();
            // Whichever release of tc listed it.
            for tc in TcVersion::ALL {
                machine.tc = tc;
                again.extend(
                    [true, false]
                        .map(|details| listed_again(machine, &given, (is_json, details), &mut pool, draws)),
                );
            }
            machine.tc = own;
            out.extend(tc::compare(&given, &again));
        }
        out
    }
}

/// Does a file say that it lists classes, even if there are none: by a heading, or by an empty list of JSON?
fn lists_classes((_, text, is_json): &(PathBuf, String, bool)) -> bool {
    let is_heading = |line: &str| {
        let verb = line.split_whitespace().skip_while(|word| word.rsplit('/').next() != Some("tc"));
        tc::listing_heading(line).is_some() && verb.into_iter().any(|word| word.starts_with("cl"))
    };
    text.lines().any(is_heading) || *is_json && text.lines().any(|line| matches!(line.trim(), "[]" | "[ ]"))
}

/// Names in a row, the first few.
fn tc_names(devices: &BTreeSet<&str>) -> String {
    let first: Vec<&str> = devices.iter().take(MAX_PLACES).copied().collect();
    let more = if devices.len() > first.len() { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

fn sentence(files: &[(PathBuf, String, bool)], (file, line, what): &Fault) -> String {
    let path = shown_name(files.get(*file).map_or(Path::new(""), |(path, ..)| path));
    let shown: String = tidegate_text::line(what).to_string().chars().take(MAX_LINE).collect();
    format!("{path}:{line}: {shown}")
}

/// The refusal of listings: the first few places, and what they have in common.
fn refusal(files: &[(PathBuf, String, bool)], faults: &[Fault], more: &str) -> Unread {
    let file = faults.first().map_or(0, |(file, ..)| *file);
    let path = files.get(file).map(|(path, ..)| path.clone()).unwrap_or_default();
    let [(_, line, what)] = faults else {
        let mut text = format!("not all of it can be read ({} places)", faults.len());
        for one in faults.iter().take(MAX_PLACES) {
            text.push_str(&format!("\n  {}", sentence(files, one)));
        }
        if faults.len() > MAX_PLACES {
            text.push_str(&format!("\n  … and {} more", faults.len() - MAX_PLACES));
        }
        return Unread(path, text + more);
    };
    let shown: String = tidegate_text::line(what).to_string().chars().take(MAX_LINE).collect();
    Unread(path, format!("line {line}: {shown}{more}"))
}

/// What the machine lists now of everything that `given` has the parents of.
fn listed_again(
    machine: &mut Machine,
    given: &[ListedObject],
    (is_json, details): (bool, bool),
    pool: &mut Pool,
    draws: &mut dyn RandomSource,
) -> Vec<ListedObject> {
    let mut shim = machine.shim(pool, draws);
    let mut show = |dev: &str, parent: &str, args: &[&str]| {
        let flags = [is_json.then_some("-j"), details.then_some("-d")];
        let args: Vec<String> =
            flags.into_iter().flatten().chain(args.iter().copied()).map(str::to_owned).collect();
        let reply =
            shim.answer(&Call { tool: "tc".into(), args, stdin: None, cwd: PathBuf::from("/"), netns: None });
        let text = String::from_utf8_lossy(&reply.stdout).into_owned();
        match is_json {
            true => tcjson::objects(&text, (Some(dev), Some(parent)), 0),
            false => tc::objects_of_listing(&format!("# dev {dev} parent {parent}\n{text}"), 0),
        }
        .unwrap_or_default()
    };
    let mut out = show("", "", &["qdisc", "show"]);
    let devices: BTreeSet<&String> =
        given.iter().filter(|object| object.what == Object::Class).map(|object| &object.dev).collect();
    for dev in devices {
        out.extend(show(dev, "", &["class", "show", "dev", dev]));
    }
    let of_filters = given.iter().filter(|object| object.what == Object::Filter);
    let parents: BTreeSet<(&String, &String)> =
        of_filters.map(|object| (&object.dev, &object.parent)).collect();
    for (dev, parent) in parents {
        let place: Vec<&str> = match parent.strip_prefix("block ") {
            Some(number) => vec!["block", number],
            None if matches!(parent.as_str(), "ingress" | "egress" | "root") => vec!["dev", dev, parent],
            None => vec!["dev", dev, "parent", parent],
        };
        let listed = show(dev, parent, &[&["filter", "show"], &place[..]].concat());
        // The parent that was asked for is not repeated.
        out.extend(listed.into_iter().map(|object| ListedObject {
            parent: parent.clone(),
            dev: dev.clone(),
            ..object
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why a text, as it is or as JSON, is not read.
    fn unread(text: &str, is_json: bool) -> Option<String> {
        let files = vec![(PathBuf::from("x"), text.to_owned(), is_json)];
        Listings::of(files, Some("eth0")).err().map(|Unread(_, why)| why)
    }

    /// `tc qdisc show` has no classes with queues of their own making.
    #[test]
    fn a_qdisc_with_classes_is_not_known_without_them() {
        let htb = "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x30 direct_packets_stat 0\n";
        let why = unread(htb, false).expect("is not read");
        assert!(why.contains("list them too: tc class show dev eth0"), "{why}");
        let class = "# dev eth0\nclass htb 1:30 root prio 0 rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b\n";
        for fine in [
            format!("{htb}{class}"),
            format!("{htb}# tc class show dev eth0\n"),
            "qdisc prio 1: dev eth0 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n"
                .to_owned(),
        ] {
            assert_eq!(unread(&fine, false), None, "{fine}");
        }
        let json = "[{\"kind\":\"htb\",\"handle\":\"1:\",\"dev\":\"eth0\",\"root\":true,\"refcnt\":2,\"options\":\
                    {\"r2q\":10,\"default\":\"0x30\",\"direct_packets_stat\":0,\"direct_qlen\":1000}}]\n";
        assert!(unread(json, true).is_some_and(|why| why.contains("list them too")));
        assert_eq!(unread(&format!("{json}[]\n"), true), None);
    }

    #[test]
    fn what_a_class_is_in_is_asked_for() {
        let class = "# dev eth0\nclass htb 1:30 root prio 0 rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b\n";
        let why = unread(class, false).expect("is not read");
        assert!(why.contains("list the qdiscs too: tc qdisc show dev DEV"), "{why}");
    }
}
