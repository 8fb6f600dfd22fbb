//! The planner, on the model machine: from what one recorded script leaves behind to what the next one does, for all of them, each way leads where it
//! should, and a way from a place to itself is none.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use tidegate_gateway::{DeviceSpec, Gateway, World};
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_plan::{HIDDEN, Item, Plan, SHARED, plan};
use tidegate_policy::dump::Installed;
use tidegate_policy::{LinkKind, Op, TcError};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

const DEV: &str = "link0";
/// Recorded runs of a real kernel; here only what was configured there.
const RECORDED: [&[u8]; 5] = [
    include_bytes!("../../cli/tests/data/answers.tar.gz"),
    include_bytes!("../../cli/tests/data/answers-kinds.tar.gz"),
    include_bytes!("../../cli/tests/data/answers-filters.tar.gz"),
    include_bytes!("../../cli/tests/data/answers-rewrite.tar.gz"),
    include_bytes!("../../cli/tests/data/traces.tar.gz"),
];
const NOW: Time = Time(1_000_000_000);

/// A machine, and what it was told of the device.
struct Machine {
    gateway: Gateway,
    log: Vec<Op>,
}

impl Machine {
    fn new() -> Machine {
        let mut gateway = Gateway::new();
        for name in [DEV, "link1", "link2", "d0", "ifb0", "ifb1", "v0", "in1"] {
            gateway.add_device(name, DeviceSpec { speed_mbit: None, ..DeviceSpec::of(&LinkKind::Ethernet) });
        }
        Machine { gateway, log: Vec::new() }
    }

    /// Carries out an operation.
    fn told(&mut self, op: &Op) -> Result<(), TcError> {
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let done = self.gateway.apply(World { now: NOW, pool: &mut pool, draws: &mut draws }, op);
        self.log.extend(done.is_ok().then(|| op.clone()));
        done.map(drop)
    }

    fn stand(&mut self) -> Installed {
        tidegate_plan::installed(&mut self.gateway, NOW, DEV)
    }

    fn log_of_device(&self) -> Vec<Op> {
        self.log.iter().filter(|op| op.device() == Some(DEV)).cloned().collect()
    }
}

/// A machine that carried out a script's commands of tc.
fn machine(script: &str) -> Machine {
    let mut machine = Machine::new();
    for line in script.lines() {
        let words: Vec<String> = line.replace('\'', "").split_whitespace().skip(1).map(String::from).collect();
        if line.starts_with("tc ")
            && let Ok(tc::Parsed { command: TcCommand::Apply(op), .. }) = tc::parse(&words, &Env::default())
        {
            let _ = machine.told(&op);
        }
    }
    machine
}

/// Goes from one to another; what went wrong, if anything.
fn go(from: &str, to: &str) -> Result<(), String> {
    let (mut from, mut to) = (machine(from), machine(to));
    let (wanted, log) = (to.stand(), to.log_of_device());
    let way = plan(&from.stand(), &wanted, &log).map_err(|incomplete| incomplete.to_string())?;
    for op in way.ops() {
        from.told(op).map_err(|error| format!("refused: {error}: {op:?}"))?;
    }
    let left = plan(&from.stand(), &wanted, &log).map_err(|incomplete| incomplete.to_string())?;
    if left.is_empty() { Ok(()) } else { Err(differing(&from.stand(), &left)) }
}

/// The first thing that is left to do, beside what stands there.
fn differing(live: &Installed, left: &Plan) -> String {
    let step = left.steps.last().expect("there is one");
    let stands = match &step.item {
        Item::Qdisc(wanted) => format!("{:?}", live.qdiscs.iter().find(|qdisc| qdisc.parent == wanted.parent)),
        Item::Class(wanted) => format!("{:?}", live.classes.iter().find(|class| class.classid == wanted.classid)),
        Item::Filter(wanted) => format!(
            "{:?}",
            live.filters
                .iter()
                .filter(|filter| (filter.parent, filter.pref) == (wanted.parent, wanted.pref))
                .collect::<Vec<_>>()
        ),
    };
    format!("left: {:?} {:?}\n   stands: {stands}", step.sign, step.item)
}

/// The commands of every folder of an archive of recordings: its name, and `script.tc`.
fn commands(archive: &[u8]) -> Vec<(String, String)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut all = Vec::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").into_owned();
        if path.file_name().is_some_and(|name| name == "script.tc") {
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            all.push((folder.unwrap_or_default(), text));
        }
    }
    all
}

#[test]
fn every_way_between_recorded_scripts_leads_there() {
    let mut scripts: Vec<(String, String)> = Vec::new();
    for archive in RECORDED {
        scripts.extend(commands(archive));
    }
    assert!(scripts.len() > 200, "{}", scripts.len());
    let (mut failed, mut hidden) = (Vec::new(), 0);
    for (at, (name, script)) in scripts.iter().enumerate() {
        let (other, next) = &scripts[(at + 1) % scripts.len()];
        let nothing = ("nothing".to_owned(), String::new());
        for (to, text) in [(other, next), (name, script), (&nothing.0, &nothing.1)] {
            match go(script, text) {
                Err(why) if why.ends_with(HIDDEN) || why.ends_with(SHARED) => hidden += 1,
                Err(why) => failed.push(format!("{name} → {to}: {why}")),
                Ok(()) => {}
            }
        }
    }
    // Few scripts hang classes below such a qdisc, or share tables.
    assert!(hidden < scripts.len() / 10, "{hidden}");
    let names: BTreeSet<&str> = failed.iter().filter_map(|line| line.split(':').next()).collect();
    assert!(
        failed.is_empty(),
        "{} of {}: {names:?}\n{}",
        failed.len(),
        scripts.len() * 3,
        failed[..failed.len().min(40)].join("\n")
    );
}
