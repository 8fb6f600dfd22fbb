//! A test between this computer and a `tidegate serve`: what the path does each way, idle and under load.
//!
//! ```text
//! plan (a test of flent's name) ─▶ carry: probes both directions (prober::ServerSession), TCP flows (prober::FlowOpener), echo requests (prober::ping)
//!                                     └─ each load ─▶ document: all exchanges read together ─▶ Experiment
//! ```

mod carry;
mod document;
pub mod plan;

use crate::error::{Error, Result};
use document::{Done, HERE, Ways};
use plan::Plan;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_measure::experiment::{Experiment, LinkRecord, LoadRecord, NodeRecord, PolicyRecord};
use tidegate_prober::{ServerSession, ServerTarget};

/// Between two loads queues may empty.
const REST: Duration = Duration::from_millis(500);

/// A test that is to be carried out.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The server's address.
    pub target: ServerTarget,
    /// The name of the test, for the document; `None`: the usual loads.
    pub test: Option<String>,
    /// The loads of the test.
    pub plan: Plan,
    /// What the path as it is now is called in results.
    pub name: String,
    /// The flows' congestion control, both ways; empty: whatever the sender has.
    pub control: String,
    /// How often all of it is done, 1 or more.
    pub repeat: u32,
    /// The command line that measures again, for the document.
    pub again: String,
}

/// Shows that a load of this title and length runs, until the returned value is dropped.
pub type Progress<'p> = &'p dyn Fn(&str, Duration) -> Box<dyn Any>;

impl Measurement {
    /// How long it takes, rests included.
    pub fn length(&self) -> Duration {
        self.plan.loads.iter().map(|load| load.length + REST).sum()
    }

    /// Its loads that TCP makes: name, flows up, flows down.
    pub fn flows(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        let flows = self.plan.loads.iter().map(|load| (load.name.as_str(), load.up.len(), load.down.len()));
        flows.filter(|(_, up, down)| up + down > 0)
    }

    /// Measures all of it now, as a turn of an experiment that calls the path `name`.
    ///
    /// # Errors
    /// Nothing was measured, or not all of it.
    pub fn turn(&self, name: &str, stop: &'static AtomicBool, progress: Progress<'_>) -> Result<Experiment> {
        let experiment = Measurement { name: name.to_owned(), ..self.clone() }.carry_out(stop, progress)?;
        match experiment.runs.iter().any(|run| run.cut) {
            true => Err(Error::Partial(format!("a run ended early: {}", experiment.notes.join("; ")))),
            false => Ok(experiment),
        }
    }

    /// Carries all of it out; what was done before it broke off is the result. Setting `stop` ends it early.
    ///
    /// # Errors
    /// The server cannot be reached, or nothing was measured.
    pub fn carry_out(&self, stop: &'static AtomicBool, progress: Progress<'_>) -> Result<Experiment> {
        measure(self, stop, progress)
    }
}

/// Carries all of it out; what was done before it broke off is the result.
fn measure(options: &Measurement, stop: &'static AtomicBool, progress: Progress<'_>) -> Result<Experiment> {
    let Measurement { plan, target, .. } = options;
    let mut far = ServerSession::connect(target)?;
    far.stop_on(stop);
    let began_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let mut done: Vec<Done<'_>> = Vec::new();
    let mut broke: Option<tidegate_prober::Error> = None;
    let all = (0..options.repeat).flat_map(|repeat| plan.loads.iter().map(move |load| (repeat, load)));
    for (repeat, load) in all {
        if !done.is_empty() {
            std::thread::sleep(REST);
        }
        let shown = progress(&load.title, load.length);
        let carried = carry::carry(&mut far, target, load, &options.control, stop);
        drop(shown);
        match carried {
            Ok(carried) => {
                let is_cut = carried.outcome.cut.is_some();
                done.push(Done { plan: load, repeat, load: carried });
                if is_cut {
                    break;
                }
            }
            Err(error) if done.is_empty() => return Err(error.into()),
            Err(error) => {
                broke = Some(error);
                break;
            }
        }
    }
    if done.iter().all(|one| one.load.outcome.up.sent() == 0 && one.load.outcome.down.arrived() == 0) {
        return Err(Error::Partial("nothing was sent and nothing came".to_owned()));
    }
    let mut experiment = experiment(options, &far, &done, began_ns);
    if let Some(error) = broke {
        experiment.notes.push(format!("partial: {error}"));
        experiment.runs.iter_mut().for_each(|run| run.cut |= run.repeat + 1 == options.repeat);
    }
    if stop.load(Ordering::Relaxed) {
        experiment.notes.push("partial: it was stopped".to_owned());
    }
    Ok(experiment)
}

fn experiment(options: &Measurement, far: &ServerSession, done: &[Done<'_>], began_ns: u64) -> Experiment {
    let ways = Ways::of(done);
    let Measurement { plan, .. } = options;
    let server = options.target.host.clone();
    let mut runs = document::runs(done, &ways, &options.name, &server);
    let place = |name: &str| plan.loads.iter().position(|load| load.name == name);
    runs.sort_by_key(|run| (place(&run.load), run.repeat));
    let load = |load: &plan::LoadPlan| LoadRecord {
        name: load.name.clone(),
        title: load.title.clone(),
        test: load.test.clone(),
    };
    let node =
        |name: &str| NodeRecord { name: name.to_owned(), kind: "host".to_owned(), devices: Vec::new() };
    Experiment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: options.again.clone(),
        execution: "field".to_owned(),
        scenario: options.test.clone().unwrap_or_else(|| "measure".to_owned()),
        title: format!("{server}, {}", plan.title),
        about: format!("Measured with `tidegate serve` at {server} ({}).", far.address()),
        began_ns: Some(began_ns),
        nodes: vec![node(HERE), node(&server)],
        links: vec![LinkRecord {
            name: "path".to_owned(),
            from: HERE.to_owned(),
            to: server,
            ..LinkRecord::default()
        }],
        policies: vec![PolicyRecord {
            name: options.name.clone(),
            title: options.name.clone(),
            commands: Vec::new(),
        }],
        loads: plan.loads.iter().map(load).collect(),
        notes: notes(far, done, &ways, &runs),
        runs,
        ..Experiment::default()
    }
}

/// What the reader should know.
fn notes(
    far: &ServerSession,
    done: &[Done<'_>],
    ways: &Ways,
    runs: &[tidegate_measure::experiment::RunRecord],
) -> Vec<String> {
    let mut notes = vec![
        "one-way delays assume that the minimum is the same in both directions, which cannot be known \
        without synchronised clocks; round trips, and changes of delay, need no such assumption"
            .to_owned(),
    ];
    let cuts = done.iter().filter_map(|one| one.load.outcome.cut.as_ref().map(|why| (one.plan, why)));
    notes.extend(cuts.map(|(plan, why)| {
        format!(
            "partial: {} ended early, {why}; what became of packets upwards then is not known",
            plan.title
        )
    }));
    // A cut is reported above.
    notes.extend(ways.reading.caveats.iter().filter(|caveat| !caveat.starts_with("only part")).cloned());
    notes.extend(far.caveats());
    if done.iter().any(|one| one.plan.icmp && one.load.icmp.is_none()) {
        notes.push(
            "no echo requests beside: this user may not send any (sysctl net.ipv4.ping_group_range)"
                .to_owned(),
        );
    }
    let late = |run: &&tidegate_measure::experiment::RunRecord| {
        run.events.iter().any(|event| event.what.contains(" ended: "))
    };
    for run in runs.iter().filter(late) {
        for event in &run.events {
            notes.push(format!("{}: {}", run.load, event.what));
        }
    }
    notes
}
