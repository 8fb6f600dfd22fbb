//! sfq.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::early::{Terms, computed, missing, ordered, usual_burst};
use crate::tc::options::{Reader, Values};
use crate::tc::show::{Entry, marks, probability, row};
use crate::tc::spelling::{ListedValue, Spelling, place_of};
use crate::tc::words::Words;
use tidegate_policy::dump::{ClassDump, QdiscDump, SfqStats, Xstats};
use tidegate_policy::{QdiscParams, SfqParams, SfqRed};

/// Packets that wait at most, where no limit is given.
const USUAL_LIMIT: u32 = 127;

pub(super) struct Sfq;

impl Syntax for Sfq {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        // Without options tc sends none, so a `change` changes nothing instead of being refused.
        if values.0.is_empty() {
            return Ok(None);
        }
        Ok(Some(QdiscParams::Sfq(SfqParams { red: read_red(&values, stderr)?, ..read(&values) })))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Sfq(params) = &dump.params {
            show(params, flags, entry);
            if let (Xstats::Sfq(stats), true) = (&dump.xstats, flags.stats) {
                show_red_stats(stats, entry);
            }
        }
    }

    fn show_class_stats(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::SfqClass { allot } = &dump.xstats {
            entry.number("allot", *allot, &format!("  allot {allot}\n"));
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling = Spelling { times: &[("perturb", 1_000_000)], ..Spelling::SAME };
        &SPELLING
    }

    fn member(&self, key: &str, value: &ListedValue, _: &[(String, ListedValue)]) -> Option<Vec<String>> {
        match (key, value) {
            ("perturb", ListedValue::Number(seconds)) => Some(vec![key.to_owned(), format!("{seconds}sec")]),
            _ => None,
        }
    }

    /// A limit that is given bounds the flows, too, and the usual one does not: it is left out.
    fn settle(&self, args: &mut Vec<String>) {
        let number = |key: &str| place_of(args, key).and_then(|at| args[at].parse::<u32>().ok());
        let is_usual =
            number("limit") == Some(USUAL_LIMIT) && number("flows").is_none_or(|flows| flows > USUAL_LIMIT);
        if let Some(at) = place_of(args, "limit").filter(|_| is_usual) {
            args.drain(at - 1..=at);
        }
    }
}

fn read(values: &Values) -> SfqParams {
    SfqParams {
        quantum: values.number("quantum").unwrap_or(0),
        perturb: values.signed("perturb").unwrap_or(0),
        limit: values.number("limit").unwrap_or(0),
        divisor: values.number("divisor").unwrap_or(0),
        flows: values.number("flows").unwrap_or(0),
        depth: values.number("depth").unwrap_or(0),
        headdrop: values.has("headdrop"),
        red: None,
    }
}

/// sfq's random early detection, if any of its words was given.
fn read_red(values: &Values, stderr: &mut String) -> Result<Option<SfqRed>, Refusal> {
    const WORDS: [&str; 8] =
        ["redflowlimit", "min", "max", "burst", "avpkt", "probability", "ecn", "harddrop"];
    if !WORDS.iter().any(|word| values.has(word)) {
        return Ok(None);
    }
    let Some(limit) = values.number("redflowlimit").filter(|limit| *limit > 0) else {
        return Err(missing(
            "Required parameter (redflowlimit) is missing",
            "Random early detection in the flows of sfq begins with redflowlimit BYTES.",
        ));
    };
    let words = ordered(values, limit)?;
    let avpkt = values.number("avpkt").unwrap_or(1000);
    let burst = values.number("burst").filter(|burst| *burst > 0);
    let terms = Terms {
        name: "SFQ",
        min: words.min,
        max: words.max,
        min_bytes: words.min,
        max_bytes: words.max,
        burst: burst.unwrap_or_else(|| usual_burst(words.min, words.max, avpkt)),
        avpkt,
        probability: words.probability,
        rate: None,
    };
    let computed = computed(&terms, "")?;
    stderr.push_str(&computed.stderr);
    Ok(Some(SfqRed {
        limit,
        curve: computed.curve,
        ecn: values.has("ecn"),
        harddrop: values.has("harddrop"),
    }))
}

fn show(params: &SfqParams, flags: &ShowFlags, entry: &mut Entry) {
    entry.number("limit", params.limit, &format!("limit {}p ", params.limit));
    entry.size("quantum", params.quantum, "quantum {} ");
    entry.number("depth", params.depth, &format!("depth {} ", params.depth));
    entry.flag("headdrop", params.headdrop);
    if flags.details {
        entry.number("flows", params.flows, &format!("flows {} ", params.flows));
    }
    entry.number("divisor", params.divisor, &format!("divisor {} ", params.divisor));
    if params.perturb != 0 {
        entry.number("perturb", params.perturb, &format!("perturb {}sec ", params.perturb));
    }
    if let Some(red) = &params.red {
        show_red(red, entry);
    }
}

fn show_red(red: &SfqRed, entry: &mut Entry) {
    entry.number("ewma", red.curve.wlog, &format!("ewma {} ", red.curve.wlog));
    entry.size("min", red.curve.min, "min {} ");
    entry.size("max", red.curve.max, "max {} ");
    probability(red.curve.max_p, entry);
    marks(&[("ecn", red.ecn), ("harddrop", red.harddrop), ("adaptive", false), ("nodrop", false)], entry);
}

fn show_red_stats(stats: &SfqStats, entry: &mut Entry) {
    row(
        &[
            ("prob_mark", "\n  ", stats.prob_mark),
            ("prob_mark_head", " ", stats.prob_mark_head),
            ("prob_drop", " ", stats.prob_drop),
            ("forced_mark", "\n  ", stats.forced_mark),
            ("forced_mark_head", " ", stats.forced_mark_head),
            ("forced_drop", " ", stats.forced_drop),
        ],
        entry,
    );
}
