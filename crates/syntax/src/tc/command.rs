//! `tc qdisc …` and `tc class …`: the words before the kind.

use super::command_line::{Object, ShowWhat, TcCommand};
use super::help::help_of;
use super::words::{Words, begins};
use super::{build, size_table};
use crate::number::u32_in;
use crate::units::{parse_classid, parse_handle, time_by};
use crate::{Env, Refusal, TcVersion};
use tidegate_packet::Handle;
use tidegate_policy::{ClassOp, Estimator, Op, QdiscOp, SharedBlocks, Verb};

/// What a verb means.
pub(super) enum CommandVerb {
    Do(Verb),
    Show,
    Get,
    Help,
}

/// The verb of an object; abbreviations go to the first that fits.
pub(super) fn verb(object: Object, words: &mut Words<'_>) -> Result<CommandVerb, Refusal> {
    let Some(word) = words.take() else { return Ok(CommandVerb::Show) };
    let name = object.name();
    let mut verbs = vec![("add", CommandVerb::Do(Verb::Add)), ("change", CommandVerb::Do(Verb::Change))];
    verbs.push(("replace", CommandVerb::Do(Verb::Replace)));
    if object == Object::Qdisc {
        verbs.push(("link", CommandVerb::Do(Verb::Link)));
    }
    verbs.push(("delete", CommandVerb::Do(Verb::Delete)));
    if object == Object::Filter {
        verbs.push(("get", CommandVerb::Get));
    }
    for show in ["list", "show", "lst"] {
        verbs.push((show, CommandVerb::Show));
    }
    verbs.push(("help", CommandVerb::Help));
    for (verb, meaning) in verbs {
        if begins(word, verb) {
            return Ok(meaning);
        }
    }
    Err(Refusal::new(255, format!("Command \"{word}\" is unknown, try \"tc {name} help\"."))
        .at(words.last())
        .remedy(format!("tc {name} knows add, change, replace, delete and show.")))
}

/// Messages beside the command.
#[derive(Default)]
pub(super) struct Notes {
    /// For the reader of the script: accepted words that mean nothing here.
    pub(super) aside: Vec<String>,
    /// What tc prints to stderr before it continues.
    pub(super) stderr: String,
}

pub(super) fn qdisc(
    verb: Verb,
    words: &mut Words<'_>,
    env: &Env,
    notes: &mut Notes,
) -> Result<TcCommand, Refusal> {
    let mut op = QdiscOp {
        verb,
        dev: String::new(),
        parent: Handle::NONE,
        handle: Handle::NONE,
        kind: None,
        params: None,
        stab: None,
        estimator: None,
        blocks: SharedBlocks::default(),
    };
    while let Some(word) = words.take() {
        match word {
            "dev" => device(&mut op.dev, words)?,
            "handle" => {
                if !op.handle.is_none() {
                    return Err(Refusal::duplicate("handle", "handle").at(words.last()));
                }
                let text = words.need()?;
                op.handle = parse_handle(text).ok_or_else(|| {
                    Refusal::wrong(text, "invalid qdisc ID").at(words.last()).remedy(
                        "A qdisc's handle is a hexadecimal number up to ffff and a colon, such as 1: or 10:.",
                    )
                })?;
            }
            "root" => {
                if !op.parent.is_none() {
                    return Err(Refusal::new(255, "Error: \"root\" is duplicate parent ID")
                        .at(words.last())
                        .remedy("A qdisc has one place: root, or parent and a class."));
                }
                op.parent = Handle::ROOT;
            }
            "ingress" | "clsact" => {
                if !op.parent.is_none() {
                    return Err(Refusal::new(255, format!("Error: \"{word}\" is a duplicate parent ID"))
                        .at(words.last()));
                }
                op.parent = Handle::INGRESS;
                op.handle = Handle::new(0xffff, 0);
                op.kind = Some(word.into());
                if word == "ingress" && words.peek() == Some("handle") {
                    // A handle is read and means nothing: that of ingress is always the same.
                    words.skip();
                    words.need()?;
                }
                build::qdisc(word, &op.dev, env, words, &mut notes.stderr)?;
                break;
            }
            "parent" => parent(&mut op.parent, words)?,
            _ if begins(word, "stab") => op.stab = Some(size_table::parse(words)?),
            _ if begins(word, "estimator") => estimator_once(&mut op.estimator, words, env.tc)?,
            _ if begins(word, "ingress_block") => {
                op.blocks.ingress = block_of(words, "invalid ingress block index value")?;
            }
            _ if begins(word, "egress_block") => {
                op.blocks.egress = block_of(words, "invalid egress block index value")?;
            }
            _ if begins(word, "help") => return Ok(help_of(Some(Object::Qdisc))),
            kind => {
                op.kind = Some(kind.into());
                op.params = build::qdisc(kind, &op.dev, env, words, &mut notes.stderr)?;
                break;
            }
        }
    }
    find_device(&op.dev, env)?;
    Ok(TcCommand::Apply(Op::Qdisc(op)))
}

pub(super) fn class(verb: Verb, words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let mut op = ClassOp {
        verb,
        dev: String::new(),
        parent: Handle::NONE,
        classid: Handle::NONE,
        kind: None,
        params: None,
        estimator: None,
    };
    while let Some(word) = words.take() {
        match word {
            "dev" => device(&mut op.dev, words)?,
            "classid" => {
                let text = words.need()?;
                if !op.classid.is_none() {
                    return Err(Refusal::duplicate("classid", text).at(words.last()));
                }
                op.classid = class_id(text, "invalid class ID", words.last())?;
            }
            "handle" => {
                return Err(Refusal::new(255, "Error: try \"classid\" instead of \"handle\"")
                    .at(words.last())
                    .remedy("Qdiscs have handles (1:), classes have class ids (1:10)."));
            }
            "root" => {
                if !op.parent.is_none() {
                    return Err(Refusal::new(255, "Error: \"root\" is duplicate parent ID.").at(words.last()));
                }
                op.parent = Handle::ROOT;
            }
            "parent" => parent(&mut op.parent, words)?,
            "help" => return Ok(help_of(Some(Object::Class))),
            _ if begins(word, "estimator") => estimator_once(&mut op.estimator, words, env.tc)?,
            kind => {
                op.kind = Some(kind.into());
                op.params = Some(build::class(kind, &op.dev, env, words)?);
                break;
            }
        }
    }
    find_device(&op.dev, env)?;
    Ok(TcCommand::Apply(Op::Class(op)))
}

pub(super) fn show_qdisc(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let mut what = ShowWhat::of(Object::Qdisc);
    while let Some(word) = words.take() {
        let once = |what: &ShowWhat, place: usize| match what.parent {
            None => Ok(()),
            Some(_) => Err(Refusal::wrong(word, "parent is already specified").at(place)),
        };
        match word {
            "dev" => what.dev = Some(words.need()?.into()),
            "root" => {
                once(&what, words.last())?;
                what.parent = Some(Handle::ROOT);
            }
            "ingress" | "clsact" => {
                once(&what, words.last())?;
                what.parent = Some(Handle::INGRESS);
            }
            "parent" => {
                once(&what, words.last())?;
                let text = words.need()?;
                what.parent = Some(class_id(text, "invalid parent ID", words.last())?);
            }
            "handle" => {
                once(&what, words.last())?;
                let text = words.need()?;
                let handle = parse_handle(text)
                    .ok_or_else(|| Refusal::wrong(text, "invalid handle ID").at(words.last()))?;
                what.handle = Some(handle);
            }
            "invisible" => what.invisible = true,
            "help" => return Ok(help_of(Some(Object::Qdisc))),
            _ => return Err(unknown_in_show(word, "qdisc", words.last())),
        }
    }
    found(what, env)
}

pub(super) fn show_class(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let mut what = ShowWhat::of(Object::Class);
    while let Some(word) = words.take() {
        match word {
            "dev" => {
                let dev = words.need()?;
                if what.dev.is_some() {
                    return Err(Refusal::duplicate("dev", dev).at(words.last()));
                }
                what.dev = Some(dev.into());
            }
            "qdisc" => {
                let text = words.need()?;
                let handle = parse_handle(text)
                    .ok_or_else(|| Refusal::wrong(text, "invalid qdisc ID").at(words.last()))?;
                what.handle = Some(handle);
            }
            "classid" => {
                let text = words.need()?;
                what.classid = Some(class_id(text, "invalid class ID", words.last())?);
            }
            "root" | "parent" if what.parent.is_some() => {
                return Err(Refusal::duplicate("parent", word).at(words.last()));
            }
            "root" => what.parent = Some(Handle::ROOT),
            "parent" => {
                let text = words.need()?;
                what.parent = Some(class_id(text, "invalid parent ID", words.last())?);
            }
            "help" => return Ok(help_of(Some(Object::Class))),
            _ => return Err(unknown_in_show(word, "class", words.last())),
        }
    }
    found(what, env)
}

/// Checks the device of a `show`.
pub(super) fn found(what: ShowWhat, env: &Env) -> Result<TcCommand, Refusal> {
    let mut what = what;
    // An empty name is none: qdiscs of all devices are listed.
    what.dev = what.dev.filter(|dev| !dev.is_empty());
    if let Some(dev) = &what.dev {
        find_device(dev, env)?;
    }
    Ok(TcCommand::Show(what))
}

fn unknown_in_show(word: &str, object: &str, place: usize) -> Refusal {
    Refusal::new(255, format!("What is \"{word}\"? Try \"tc {object} help\"."))
        .at(place)
        .remedy("show takes dev DEVICE, and what to select: root, parent, handle or classid.")
}

/// The word after `dev`.
pub(super) fn device(dev: &mut String, words: &mut Words<'_>) -> Result<(), Refusal> {
    let name = words.need()?;
    if !dev.is_empty() {
        return Err(Refusal::duplicate("dev", name).at(words.last()));
    }
    // A device's name has at most 15 bytes; tc cuts what is longer.
    *dev = name.char_indices().take_while(|(at, c)| at + c.len_utf8() <= 15).map(|(_, c)| c).collect();
    Ok(())
}

/// The number of a shared block; `why`: tc's message for one that it does not accept.
fn block_of(words: &mut Words<'_>, why: &str) -> Result<u32, Refusal> {
    let text = words.need()?;
    u32_in(text, 0).filter(|number| *number != 0).ok_or_else(|| {
        Refusal::wrong(text, why)
            .at(words.last())
            .remedy("A shared block has a number from 1 on: ingress_block 22, then tc filter add block 22 ….")
    })
}

/// The word after `block`, which takes the place of `dev`.
pub(super) fn block(block: &mut u32, words: &mut Words<'_>) -> Result<(), Refusal> {
    if *block != 0 {
        let text = words.need()?;
        return Err(Refusal::duplicate("block", text).at(words.last()));
    }
    *block = block_of(words, "invalid block index value")?;
    Ok(())
}

/// An operation is about a device or about a block.
pub(super) fn one_of(dev: &str, block: u32, words: &Words<'_>) -> Result<(), Refusal> {
    if dev.is_empty() || block == 0 {
        return Ok(());
    }
    Err(Refusal::new(255, "Error: \"dev\" and \"block\" are mutually exclusive")
        .at(words.last())
        .remedy("The filters of a shared block belong to no single device: leave dev out."))
}

/// A listing takes either word; `free`: the other one has not been given.
pub(super) fn either(word: &str, free: bool, words: &Words<'_>) -> Result<(), Refusal> {
    let other = if word == "dev" { "block" } else { "dev" };
    if free {
        return Ok(());
    }
    Err(Refusal::new(255, format!("Error: \"{word}\" cannot be used in the same time as \"{other}\""))
        .at(words.last())
        .remedy("List the filters of a device or those of a block."))
}

/// The word after `parent`.
pub(super) fn parent(parent: &mut Handle, words: &mut Words<'_>) -> Result<(), Refusal> {
    parent_or(parent, "invalid parent ID", words)
}

/// Reads a parent; `why`: tc's message for a word that is none.
pub(super) fn parent_or(parent: &mut Handle, why: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
    let text = words.need()?;
    if !parent.is_none() {
        return Err(Refusal::duplicate("parent", text).at(words.last()));
    }
    *parent = class_id(text, why, words.last())?;
    Ok(())
}

pub(super) fn class_id(text: &str, why: &str, place: usize) -> Result<Handle, Refusal> {
    parse_classid(text).ok_or_else(|| {
        Refusal::wrong(text, why)
            .at(place)
            .remedy("A class id is two hexadecimal numbers up to ffff with a colon between, such as 1:10.")
    })
}

/// `estimator INTERVAL CONSTANT`: how often the rate is measured, and how long it is remembered.
pub(super) fn estimator(words: &mut Words<'_>, tc: TcVersion) -> Result<Estimator, Refusal> {
    let mut time = |why: &str| {
        let text = words.need()?;
        time_by(text, tc).ok_or_else(|| Refusal::wrong(why, "estimator").at(words.last()))
    };
    let every = time("invalid estimator interval")?;
    let remembered = time("invalid estimator time constant")?;
    estimator_of(every, remembered).ok_or_else(|| {
        Refusal::new(255, "Error: estimator parameters are out of range.")
            .at(words.last())
            .remedy("The interval is 8s at most, and the time constant longer: est 1s 8s")
    })
}

/// The least power of two quarter seconds that is as long as the interval, and the longest average within the
/// time constant.
fn estimator_of(every_us: u32, remembered_us: u32) -> Option<Estimator> {
    let interval_log = (0..=5).find(|log| every_us <= 250_000 << log)?;
    let lasts = |log: u32| f64::from(every_us) / -libm::log(1.0 - 1.0 / (1_u64 << log) as f64);
    let ewma_log = (1..32).find(|log| lasts(*log) > f64::from(remembered_us)).unwrap_or(32) - 1;
    (1..31).contains(&ewma_log).then_some(Estimator { interval_log, ewma_log: ewma_log as u8 })
}

/// Skips an estimator where none is modelled: on a filter.
pub(super) fn estimator_aside(
    words: &mut Words<'_>,
    notes: &mut Notes,
    tc: TcVersion,
) -> Result<(), Refusal> {
    estimator(words, tc)?;
    notes
        .aside
        .push("the rate estimator of a filter is not modelled: it only adds a line of statistics".into());
    Ok(())
}

/// A second `estimator` is refused.
fn estimator_once(
    given: &mut Option<Estimator>,
    words: &mut Words<'_>,
    tc: TcVersion,
) -> Result<(), Refusal> {
    if given.is_some() {
        let text = words.need()?;
        return Err(Refusal::duplicate("estimator", text).at(words.last()));
    }
    *given = Some(estimator(words, tc)?);
    Ok(())
}

/// Whether a word after `dev` is one of tc's or ip's keywords, because a variable was empty, rather than a
/// device's name.
pub fn no_device_name(word: &str) -> bool {
    const WORDS: [&str; 26] = [
        "root",
        "parent",
        "handle",
        "ingress",
        "egress",
        "clsact",
        "classid",
        "pref",
        "prio",
        "priority",
        "protocol",
        "chain",
        "block",
        "stab",
        "est",
        "estimator",
        "qdisc",
        "type",
        "up",
        "down",
        "mtu",
        "master",
        "txqueuelen",
        "name",
        "address",
        "dev",
    ];
    WORDS.contains(&word)
}

/// The device must be named and be there.
pub(super) fn find_device(dev: &str, env: &Env) -> Result<(), Refusal> {
    if dev.is_empty() {
        return Err(
            Refusal::new(2, "RTNETLINK answers: No such device").remedy("Say which device: dev NAME.")
        );
    }
    if !env.has(dev) && no_device_name(dev) {
        let remedy = format!(
            "\"{dev}\" is tc's own word: the name behind dev is missing. Is the variable there empty?"
        );
        return Err(Refusal::new(1, format!("Cannot find device \"{dev}\"")).remedy(remedy));
    }
    if !env.has(dev) {
        let there =
            env.devices.iter().flatten().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(
            Refusal::new(1, format!("Cannot find device \"{dev}\"")).remedy(format!("There is {there}."))
        );
    }
    Ok(())
}
