//! Expectations compared with measurements, and with the classes that packets take.

use super::suite::{Case, Suite};
use super::words::{Bound, Ending, Expected, Figure, Measured, Subject};
use crate::loads::Workload;
use crate::policy::TrialPolicy;
use crate::trial::measure;
use tidegate_inspect::{Explainer, Packet, PolicyModel, Story};
use tidegate_measure::numbers::{milliseconds, percent, rate};
use tidegate_measure::outcome;
use tidegate_measure::trial::{TrialDocument, TrialProbe, TrialRun};
use tidegate_measure::{Durations, Pings, bits_per_second, share};
use tidegate_scenario::shell::quoted;

/// The result of an expectation.
pub struct Verdict {
    /// Does the expectation hold?
    pub passed: bool,
    /// The figure, or where the packet ended.
    pub found: String,
    /// The command that shows it.
    pub again: String,
}

/// The results of a file.
pub struct TestResults<'s> {
    /// The file of expectations.
    pub suite: &'s Suite,
    /// Each with the number of its expectation, from 1.
    pub verdicts: Vec<(usize, Verdict)>,
    /// What was measured, if anything had to be.
    pub trial: Option<TrialDocument>,
}

/// Holds the expectations of a file against its policy; each load is simulated once.
///
/// The policy is loaded only where something is simulated, and read only where a packet is followed. `only`:
/// the expectation of that number, from 1.
///
/// # Errors
/// Those of loading and reading the policy.
pub fn evaluate<'s, E>(
    suite: &'s Suite,
    only: Option<usize>,
    policy: impl FnOnce() -> Result<TrialPolicy, E>,
    reading: impl FnOnce() -> Result<PolicyModel, E>,
) -> Result<TestResults<'s>, E> {
    let chosen: Vec<(usize, &Case)> =
        (1..).zip(&suite.cases).filter(|(number, _)| only.is_none_or(|only| only == *number)).collect();
    let mut workloads: Vec<Workload> = Vec::new();
    for (_, case) in &chosen {
        if let Expected::Measured(Measured { workload, .. }) = &case.expected
            && !workloads.contains(workload)
        {
            workloads.push(workload.clone());
        }
    }
    let mut trial =
        if workloads.is_empty() { None } else { Some(measure(&suite.settings, &policy()?, &workloads)) };
    if let Some(trial) = &mut trial {
        let only = only.map_or_else(String::new, |only| format!(" --only {only}"));
        let file = quoted(&suite.path.display().to_string());
        trial.again = format!("tidegate test {file}{only} --figures{}", arguments(suite));
    }
    let packets = chosen.iter().any(|(_, case)| matches!(case.expected, Expected::Packet(..)));
    let reading = if packets { Some(reading()?) } else { None };
    let mut verdicts = Vec::new();
    for (number, case) in chosen {
        let verdict = match (&case.expected, &trial, &reading) {
            (Expected::Measured(measured), Some(trial), _) => {
                let run = workloads
                    .iter()
                    .position(|workload| *workload == measured.workload)
                    .and_then(|at| trial.runs.get(at));
                // Every workload that is needed was simulated.
                let Some(run) = run else { continue };
                of_figure(suite, number, trial, run, measured)
            }
            (Expected::Packet(packet, endings), _, Some(reading)) => {
                of_packet(suite, reading, packet, endings)
            }
            _ => continue,
        };
        verdicts.push((number, verdict));
    }
    Ok(TestResults { suite, verdicts, trial })
}

fn of_figure(
    suite: &Suite,
    number: usize,
    trial: &TrialDocument,
    run: &TrialRun,
    measured: &Measured,
) -> Verdict {
    let again = again(suite, number);
    match figure(trial, run, measured) {
        Ok(value) => {
            let bound = match measured.bound {
                Bound::Link(part) => part * link(trial, &measured.subject),
                Bound::Time(value) | Bound::Part(value) | Bound::Rate(value) | Bound::Count(value) => value,
            };
            let found = match measured.bound {
                Bound::Time(_) => milliseconds(value as u64),
                Bound::Part(_) => percent(value),
                Bound::Rate(_) => rate(value),
                Bound::Link(_) => {
                    let part = value / link(trial, &measured.subject).max(1.0);
                    format!("{}, {part:.3} of the link", rate(value))
                }
                // Rounded down: a score below its bound never looks like the bound.
                Bound::Count(_) if matches!(measured.figure, Figure::Outcome(_)) => {
                    format!("{:.1}", (value * 10.0).floor() / 10.0)
                }
                Bound::Count(_) => format!("{value}"),
            };
            Verdict { passed: measured.compare.is_met(value, bound), found, again }
        }
        Err(why) => Verdict { passed: false, found: why, again },
    }
}

/// The rate of the link in the direction that is meant.
fn link(trial: &TrialDocument, subject: &Subject) -> f64 {
    match subject {
        Subject::Flows { up: false } => trial.link.down_bits as f64,
        _ => trial.link.up_bits as f64,
    }
}

/// The figure, in the unit of its bound; or why there is none.
fn figure(trial: &TrialDocument, run: &TrialRun, measured: &Measured) -> Result<f64, String> {
    match (&measured.subject, measured.figure) {
        (Subject::Probe(id), figure) => {
            let probe = run.probes.iter().find(|probe| probe.id == *id);
            let probe = probe.ok_or_else(|| format!("nothing was measured of it: `probes` has no {id}"))?;
            match figure {
                Figure::Outcome(application) => outcome_of(probe, run, application),
                figure => waited(probe.figures(run.window), figure),
            }
        }
        (Subject::Class(id), Figure::Rate | Figure::Drops) => of_class(run, id, measured.figure),
        (Subject::Class(id), figure) => {
            let probes: Vec<&TrialProbe> = run
                .probes
                .iter()
                .filter(|probe| probe.class.as_deref().is_some_and(|class| is_in(class, id)))
                .collect();
            if probes.is_empty() {
                return Err(format!("no probe's packets take class {id}; {}", taken(run)));
            }
            waited(together(&probes, run), figure)
        }
        (Subject::Host(host), figure) => {
            let bytes = of_host(run, measured, Some(*host));
            let ns = run.window.1.saturating_sub(run.window.0);
            match figure {
                Figure::Share => Ok(share(bytes, of_host(run, measured, None))),
                _ => Ok(bits_per_second(bytes, ns)),
            }
        }
        (Subject::Flows { up }, _) => {
            let bytes = run.flows.iter().filter(|flow| flow.up == *up).map(|flow| flow.bytes).sum();
            Ok(bits_per_second(bytes, run.window.1.saturating_sub(run.window.0)))
        }
    }
    .map_err(|why| format!("{why} (device {})", trial.device))
}

/// How well one of tidegate's applications does with a probe's packets, 0 to 100.
fn outcome_of(probe: &TrialProbe, run: &TrialRun, application: &str) -> Result<f64, String> {
    let packets = probe.figures(run.window);
    let score = outcome::application_named(application)
        .and_then(|application| outcome::score_of(application, &probe.unit, &packets));
    let few = || {
        format!(
            "{} packets were sent, a score needs {}: `duration` sets how long is measured",
            packets.sent(),
            outcome::MIN_SAMPLES
        )
    };
    score.map(|found| found.score).ok_or_else(few)
}

fn waited(pings: Pings, figure: Figure) -> Result<f64, String> {
    let none = || "none of its answers came".to_owned();
    match figure {
        Figure::Loss => Ok(pings.loss()),
        Figure::Mean => pings.rtt.mean().map(|ns| ns as f64).ok_or_else(none),
        Figure::Percentile(p) => pings.rtt.percentile(p).map(|ns| ns as f64).ok_or_else(none),
        Figure::Rate | Figure::Share | Figure::Drops | Figure::Outcome(_) => {
            Err("such a figure is not measured of it".into())
        }
    }
}

/// Several probes as one.
fn together(probes: &[&TrialProbe], run: &TrialRun) -> Pings {
    let all: Vec<Pings> = probes.iter().map(|probe| probe.figures(run.window)).collect();
    let values = all.iter().flat_map(|pings| {
        // Every rank once: the values in order.
        let count = pings.rtt.count();
        (1..=count).filter_map(move |n| pings.rtt.percentile(100.0 * n as f64 / count as f64))
    });
    Pings { rtt: Durations::new(values.collect()), lost: all.iter().map(|pings| pings.lost).sum() }
}

/// Is a class this one, or one below it: of the qdisc on it that has its number?
fn is_in(class: &str, id: &str) -> bool {
    let own = id.split(':').nth(1).unwrap_or("");
    class == id || !own.is_empty() && class.strip_prefix(own).is_some_and(|rest| rest.starts_with(':'))
}

fn taken(run: &TrialRun) -> String {
    let taken: Vec<String> = run
        .probes
        .iter()
        .filter_map(|probe| Some(format!("{} takes {}", probe.id, probe.class.as_ref()?)))
        .collect();
    if taken.is_empty() { "no probe takes any".into() } else { taken.join(", ") }
}

fn of_class(run: &TrialRun, id: &str, figure: Figure) -> Result<f64, String> {
    let Some(series) = run.classes.iter().find(|series| series.id == id) else {
        let known: Vec<&str> = run.classes.iter().map(|series| series.id.as_str()).collect();
        return Err(format!("there is no class {id}; there are {}", known.join(", ")));
    };
    let step = run.step_ns.max(1);
    let (from, to) = ((run.window.0 / step) as usize, (run.window.1 / step) as usize);
    let within = |len: usize| from.min(len)..to.min(len);
    let sent: u64 = series.sent[within(series.sent.len())].iter().sum();
    let dropped: u64 = series.dropped[within(series.dropped.len())].iter().map(|n| u64::from(*n)).sum();
    Ok(match figure {
        Figure::Drops => dropped as f64,
        _ => bits_per_second(sent, run.window.1.saturating_sub(run.window.0)),
    })
}

/// Payload of a computer's transfers, or of all; the transfers are in the order of the workload.
fn of_host(run: &TrialRun, measured: &Measured, host: Option<char>) -> u64 {
    let hosts: Vec<char> = match &measured.workload {
        Workload::Transfers(several) => {
            several.iter().flat_map(|t| std::iter::repeat_n(t.host, usize::from(t.count))).collect()
        }
        Workload::Named(_) => vec!['a'; run.flows.len()],
    };
    let flows = run.flows.iter().zip(hosts);
    flows.filter(|(_, of)| host.is_none_or(|host| host == *of)).map(|(flow, _)| flow.bytes).sum()
}

fn of_packet(suite: &Suite, reading: &PolicyModel, packet: &Packet, endings: &[Ending]) -> Verdict {
    let packet_word = quoted(&packet.to_string());
    let again =
        format!("tidegate explain {} {packet_word}{}", quoted(&suite.settings.script), arguments(suite));
    let mut explainer = Explainer::new(reading);
    match explainer.course(packet) {
        Err(why) => Verdict { passed: false, found: why.to_string(), again },
        Ok(course) => {
            let story = explainer.explain(packet, course);
            Verdict { passed: endings.iter().all(|ending| ends(&story, ending)), found: ended(&story), again }
        }
    }
}

fn ends(story: &Story, ending: &Ending) -> bool {
    match ending {
        Ending::Class(id) => story.end.classes.iter().any(|class| class.to_string() == *id),
        Ending::Queue(kind) => story.end.queue.split(' ').next() == Some(kind),
        Ending::Device(name) => story.end.device == *name,
        Ending::Mark(mark) => story.mark == *mark,
        Ending::Lost => story.end.lost.is_some(),
    }
}

fn ended(story: &Story) -> String {
    match story.mark {
        0 => story.end.text.clone(),
        mark => format!("{}, with mark {mark:#x}", story.end.text),
    }
}

/// The command that shows a figure.
fn again(suite: &Suite, number: usize) -> String {
    let file = quoted(&suite.path.display().to_string());
    format!("tidegate test {file} --only {number} --figures{}", arguments(suite))
}

/// The arguments of the policy's script, as at the end of a command line.
fn arguments(suite: &Suite) -> String {
    let args: String = suite.settings.args.iter().map(|arg| format!(" {}", quoted(arg))).collect();
    if args.is_empty() { args } else { format!(" --{args}") }
}
