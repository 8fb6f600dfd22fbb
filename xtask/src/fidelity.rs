//! `docs/fidelity.md`: what tidegate does exactly as Linux, and which test shows it.
//!
//! The page is made from the output of a test run (`cargo test --workspace -- --show-output`) and nothing
//! else. Tests of recordings print rows themselves: `fidelity: GROUP | BEHAVIOUR | VERDICT | EVIDENCE`.
//! Behaviours that one test stands for are listed in [`NAMED`]. A behaviour without a test that ran and
//! passed is an error, so is a kind without its rows.

use crate::test_results::{self, TestResults};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// A group, a behaviour, how near it is, and the test that shows it.
type Named = (&'static str, &'static str, &'static str, &'static str);

const NAMED: &[Named] = &[
    ("packets", "SipHash, by the test vector of its paper", "exact", "siphash_paper_vector"),
    ("packets", "no memory allocation per packet", "exact", "no_packet_costs_an_allocation"),
    (
        "connections",
        "states of TCP connections, by flags (windows are not modelled)",
        "close",
        "tcp_sequences",
    ),
    ("connections", "counters and timeouts of connections", "exact", "states_counters_and_timeouts"),
    (
        "netfilter",
        "listings of nft rules, compared with nft 1.0.6",
        "exact",
        "rules_are_listed_as_recorded_or_refused_by_name",
    ),
    (
        "netfilter",
        "refused nft commands, compared with nft 1.0.6",
        "exact",
        "commands_are_refused_as_recorded",
    ),
    (
        "netfilter",
        "loops of chains, and how deep jumps may nest, compared with iptables 1.8.9 and nft 1.0.6",
        "exact",
        "chains_that_packets_come_to_lead_to_an_end",
    ),
    (
        "netfilter",
        "packet lengths on devices without a link header",
        "exact",
        "a_packet_is_as_long_on_ppp_as_on_ethernet",
    ),
    (
        "understanding",
        "the set of packets that can reach a class, compared with the engine",
        "exact",
        "sets_and_engine_agree_on_random_policies",
    ),
    (
        "understanding",
        "findings of check, confirmed by the engine",
        "exact",
        "whatever_is_found_in_random_policies_the_engine_confirms",
    ),
    (
        "understanding",
        "output of explain, compared with the engine",
        "exact",
        "stories_and_engine_never_part",
    ),
    (
        "understanding",
        "listings of tc recreate the same configuration",
        "exact",
        "listings_make_the_same_machine_again",
    ),
    (
        "understanding",
        "listings of every kind with its options are read whole or refused",
        "exact",
        "every_kind_comes_back_or_is_refused",
    ),
    ("simulator", "M/M/1: time in the system", "close", "v_q1_mm1_time_in_system"),
    ("simulator", "M/D/1: number in the system", "close", "v_q2_md1_number_in_system"),
    ("simulator", "M/M/1/K: loss", "close", "v_q3_mm1k_loss"),
    ("simulator", "M/M/1: tail of the waiting time", "close", "v_q4_mm1_tail"),
    ("simulator", "non-preemptive priorities (Cobham)", "close", "v_q5_non_preemptive_priorities"),
    ("simulator", "conservation of packets", "exact", "v_q6_conservation"),
    ("simulator", "one CUBIC flow, compared with recorded Linux TCP", "close", "cubic_alone"),
    ("simulator", "one Reno flow, compared with recorded Linux TCP", "close", "reno_alone"),
    ("simulator", "two and three flows, compared with recorded Linux TCP", "close", "flows_in_one_queue"),
    ("simulator", "TCP through fq_codel, compared with recorded Linux TCP", "close", "fq_codel"),
    ("simulator", "TCP through codel with ECN, compared with recorded Linux TCP", "close", "codel_ecn"),
    (
        "kernel back end",
        "configuration read back from this computer's kernel: HTB, the FIFOs, u32; refusals in its words",
        "exact",
        "a_home_gateway_of_htb_with_fifos_and_filters",
    ),
    (
        "kernel back end",
        "the same for TBF, with size table and changes",
        "exact",
        "a_modem_of_tbf_and_its_queue",
    ),
    ("kernel back end", "the same for ingress, clsact and mirred", "exact", "ingress_led_through_an_ifb"),
    ("kernel back end", "the same for u32's hash tables, links and offsets", "exact", "hash_tables_of_u32"),
    (
        "kernel back end",
        "the same for 1,666 classes and as many filters",
        "exact",
        "thousands_of_classes_and_filters",
    ),
    (
        "articles",
        "the modem of 128 kbit/s, with and without TBF (published: 31, 721, 86 ms)",
        "close",
        "v_s2_modem_with_and_without_tbf",
    ),
    (
        "articles",
        "the web server limited to 200 kbit/s (published: 199.20)",
        "close",
        "v_s0a_local_server_behind_htb",
    ),
];

/// The kinds that must have a row of packets and one of commands.
pub(crate) const KINDS: &[&str] = &[
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "pfifo_fast",
    "prio",
    "tbf",
    "htb",
    "sfq",
    "drr",
    "codel",
    "fq_codel",
    "hfsc",
    "qfq",
    "red",
    "choke",
    "sfb",
    "pie",
    "cake",
    "ets",
    "fq",
    "fq_pie",
    "gred",
    "hhf",
    "netem",
    "skbprio",
    "blackhole",
    "plug",
    "multiq",
    "mq",
];

/// The verdicts, and what they mean.
const VERDICTS: [(&str, &str); 4] = [
    ("exact", "identical to the nanosecond and the byte"),
    ("close", "within a tolerance that the test states"),
    ("differs", "known differences; the evidence says where"),
    ("unverified", "written from RFCs and papers; no recording of a real kernel or tc was available"),
];

/// One line of the page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    group: String,
    behaviour: String,
    verdict: String,
    evidence: String,
    test: String,
}

/// Makes the page from a file of test output and holds it against the one there is; with TIDEGATE_BLESS set
/// it writes it.
pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    let [file] = words else {
        eprintln!(
            "usage: cargo xtask fidelity FILE   (the output of `cargo test --workspace -- --show-output`)"
        );
        return ExitCode::from(2);
    };
    let output = match fs::read_to_string(file) {
        Ok(output) => output,
        Err(error) => return fail(&format!("{file}: {error}")),
    };
    let results = test_results::read(&output, "fidelity");
    if results.skipped {
        println!(
            "docs/fidelity.md was not checked: tests it stands on were skipped here (see SKIPPED above)"
        );
        return ExitCode::SUCCESS;
    }
    let rows = match rows(results) {
        Ok(rows) => rows,
        Err(missing) => {
            return fail(&format!("behaviours without a test that passed:\n  {}", missing.join("\n  ")));
        }
    };
    let summary = format!("{} behaviours, each with its test", rows.len());
    test_results::settle(&root.join("docs/fidelity.md"), &page(&rows), "fidelity", &summary)
}

fn fail(why: &str) -> ExitCode {
    test_results::fail("fidelity", why)
}

/// All rows, sorted; or what has no test.
fn rows(results: TestResults) -> Result<Vec<Row>, Vec<String>> {
    let mut missing = Vec::new();
    let mut rows = Vec::new();
    for (parts, test) in results.rows.into_iter().filter(|(_, test)| results.passed.contains(test)) {
        match <[String; 4]>::try_from(parts) {
            Ok([group, behaviour, verdict, evidence]) => {
                rows.push(Row { group, behaviour, verdict, evidence, test });
            }
            Err(parts) => {
                missing.push(format!("{test}: {} parts instead of 4: {}", parts.len(), parts.join(" | ")))
            }
        }
    }
    for (group, behaviour, verdict, test) in NAMED {
        if !results.passed.contains(*test) {
            missing.push(format!("{group}: {behaviour} ({test})"));
        }
        let [group, behaviour, verdict, test] =
            [group, behaviour, verdict, test].map(|text| (*text).to_owned());
        rows.push(Row { group, behaviour, verdict, evidence: String::new(), test });
    }
    for kind in KINDS {
        for behaviour in ["packets", "commands"] {
            let found =
                rows.iter().any(|row| row.group == format!("qdiscs: {behaviour}") && row.behaviour == *kind);
            if !found {
                missing.push(format!("{kind}: {behaviour}"));
            }
        }
    }
    for row in rows.iter().filter(|row| VERDICTS.iter().all(|(verdict, _)| *verdict != row.verdict)) {
        missing.push(format!("{}: {}: no verdict is called {}", row.group, row.behaviour, row.verdict));
    }
    rows.sort();
    rows.dedup();
    if missing.is_empty() { Ok(rows) } else { Err(missing) }
}

fn page(rows: &[Row]) -> String {
    let recordings = rows.iter().find(|row| row.group == "recordings").map_or("", |row| &row.evidence);
    let mut page = format!(
        "# Fidelity: how exactly tidegate behaves like Linux\n\n\
         Which behaviour of Linux is reproduced exactly, and which test shows it? The core are the public\n\
         recordings of a real kernel ([{recordings}](#recordings)). To replay one yourself:\n\n    \
         tidegate replay docs/disciplines/experiments/htb-tokens --flows\n\n\
         The tests print these rows and `.ci/run` generates the page from them; a behaviour without a\n\
         passing test stops the build. The kernel is Linux 6.1 in virtual time, tc is iproute2 6.1. What\n\
         [differs in 7.2](linux-versions.md) is followed where a row says so.\n\n",
    );
    for (verdict, meaning) in VERDICTS {
        let count = rows.iter().filter(|row| row.verdict == verdict).count();
        page += &format!("- **{verdict}** ({count}): {meaning}.\n");
    }
    let mut groups: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(&row.group).or_default().push(row);
    }
    for (group, rows) in groups {
        page += &format!(
            "\n## {}{}\n\n| behaviour | | evidence | test |\n|---|---|---|---|\n",
            group[..1].to_uppercase(),
            &group[1..]
        );
        for Row { behaviour, verdict, evidence, test, .. } in rows {
            page += &format!("| {behaviour} | {verdict} | {evidence} | `{test}` |\n");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(kinds: &[&str]) -> String {
        let mut text: String =
            NAMED.iter().map(|(_, _, _, test)| format!("test some::{test} ... ok\n")).collect();
        text += "test replayed ... ok\n---- replayed stdout ----\n";
        for kind in kinds {
            for behaviour in ["packets", "commands"] {
                text += &format!("fidelity: qdiscs: {behaviour} | {kind} | exact | 3 of 3\n");
            }
        }
        text
    }

    #[test]
    fn the_readme_of_qdisc_has_the_page_s_table() {
        let read = |name: &str| std::fs::read_to_string(crate::root().join(name)).unwrap();
        let (page, readme) = (read("docs/fidelity.md"), read("crates/qdisc/README.md"));
        let rows = |text: &str, heading: &str| -> Vec<String> {
            let section = text.split_once(heading).unwrap().1.split("\n## ").next().unwrap().to_owned();
            let rows = section.lines().filter(|line| line.starts_with("| ") && line.contains(" recordings"));
            rows.map(|row| row.split(" | ").take(3).collect::<Vec<_>>().join(" | ")).collect()
        };
        let wanted = rows(&page, "## Qdiscs: packets");
        let told = rows(&readme, "## How exact");
        assert!(!wanted.is_empty() && told.iter().all(|row| row.ends_with(" |")));
        let told: Vec<&str> = told.iter().map(|row| row.trim_end_matches(" |")).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_behaviour_without_a_test_is_an_error() {
        assert!(rows(test_results::read(&output(KINDS), "fidelity")).is_ok());
        assert_eq!(
            rows(test_results::read(&output(&KINDS[1..]), "fidelity")).unwrap_err(),
            ["pfifo: packets", "pfifo: commands"]
        );
        let failed = output(KINDS).replace("cubic_alone ... ok", "cubic_alone ... FAILED");
        assert_eq!(rows(test_results::read(&failed, "fidelity")).unwrap_err().len(), 1);
        let unproven = output(KINDS).replace("test replayed ... ok", "test replayed ... FAILED");
        assert_eq!(rows(test_results::read(&unproven, "fidelity")).unwrap_err().len(), 2 * KINDS.len());
        let vague = output(KINDS).replace("| pie | exact", "| pie | nearly");
        assert_eq!(rows(test_results::read(&vague, "fidelity")).unwrap_err().len(), 2);
    }
}
