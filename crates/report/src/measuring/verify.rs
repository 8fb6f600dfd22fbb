//! What a policy changed, in turns: the terminal's view of `tidegate_analysis::verify`'s rows.

use crate::table::{Align, Table};
use tidegate_analysis::verify::{ChangeVerdict, Predicted, VerifyRow, rows};
use tidegate_measure::experiment::Experiment;
use tidegate_measure::paired::Paired;

/// Predicted beside measured; empty where nothing was predicted.
fn beside(rows: &[VerifyRow], predicted: &[Predicted]) -> String {
    let columns = [
        ("predicted", Align::Left),
        ("figure", Align::Left),
        ("without", Align::Right),
        ("measured", Align::Right),
        ("with", Align::Right),
        ("measured", Align::Right),
    ];
    let mut table = Table::new(columns).with_two_keys();
    for one in predicted {
        let measured = rows.iter().find(|row| row.load == one.load && row.figure == one.figure);
        let Some(row) = measured else { continue };
        let Paired { first, second, .. } = row.paired;
        let shown = [one.without, first, one.with, second].map(|number| row.shown(number));
        table.row([one.load.clone(), one.figure.clone()].into_iter().chain(shown));
    }
    if table.is_empty() { String::new() } else { format!("\n{table}") }
}

/// How many differences are sure alone and not together, with the remedy; empty of none.
fn open(rows: &[VerifyRow]) -> String {
    let is_open = |row: &&VerifyRow| row.paired.is_sure() && row.verdict() == ChangeVerdict::Unsure;
    match rows.iter().filter(is_open).count() {
        0 => String::new(),
        count => format!(
            "\nThe intervals of {count} of the rows called not significant exclude zero, but of {} rows chance \
            alone\nmay do that to some. More rounds decide: --repeats.\n",
            rows.len()
        ),
    }
}

/// The terminal's view: figure by figure, then what was predicted.
pub fn text(experiment: &Experiment, predicted: &[Predicted]) -> String {
    let columns = [
        ("load", Align::Left),
        ("figure", Align::Left),
        ("without", Align::Right),
        ("with", Align::Right),
        ("difference (95 % interval)", Align::Left),
        ("", Align::Left),
    ];
    let mut table = Table::new(columns).with_two_keys();
    let mut last = None;
    let rows = rows(experiment);
    for row in &rows {
        if last.is_some_and(|load: &String| *load != row.load) {
            table.rule();
        }
        let Paired { first, second, .. } = row.paired;
        table.row([
            row.load.clone(),
            row.figure.clone(),
            row.shown(first),
            row.shown(second),
            row.change(),
            row.verdict().word().to_owned(),
        ]);
        last = Some(&row.load);
    }
    format!("{table}{}{}", open(&rows), beside(&rows, predicted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_analysis::verify::json;
    use tidegate_measure::experiment::{LoadRecord, PolicyRecord, ProbeRecord, RunRecord, TransferRecord};

    fn run(policy: &str, load: &str, repeat: u32, rtt_ms: u64, bytes: u64) -> RunRecord {
        let answers = (0..20).map(|n| (n, Some((rtt_ms + n % 2) * 1_000_000))).collect();
        let ping = ProbeRecord { id: "ping".into(), answers, ..ProbeRecord::default() };
        let upload = TransferRecord { id: "upload-1".into(), bytes, ..TransferRecord::default() };
        let window = (0, 1_000_000_000);
        RunRecord {
            policy: policy.into(),
            load: load.into(),
            repeat,
            window,
            probes: vec![ping],
            transfers: vec![upload],
            ..RunRecord::default()
        }
    }

    /// Runs under the load `up`: in each round without and with, as milliseconds of the ping and bytes sent.
    fn rounds(of: &[[(u64, u64); 2]]) -> Vec<RunRecord> {
        let round = |(repeat, [without, with]): (u32, &[(u64, u64); 2])| {
            [("without", without), ("with", with)]
                .map(|(policy, (rtt_ms, bytes))| run(policy, "up", repeat, *rtt_ms, *bytes))
        };
        (0..).zip(of).flat_map(round).collect()
    }

    /// Latency falls by much, the rate by a little that rounds differ by as well.
    #[test]
    fn what_a_policy_changed() {
        let policies = ["without", "with"]
            .map(|name| PolicyRecord { name: name.into(), ..PolicyRecord::default() })
            .into();
        let mut runs = rounds(&[
            [(200, 125_000), (30, 120_000)],
            [(210, 122_000), (31, 124_000)],
            [(190, 124_000), (29, 123_000)],
        ]);
        // What is seen of the idle line stays apart.
        runs.extend([run("without", "idle", 0, 20, 0), run("with", "idle", 0, 20, 0)]);
        let loads =
            ["up", "idle"].map(|name| LoadRecord { name: name.into(), ..LoadRecord::default() }).into();
        let experiment = Experiment { policies, loads, runs, ..Experiment::default() };
        let rows = rows(&experiment);
        let change_verdict_of =
            |figure: &str| rows.iter().find(|row| row.figure == figure).expect("measured").verdict();
        assert_eq!(
            (change_verdict_of("ping.p95"), change_verdict_of("upload.rate")),
            (ChangeVerdict::Better, ChangeVerdict::Unsure)
        );
        let predicted =
            Predicted { load: "up".into(), figure: "ping.p95".into(), without: 0.222, with: 0.033 };
        let text = text(&experiment, &[predicted]);
        assert!(text.contains("222 ms") && text.contains("33.0 ms"), "{text}");
        assert!(text.contains("ping.p95") && text.contains("201 ms") && text.contains("−170 ms"), "{text}");
        assert_eq!(json(&experiment)[0]["rounds"], 3);
        assert!(!text.contains("exclude zero"), "{text}");
        // Significant alone, and not together with the other rows.
        let runs = rounds(&[140, 120, 160].map(|ms| [(200, 125_000), (ms, 125_000)]));
        let experiment = Experiment { runs, ..experiment };
        let text = super::text(&experiment, &[]);
        assert!(
            text.contains("intervals of 2 of the rows called not significant") && text.contains("--repeats"),
            "{text}"
        );
    }
}
