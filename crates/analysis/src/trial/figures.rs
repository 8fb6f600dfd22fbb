//! What tables and pages derive from a trial: pairs of runs, goodputs, what a class did while measured.

use tidegate_measure::bits_per_second;
use tidegate_measure::trial::{ClassSeries, TreeNode, TrialDocument, TrialProbe, TrialRun};

/// The two runs of a load; a document from elsewhere may lack one.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'t> {
    /// The one without the policy.
    pub without: Option<&'t TrialRun>,
    /// The one with it.
    pub with: Option<&'t TrialRun>,
}

impl<'t> Pair<'t> {
    /// One that is there.
    pub fn any(&self) -> Option<&'t TrialRun> {
        self.with.or(self.without)
    }

    /// The load's name.
    pub fn load(&self) -> &'t str {
        self.any().map_or("", |run| &run.load)
    }

    /// The load's title.
    pub fn title(&self) -> &'t str {
        self.any().map_or("", |run| &run.title)
    }

    /// Those there are, each with the word for it.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &'t TrialRun)> {
        [("without", self.without), ("with", self.with)]
            .into_iter()
            .filter_map(|(word, run)| Some((word, run?)))
    }

    /// A probe in both runs, by its id.
    pub fn probe(&self, id: &str) -> FigurePair<'t> {
        let of = |run: Option<&'t TrialRun>| {
            run.and_then(|run| run.probes.iter().find(|p| p.id == id).map(|p| (run, p)))
        };
        FigurePair { without: of(self.without), with: of(self.with) }
    }

    /// The ids of all probes, in order.
    pub fn probe_ids(&self) -> Vec<&'t str> {
        let mut ids: Vec<&str> = Vec::new();
        for probe in self.each().flat_map(|(_, run)| &run.probes) {
            if !ids.contains(&probe.id.as_str()) {
                ids.push(&probe.id);
            }
        }
        ids
    }
}

/// A probe without and with the policy, each with its run.
#[derive(Clone, Copy, Debug)]
pub struct FigurePair<'t> {
    /// Without the policy.
    pub without: Option<(&'t TrialRun, &'t TrialProbe)>,
    /// With it.
    pub with: Option<(&'t TrialRun, &'t TrialProbe)>,
}

impl<'t> FigurePair<'t> {
    /// One that is there.
    pub fn any(&self) -> Option<&'t TrialProbe> {
        self.with.or(self.without).map(|(_, probe)| probe)
    }

    /// A figure without and with: `of` takes a probe's figures.
    pub fn both<T>(&self, of: impl Fn(&tidegate_measure::Pings) -> Option<T>) -> [Option<T>; 2] {
        [self.without, self.with].map(|side| side.and_then(|(run, probe)| of(&probe.figures(run.window))))
    }
}

/// The loads of a trial, in order, each with its runs.
pub fn pairs(trial: &TrialDocument) -> Vec<Pair<'_>> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for run in trial.runs.iter().filter(|run| !run.witnesses) {
        let at = pairs.iter().position(|pair| pair.load() == run.load).unwrap_or_else(|| {
            pairs.push(Pair { without: None, with: None });
            pairs.len() - 1
        });
        let side = if run.policy { &mut pairs[at].with } else { &mut pairs[at].without };
        side.get_or_insert(run);
    }
    pairs
}

/// The id of the probe that represents a run: the ping, else the first there is.
pub fn main_probe<'t>(pair: &Pair<'t>) -> Option<&'t str> {
    let ids = pair.probe_ids();
    ids.iter().find(|id| **id == "ping").or(ids.first()).copied()
}

/// The load that hurts most without the policy: where the main probe's 95th percentile is longest, or all its
/// requests are lost.
pub fn hardest<'t>(pairs: &[Pair<'t>]) -> Option<Pair<'t>> {
    let pain = |pair: &Pair<'_>| {
        let pair_of_probe = main_probe(pair).map(|id| pair.probe(id));
        let p95 = pair_of_probe.and_then(|pair| pair.both(|figures| figures.rtt.percentile(95.0))[0]);
        let busy = pair.any().is_some_and(|run| !run.flows.is_empty());
        (busy, p95.unwrap_or(u64::MAX))
    };
    pairs.iter().max_by_key(|pair| pain(pair)).copied()
}

/// The run in which the classes are seen at work: the one in which something was sent for each of them, else
/// that of the load that hurts most.
pub fn classes_at_work<'t>(trial: &'t TrialDocument, pairs: &[Pair<'t>]) -> Option<&'t TrialRun> {
    every_class(trial).or_else(|| hardest(pairs)?.with)
}

/// The run in which something was sent for each class, if one was needed.
pub fn every_class(trial: &TrialDocument) -> Option<&TrialRun> {
    trial.runs.iter().find(|run| run.witnesses && run.policy)
}

/// Payload bits per second of all transfers one way; `None` where there are none.
pub fn goodput(run: &TrialRun, up: bool) -> Option<f64> {
    let rates: Vec<f64> =
        run.flows.iter().filter(|flow| flow.up == up).map(|flow| flow.rate(run.window)).collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

/// Which steps of a series lie in a run's window.
pub fn window_steps(run: &TrialRun) -> std::ops::Range<usize> {
    let step = run.step_ns.max(1);
    (run.window.0 / step) as usize..(run.window.1.div_ceil(step)) as usize
}

/// A part of a series, however long that is.
pub fn part<T>(series: &[T], range: std::ops::Range<usize>) -> &[T] {
    let end = range.end.min(series.len());
    series.get(range.start.min(end)..end).unwrap_or_default()
}

/// What a class did while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassFigures {
    /// Bytes it sent.
    pub sent: u64,
    /// Bits per second.
    pub rate: f64,
    /// Packets it dropped.
    pub dropped: u64,
    /// The most packets that waited at once.
    pub peak_packets: u32,
    /// The most bytes that waited at once.
    pub peak_bytes: u64,
}

impl ClassFigures {
    /// Of a class while its run was measured.
    pub fn new(run: &TrialRun, class: &ClassSeries) -> ClassFigures {
        let steps = window_steps(run);
        let sent = part(&class.sent, steps.clone()).iter().sum();
        ClassFigures {
            sent,
            rate: bits_per_second(sent, steps.len() as u64 * run.step_ns),
            dropped: part(&class.dropped, steps.clone()).iter().map(|&n| u64::from(n)).sum(),
            peak_packets: part(&class.qlen, steps.clone()).iter().copied().max().unwrap_or(0),
            peak_bytes: part(&class.backlog, steps).iter().copied().max().unwrap_or(0),
        }
    }
}

/// How a class or qdisc of the tree is called in series: with its device unless that leads to the modem.
pub fn label(trial: &TrialDocument, node: &TreeNode) -> String {
    if node.device == trial.device { node.id.clone() } else { format!("{} {}", node.device, node.id) }
}

/// The tree's entry for a series' class.
pub fn node<'t>(trial: &'t TrialDocument, id: &str) -> Option<&'t TreeNode> {
    let called = |node: &&TreeNode| {
        let there = if node.device == trial.device {
            Some(id)
        } else {
            id.strip_prefix(&node.device).and_then(|id| id.strip_prefix(' '))
        };
        there == Some(node.id.as_str())
    };
    trial.tree.iter().find(called)
}
