//! Sessions that a real tc had with Linux 6.1 (`crates/cli/tests/data/commands.tar.gz`): filters and actions
//! made, changed, refused and listed. What tc itself reads and prints belongs to `tidegate-syntax`; here what
//! the kernel refuses, keeps and lists is compared.

use super::vectors::words;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_archives::texts;
use tidegate_classify::{Actions, DumpContext, FilterList, FilterRandom, Owner};
use tidegate_packet::{Handle, Jiffies, Seeded, Time, Wheel};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{
    Act, Action, ActionsOp, FilterOp, FilterParams, Op, QdiscOp, QdiscParams, TcError, Verb,
};
use tidegate_syntax::tc::{self, Object, ShowActions, ShowWhat, TcCommand};
use tidegate_syntax::{Device, Env};

/// Lines of the archive that the command line answers otherwise, with the reason.
const DIFFER: &str = include_str!("../../../cli/tests/data/commands-differ.txt");
const CLSACT: Handle = Handle(0xffff_0000);
const ARRIVING: Handle = Handle(0xffff_fff2);
const LEAVING: Handle = Handle(0xffff_fff3);

/// What is not about filters and actions alone: the rest of the session needs a machine.
struct Elsewhere;

/// A device's filters at one parent.
struct List {
    qdisc: Handle,
    classes: BTreeSet<u32>,
    filters: FilterList,
}

struct Machine {
    devices: Vec<String>,
    /// By device and parent.
    lists: BTreeMap<(String, u32), List>,
    actions: Actions,
    random: Seeded,
    flow_key_drawn: bool,
    wheel: Wheel,
    now: Time,
}

impl Machine {
    fn new(devices: &str, hz: u32) -> Machine {
        let mut actions = Actions::default();
        // The kernel that was asked is built so.
        actions.without_zones();
        Machine {
            devices: devices.split('+').map(str::to_owned).collect(),
            lists: BTreeMap::new(),
            actions,
            random: Seeded::new(1),
            flow_key_drawn: false,
            wheel: Wheel::new(Jiffies { hz }),
            now: Time(1_000_000_000),
        }
    }

    /// What tc prints when it is given these words; `None`: tc's own answer, or another part's.
    fn answer(&mut self, words: &[String]) -> Result<Option<String>, Elsewhere> {
        let devices = self.devices.iter();
        let devices = devices.map(|name| Device { name: name.clone(), ..Device::default() }).collect();
        let Ok(parsed) = tc::parse(words, &Env { devices: Some(devices), ..Env::default() }) else {
            return Ok(None);
        };
        self.count_actions();
        match parsed.command {
            TcCommand::Apply(op) => {
                let Some(done) = self.apply(&op)? else { return Ok(None) };
                Ok(Some(match done {
                    Ok(None) => parsed.stderr,
                    Ok(Some(warning)) => parsed.stderr + &format!("Warning: {warning}\n"),
                    Err(error) => parsed.stderr + &tc::refusal_text(&op, &error).0,
                }))
            }
            TcCommand::Show(what) if what.object == Object::Filter && !parsed.flags.brief => {
                let Some(dumps) = self.listed(&what) else { return Ok(None) };
                Ok(Some(tc::show_filters(&dumps, &what, &parsed.flags)))
            }
            TcCommand::ShowActions(what) => {
                let dumps = match &what {
                    ShowActions::Kind(kind) => Ok(self.actions.dump(kind, self.now)),
                    ShowActions::Numbered(ids) => self.actions.get(ids, self.now),
                };
                let refused = |error| tc::refusal_text(&Op::Actions(ActionsOp::Delete(Vec::new())), &error).0;
                let shown = dumps.map(|mut dumps| {
                    dumps.iter_mut().for_each(|dump| self.name_target(&mut dump.action));
                    tc::show_actions(&dumps, &what, &parsed.flags)
                });
                Ok(Some(shown.unwrap_or_else(refused)))
            }
            _ => Ok(None),
        }
    }

    fn listed(&self, what: &ShowWhat) -> Option<Vec<FilterDump>> {
        let dev = what.dev.as_ref().filter(|_| what.block == 0)?;
        let (list, parent) = self.lists.iter().find_map(|((of, parent), list)| {
            let parent = Handle(*parent);
            let fits = match what.parent {
                None | Some(Handle::ROOT) => list.qdisc != CLSACT,
                Some(wanted) => wanted == parent,
            };
            (of == dev && fits).then_some((list, parent))
        })?;
        let mut dumps = Vec::new();
        let context = DumpContext { now: self.now, actions: &self.actions };
        list.filters.dump(context, dev, parent, None, &mut dumps);
        for dump in &mut dumps {
            let FilterEntry::Filter { actions, params, .. } = &mut dump.entry else { continue };
            if let Some(indev) = params.indev_mut() {
                indev.name = self.devices.get(indev.device as usize)?.clone();
            }
            actions.iter_mut().for_each(|dump| self.name_target(&mut dump.action));
        }
        Some(dumps)
    }

    fn name_target(&self, action: &mut Action) {
        if let Act::Mirred(mirred) = &mut action.act {
            mirred.to = self.devices.get(mirred.device as usize).map_or("*", String::as_str).into();
        }
    }

    /// Carries out an operation; `None`: it is refused before it comes to filters and actions.
    fn apply(&mut self, op: &Op) -> Result<Option<Result<Option<String>, TcError>>, Elsewhere> {
        match op {
            Op::Qdisc(op) => self.qdisc(op).map(|()| None),
            // It names a qdisc of handle ffff:ffff, and there is none.
            Op::Filter(op) if op.parent == Handle::ROOT => Ok(None),
            Op::Filter(op) if op.block == 0 => {
                let mut op = op.clone();
                if self.complete(&mut op.params, &mut op.actions).is_none() {
                    return Ok(None);
                }
                let done = self.filter(&op)?;
                if op.verb != Verb::Add {
                    self.actions.filters_may_be_gone(self.now);
                }
                Ok(Some(done.map(|()| None)))
            }
            Op::Actions(op) => {
                let mut op = op.clone();
                if let ActionsOp::Set(_, actions) = &mut op
                    && self.complete(&mut None, actions).is_none()
                {
                    return Ok(None);
                }
                Ok(Some(self.actions.apply(&op, self.now)))
            }
            _ => Err(Elsewhere),
        }
    }

    /// The devices that an operation names, as numbers; `None`: one is not there.
    fn complete(&self, params: &mut Option<FilterParams>, actions: &mut [Action]) -> Option<()> {
        let number = |name: &str| Some(self.devices.iter().position(|known| known == name)? as u32);
        if let Some(indev) = params.as_mut().and_then(FilterParams::indev_mut) {
            indev.device = number(&indev.name)?;
        }
        for action in actions {
            if let Act::Mirred(mirred) = &mut action.act
                && !mirred.to.is_empty()
            {
                mirred.device = number(&mirred.to)?;
            }
        }
        Some(())
    }

    fn qdisc(&mut self, op: &QdiscOp) -> Result<(), Elsewhere> {
        if op.verb != Verb::Add || self.lists.keys().any(|(dev, _)| *dev == op.dev) {
            return Err(Elsewhere);
        }
        let mut put = |parent: Handle, qdisc: Handle, bands: u16| {
            let classes = (1..=bands).map(|band| qdisc.class(band).0).collect();
            self.lists
                .insert((op.dev.clone(), parent.0), List { qdisc, classes, filters: FilterList::new() });
        };
        match (op.kind.as_deref(), &op.params) {
            (Some("ingress"), _) => put(CLSACT, CLSACT, 0),
            (Some("clsact"), _) => {
                put(ARRIVING, CLSACT, 0);
                put(LEAVING, CLSACT, 0);
            }
            (Some("prio"), params) if op.parent == Handle::ROOT && !op.handle.is_none() => {
                let bands = match params {
                    Some(QdiscParams::Prio(prio)) => prio.bands,
                    _ => 3,
                };
                put(op.handle, op.handle, bands as u16);
            }
            _ => return Err(Elsewhere),
        }
        Ok(())
    }

    fn filter(&mut self, op: &FilterOp) -> Result<Result<(), TcError>, Elsewhere> {
        let parent = match op.parent {
            Handle::NONE => {
                let root = |((dev, parent), list): (&(String, u32), &List)| {
                    (*dev == op.dev && list.qdisc != CLSACT).then_some(*parent)
                };
                self.lists.iter().find_map(root).ok_or(Elsewhere)?
            }
            parent => parent.0,
        };
        let list = self.lists.get_mut(&(op.dev.clone(), parent)).ok_or(Elsewhere)?;
        let classes = &list.classes;
        let owner = Owner {
            qdisc: list.qdisc,
            holder: Handle(parent),
            has_class: &|class| classes.contains(&class.0),
            now: self.now,
            wheel: &self.wheel,
        };
        let mut random = FilterRandom { source: &mut self.random, flow_key_drawn: &mut self.flow_key_drawn };
        Ok(list.filters.apply(op, owner, &mut self.actions, &mut random))
    }

    fn count_actions(&mut self) {
        if self.actions.must_count(self.now, false) {
            let lists = &self.lists;
            self.actions.count(|show| lists.values().for_each(|list| list.filters.each_action(show)));
        }
    }
}

/// A command of a session: the line of its file, and what was printed.
#[derive(Default)]
struct Exchange {
    line: usize,
    command: String,
    printed: String,
    /// A usage text followed.
    usage: bool,
}

/// The exchanges of each session, with its devices and timer ticks.
fn sessions(text: &str) -> Vec<(String, u32, Vec<Exchange>)> {
    let mut all: Vec<(String, u32, Vec<Exchange>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with("# ")) {
        if let Some(machine) = line.strip_prefix("@ ") {
            let words: Vec<&str> = machine.split(' ').collect();
            all.push((words[0].to_owned(), words[2].parse().expect("ticks"), Vec::new()));
            continue;
        }
        let exchanges = &mut all.last_mut().expect("a session begins with its machine").2;
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.trim().to_owned();
            exchanges.push(Exchange { line: number, command, ..Exchange::default() });
            continue;
        }
        let exchange = exchanges.last_mut().expect("answers follow a command");
        match line.strip_prefix("! ") {
            Some("~") => exchange.usage = true,
            Some(complaint) => exchange.printed += &format!("{complaint}\n"),
            None if line.starts_with("= ") => {}
            None => exchange.printed += &format!("{line}\n"),
        }
    }
    all
}

/// Lines of a file that are known to be answered otherwise.
fn is_known(file: &str, line: usize) -> bool {
    DIFFER.lines().filter_map(|row| row.split(" | ").next()?.split_once(':')).any(|(of, lines)| {
        let (from, to) = lines.split_once('-').unwrap_or((lines, lines));
        let number = |text: &str| text.parse::<usize>().expect("a line's number");
        of == file && (number(from)..=number(to)).contains(&line)
    })
}

#[test]
fn filters_and_actions_are_refused_kept_and_listed_as_linux_did() {
    let (mut differ, mut count, mut left) = (String::new(), 0, 0);
    for (file, text) in texts("commands") {
        for (devices, hz, exchanges) in sessions(&text) {
            let mut machine = Machine::new(&devices, hz);
            let total = exchanges.len();
            for (at, exchange) in exchanges.into_iter().enumerate() {
                let command = words(&exchange.command);
                let answer = if command[0] == "tc" { machine.answer(&command[1..]) } else { Err(Elsewhere) };
                let Ok(printed) = answer else {
                    left += total - at;
                    break;
                };
                let Some(printed) = printed.filter(|_| !exchange.usage && !is_known(&file, exchange.line))
                else {
                    continue;
                };
                count += 1;
                if printed.trim_end() != exchange.printed.trim_end() {
                    let Exchange { line, command, printed: wanted, .. } = exchange;
                    differ += &format!("{file}:{line} {command}\n  Linux {wanted:?}\n  here  {printed:?}\n");
                }
            }
        }
    }
    println!("{count} answers compared, {left} need more of a machine");
    assert!(differ.is_empty(), "{differ}");
    assert!(count > 5000, "only {count} answers");
}
