//! `docs/validation.md`: what theory, papers, a real Linux and other simulators say, and what tidegate's
//! simulator finds.
//!
//! The page is made from the output of a test run, as the fidelity page is. Tests print rows themselves,
//! `validation: GROUP | ID | WHAT | EXPECTED | FOUND | VERDICT | SOURCE`; what a test proves to the last
//! digit is listed in [`EXACT`]. Each id of [`IDS`] must have a row, or its reason in [`WAITING`]; a row that
//! a test calls outside stops nothing on its own (the test does, where it must hold).

use crate::test_results::{self, TestResults};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

const GROUPS: [&str; 8] = [
    "Exact vectors",
    "Kernel under an unresponsive flow",
    "Queueing theory and hashing",
    "TCP models",
    "Queue management and fairness with TCP",
    "Real Linux TCP",
    "The reference dumbbell",
    "The articles' experiments",
];

/// Id, what, expected, the test that proves it.
const EXACT: &[[&str; 4]] = &[
    ["V-U1", "rates as tc reads them", "17 spellings", "v_u1_rates"],
    ["V-U2", "sizes as tc prints them", "tc's", "v_u2_printed_sizes"],
    ["V-U3", "times as tc prints them", "tc's", "v_u3_printed_times"],
    [
        "V-L3",
        "size table of ATM cells, every length",
        "53 per 48 bytes",
        "v_l3_sizes_are_cells_of_lengths_rounded_up_to_four",
    ],
    [
        "V-D1",
        "DualPI2: p² and k·p, exactly",
        "draws below p of 2^32",
        "v_d1_classic_packets_are_hit_by_the_square_and_others_in_proportion",
    ],
    [
        "V-D1",
        "DualPI2: the control law over 200 updates",
        "RFC 9332, within 1e-4",
        "v_d1_the_probability_follows_the_law_of_the_rfc",
    ],
    ["V-T1", "TBF: departures and drops of 20 packets at once", "9 times, 5 drops", "v_t1_tbf"],
    ["V-T2", "TBF of a modem: four packets at once", "74.078738 ms", "v_t2_tbf_of_a_modem"],
    ["V-T3", "TBF with a peak rate", "8 times", "v_t3_tbf_with_a_peak"],
    ["V-T4", "HTB of one class, saturated", "6 times", "v_t4_htb_of_one_class"],
    ["V-T5", "HTB: each class gets its rate", "200 / 800 kbit/s", "v_t5_htb_gives_each_its_rate"],
    ["V-T6", "HTB: excess rate by quantum", "366.7 / 633.3 kbit/s", "v_t6_htb_shares_the_rest_by_quantum"],
    [
        "V-T7",
        "HTB: excess rate by priority",
        "900 / 100 kbit/s",
        "v_t7_htb_gives_the_rest_to_the_better_priority",
    ],
    ["V-T8", "HTB: borrowing up to the ceiling", "400 kbit/s", "v_t8_htb_borrows_up_to_its_ceiling"],
    [
        "V-T9",
        "HTB: classes without a parent do not borrow",
        "200 / 824 kbit/s",
        "v_t9_htb_roots_do_not_borrow",
    ],
    ["V-T10", "HTB: unclassified packets pass unshaped", "all", "v_t10_htb_sends_the_unclassified_unshaped"],
    [
        "V-S1",
        "SFQ: order of two flows of equal packets",
        "order of 24 packets",
        "v_s1_sfq_with_equal_lengths",
    ],
    [
        "V-S2",
        "SFQ: order of long and short packets",
        "order of 24 packets",
        "v_s2_sfq_with_different_lengths",
    ],
    ["V-S3", "SFQ: which flow loses a packet", "a, b, a, a", "v_s3_sfq_drops_from_the_longest"],
    ["V-R1", "DRR: order with different quanta", "order of 24 packets", "v_r1_drr_with_different_quanta"],
    ["V-R2", "DRR: order with different lengths", "order of 24 packets", "v_r2_drr_with_different_lengths"],
    [
        "V-C0",
        "CoDel: square roots and drop intervals in fixed point",
        "1 to 1000",
        "spacings_of_the_control_law",
    ],
    ["V-C1", "CoDel: ns-3's unit test", "0, 1, 0, 3 drops", "v_c1_codel_drops"],
    ["V-C2", "CoDel under 25 % overload", "28 / 105 / 233 drops", "v_c2_codel_under_a_quarter_too_much"],
    [
        "V-F1",
        "FQ-CoDel: sparse flows go first",
        "order of 24 packets",
        "v_f1_fq_codel_serves_sparse_flows_first",
    ],
    [
        "V-F2",
        "FQ-CoDel: above its limit the largest flow loses packets",
        "from its head",
        "v_f2_fq_codel_takes_from_the_fattest",
    ],
    ["V-P1", "prio: the first band alone", "100 / 0 / 0", "v_p1_prio_serves_the_best_band_alone"],
    ["V-K0", "CAKE: tables of tins at eight rates", "as listed by the real tc", "tc_answers_as_the_real_one"],
    ["V-A1", "HFSC: a concave curve bounds the delay", "6.21 ms", "v_a1_hfsc_concave_curve_bounds_the_delay"],
    ["V-A2", "HFSC: a linear curve delays longer", "21.2 ms", "v_a2_hfsc_straight_curve_delays_more"],
    ["V-A3", "HFSC: shares 1:2:3", "1/6, 2/6, 3/6", "v_a3_hfsc_shares_by_its_curves"],
    ["V-A4", "HFSC: conversions of slopes", "the kernel's", "v_a4_slopes_and_spans"],
    ["V-G1", "QFQ: weights in force", "1 3 700 600", "v_g1_qfq_rounds_weights"],
    ["V-G2", "QFQ: shares by weight", "1/7, 2/7, 4/7", "v_g2_qfq_shares_by_weight"],
];

/// Ids of the list of results to reproduce that must have a row: the id itself, or one that begins with it
/// and a hyphen.
const IDS: &[&str] = &[
    "V-H1", "V-H2", "V-H3", "V-B1", "V-E1", "V-E2", "V-E3", "V-E4", "V-Q1", "V-Q2", "V-Q3", "V-Q4", "V-Q5",
    "V-Q6", "V-Q7", "V-U10", "V-U11", "V-U12", "V-U13", "V-U14", "V-U15", "V-W1", "V-W2", "V-W3", "V-W4",
    "V-W5", "V-W6", "V-W7", "V-W8", "V-W9", "V-W10", "V-W11", "V-C4", "V-C5", "V-C6", "V-F3", "V-F4", "V-F5",
    "V-I1", "V-I2", "V-E5", "V-E6", "V-O1", "V-O2", "V-B2", "V-B3", "V-X1", "V-X2", "V-X3", "V-S0a", "V-S0c",
    "V-S0d", "V-S0e1", "V-S0e2", "V-S0e3", "V-S1a", "V-S1b", "V-S1c", "V-S1d", "V-S1e", "V-S2a", "V-S2b",
    "V-S2c", "V-S4a", "V-S4b", "V-S4c", "V-S4d", "V-S5a", "V-S5b", "V-S6", "V-S7", "V-H4", "V-K1", "V-K2",
    "V-K3", "V-K4", "V-K5", "V-K6", "V-K7", "V-K8", "V-K9", "V-K10", "V-K11", "V-K12", "V-K13", "V-D2",
    "V-D3", "V-D4", "V-W12",
];

/// What is not shown yet, and why.
const WAITING: &[[&str; 2]] = &[["V-S0b, V-S0e4, V-S8", "shown in the guide"]];

const VERDICTS: [(&str, &str); 4] = [
    ("exact", "identical to the last digit, by the named test"),
    ("within", "within the stated tolerance"),
    ("outside", "a known deviation; the tests fail if it grows"),
    (
        "reported",
        "without a bound: the published figure was not checked, or cannot be derived from the source",
    ),
];

struct Row {
    id: String,
    what: String,
    expected: String,
    found: String,
    verdict: String,
    source: String,
}

/// Makes the page from a file of test output and holds it against the one there is; with TIDEGATE_BLESS set
/// it writes it.
pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    let fail = |why: &str| test_results::fail("validation", why);
    let [file] = words else {
        eprintln!(
            "usage: cargo xtask validation FILE   (the output of `cargo test --workspace -- --show-output`)"
        );
        return ExitCode::from(2);
    };
    let output = match fs::read_to_string(file) {
        Ok(output) => output,
        Err(error) => return fail(&format!("{file}: {error}")),
    };
    match rows(test_results::read(&output, "validation")) {
        Ok(groups) => {
            let count: usize = groups.values().map(Vec::len).sum();
            test_results::settle(
                &root.join("docs/validation.md"),
                &page(&groups),
                "validation",
                &format!("{count} figures"),
            )
        }
        Err(missing) => fail(&format!("rows that are missing or misshapen:\n  {}", missing.join("\n  "))),
    }
}

type Groups = BTreeMap<usize, Vec<Row>>;

/// All rows by group, in the order of their ids; or what is wrong with them.
fn rows(results: TestResults) -> Result<Groups, Vec<String>> {
    let (mut groups, mut wrong) = (Groups::new(), Vec::new());
    for (parts, test) in results.rows {
        let shape = <[String; 7]>::try_from(parts).map_err(|parts| parts.join(" | "));
        let [group, id, what, expected, found, verdict, source] = match shape {
            Ok(parts) => parts,
            Err(text) => {
                wrong.push(format!("{test}: {text}"));
                continue;
            }
        };
        let known = VERDICTS.iter().any(|(known, _)| *known == verdict);
        match GROUPS.iter().position(|known| *known == group) {
            Some(at) if known => {
                groups.entry(at).or_default().push(Row { id, what, expected, found, verdict, source })
            }
            _ => wrong.push(format!("{id}: no group is called {group}, or no verdict {verdict}")),
        }
    }
    for [id, what, expected, test] in EXACT {
        if !results.passed.contains(*test) {
            wrong.push(format!("{id}: {test} did not pass"));
        }
        let [id, what, expected] = [id, what, expected].map(|text| (*text).to_owned());
        let (found, verdict) = ("the same".to_owned(), "exact".to_owned());
        groups.entry(0).or_default().push(Row {
            id,
            what,
            expected,
            found,
            verdict,
            source: format!("`{test}`"),
        });
    }
    for id in IDS {
        let is =
            |row: &Row| row.id == *id || row.id.strip_prefix(id).is_some_and(|rest| rest.starts_with('-'));
        if !groups.values().flatten().any(is) {
            wrong.push(format!("{id}: no test that passed tells of it"));
        }
    }
    for rows in groups.values_mut() {
        rows.sort_by_cached_key(|row| in_order(&row.id));
    }
    if wrong.is_empty() { Ok(groups) } else { Err(wrong) }
}

/// An id with its numbers as numbers, so that V-T10 comes after V-T9.
fn in_order(id: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0)];
    for c in id.chars() {
        match (c.to_digit(10), parts.last_mut()) {
            (Some(digit), Some((_, number))) => *number = *number * 10 + u64::from(digit),
            (None, Some((text, 0))) => text.push(c),
            _ => parts.push((c.to_string(), 0)),
        }
    }
    parts
}

fn page(groups: &Groups) -> String {
    let mut page = String::from(
        "# Validation: the simulator compared with theory, papers and Linux\n\n\
         How do the simulator's results compare with queueing theory, papers, a real Linux 6.1 and other\n\
         simulators? Each row gives the expected and the simulated figure. To run one of the scenarios:\n\n    \
         tidegate sim scenarios/validation/pie.toml\n\n\
         Every row is printed by a test (`.ci/run`), and this page is generated from these rows. The same\n\
         seed gives the same figures on any machine. To describe your own: [scenarios](scenario.md).\n\n",
    );
    for (verdict, meaning) in VERDICTS {
        let count = groups.values().flatten().filter(|row| row.verdict == verdict).count();
        page += &format!("- **{verdict}** ({count}): {meaning}.\n");
    }
    page += "\nWithout a row:\n\n";
    for [ids, why] in WAITING {
        page += &format!("- {ids}: {why}.\n");
    }
    for (at, rows) in groups {
        page += &format!(
            "\n## {}\n\n| | what | expected | found | | source |\n|---|---|---|---|---|---|\n",
            GROUPS[*at]
        );
        for Row { id, what, expected, found, verdict, source } in rows {
            page += &format!("| {id} | {what} | {expected} | {found} | {verdict} | {source} |\n");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(row: &str) -> String {
        let mut text: String = EXACT.iter().map(|[.., test]| format!("test some::{test} ... ok\n")).collect();
        text += "---- a::b stdout ----\n";
        for id in IDS {
            text += &format!("validation: Queueing theory and hashing | {id}-1 | w | e | f | within | s\n");
        }
        text + row
    }

    #[test]
    fn missing_or_malformed_values_are_reported() {
        let wrong = |text: &str| rows(test_results::read(text, "validation")).err().unwrap_or_default().len();
        assert_eq!(wrong(&output("")), 0);
        assert_eq!(wrong(&output("validation: TCP models | V-W1 | no verdict")), 1);
        assert_eq!(wrong(&output("validation: TCP models | V-W1 | w | e | f | nearly | s")), 1);
        assert_eq!(wrong(&output("").replace("V-H1-1", "V-H10")), 1);
        assert_eq!(wrong(&output("").replace("v_t1_tbf ... ok", "v_t1_tbf ... FAILED")), 1);
    }

    #[test]
    fn ids_sort_by_their_numbers() {
        let mut ids = ["V-T10", "V-S2a", "V-T9", "V-H2-500", "V-H2-50"];
        ids.sort_by_cached_key(|id| in_order(id));
        assert_eq!(ids, ["V-H2-50", "V-H2-500", "V-S2a", "V-T9", "V-T10"]);
    }
}
