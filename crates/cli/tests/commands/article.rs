//! "The article says, the kernel does": each row rests on an experiment that a real kernel (6.1) has
//! answered, in `docs/disciplines/experiments`. The engine does it again, must give the same, and the page's
//! figures are read off the result. `TIDEGATE_BLESS=1 cargo test -p tidegate --test commands article::`
//! writes `docs/article.md` again.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A claim of the article, and the experiment that tests it.
struct Claim {
    claim: &'static str,
    /// `{}` is replaced by the figures.
    does: &'static str,
    experiment: &'static str,
    figures: fn(&Outcome) -> Vec<String>,
}

/// An experiment's result.
struct Outcome {
    /// When each packet left, ns, in order, with its length.
    left: Vec<(u64, u64, u64)>,
    /// When each packet came, by number.
    came: HashMap<u64, u64>,
    shown: String,
    stats: String,
}

const CLAIMS: &[Claim] = &[
    Claim {
        claim: "the kernel's default queue holds `tx_queue_len` packets, and drops when there are more",
        does: "each of pfifo_fast's three bands holds that many: with a length of 10, {} of 36 packets are \
        accepted (one of them is on the wire)",
        experiment: "pfifo_fast-bands",
        figures: |o| vec![o.left.len().to_string()],
    },
    Claim {
        claim: "SFQ changes its hash by default every 10 seconds",
        does: "it does so only if `perturb` is given; a plain SFQ is listed as `{}`",
        experiment: "sfq-perturb-default",
        figures: |o| vec![o.shown.trim().trim_start_matches("qdisc sfq 8001: root refcnt 2 ").to_owned()],
    },
    Claim {
        claim: "1024 · 128 = 131,072 packets can wait in SFQ; `limit` is the size of one bucket",
        does: "`limit` is for all buckets together, 127 by default: of 200 packets that arrive at once {} \
        are sent, including the one on the wire",
        experiment: "sfq-limit",
        figures: |o| vec![o.left.len().to_string()],
    },
    Claim {
        claim: "with a quantum of 500 bytes longer packets would stay in their buckets, and soon everything \
        is blocked",
        does: "a flow's deficit becomes negative and it waits some rounds: {} of 20 frames of 1514 bytes leave, \
        12.1 ms apart as before",
        experiment: "sfq-small-quantum",
        figures: |o| vec![o.left.len().to_string()],
    },
    Claim {
        claim: "when the hash changes, SFQ may send packets of one flow in the wrong order, which hurts UDP",
        does: "since Linux 2.6.39 the backlog is rehashed in order: over four changes with four backlogged \
        flows {} packets are overtaken",
        experiment: "sfq-perturb-order",
        figures: |o| vec![o.overtaken().to_string()],
    },
    Claim {
        claim: "a burst of 1,000,000 tokens lets 83 full packets pass",
        does: "yes, although tc expects bytes (`burst 125000`): {} of 100 packets of 1500 bytes leave at once",
        experiment: "tbf-83-packets",
        figures: |o| vec![o.at_once().to_string()],
    },
    Claim {
        claim: "`peakrate` sets the speed of the burst",
        does: "yes: with 10 Mbit/s {} packet leaves at once, the others of the bucket 1.2 ms apart",
        experiment: "tbf-peakrate",
        figures: |o| vec![o.at_once().to_string()],
    },
    Claim {
        claim: "an Ethernet packet of 1500 bytes becomes 32 ATM cells, 1660 bytes in all",
        does: "32 cells are 1696 bytes, because the last is padded; a frame of 1514 takes {} ms at 1 \
        Mbit/s",
        experiment: "tbf-atm",
        figures: |o| vec![format!("{:.3}", o.last_gap() as f64 / 1e6)],
    },
    Claim {
        claim: "`tbf rate 1mbit burst 10k latency 30ms linklayer atm` is listed as `rate 1000Kbit burst 10Kb \
        lat 30.0ms`",
        does: "the current listing counts the bucket in cells: `{}`",
        experiment: "tbf-latency",
        figures: |o| {
            vec![
                o.shown
                    .lines()
                    .next()
                    .unwrap_or("")
                    .trim()
                    .trim_start_matches("qdisc tbf 8001: root refcnt 2 ")
                    .to_owned(),
            ]
        },
    },
    Claim {
        claim: "leaf 1:10 (rate 200 kbit/s, ceil 400) borrows from its neighbour 1:20",
        does: "a class borrows from its parent. These two have none: 1:10 gets {} kbit/s although 1:20 is idle",
        experiment: "htb-no-parent",
        figures: |o| vec![o.kbit().to_string()],
    },
    Claim {
        claim: "(the tree that was meant)",
        does: "with a class of 400 kbit/s above both, 1:10 gets {} kbit/s",
        experiment: "htb-parent",
        figures: |o| vec![o.kbit().to_string()],
    },
    Claim {
        claim: "the sum of the leaves' rates cannot be higher than the root's",
        does: "the kernel does not check: two children of 800 kbit/s below a parent of 1000 send {} kbit/s \
        together, because a leaf within its own rate needs no parent",
        experiment: "htb-sum-of-rates",
        figures: |o| vec![o.kbit().to_string()],
    },
    Claim {
        claim: "if r2q is too large, too many packets leave a queue at once",
        does: "the reverse: quantum = rate / r2q. For 200 kbit/s r2q 10 gives a quantum of {} bytes, r2q 4 \
        one of {}",
        experiment: "htb-r2q",
        figures: |o| {
            let quantum = |line: &str| line.split("quantum ").nth(1)?.split(' ').next().map(str::to_owned);
            o.shown.lines().filter_map(quantum).collect()
        },
    },
    Claim {
        claim: "a filter must be attached to the root, otherwise it is not applied",
        does: "inner classes of HTB and HFSC can have filters: {} of 20 packets go from the root's \
        filter to an inner class, and from its filter to the leaf",
        experiment: "htb-inner-filter",
        figures: |o| {
            let leaf = o.stats.split("class htb 1:10 ").nth(1).unwrap_or_default();
            vec![leaf.split(" bytes ").nth(1).and_then(|t| t.split(' ').next()).unwrap_or("?").to_owned()]
        },
    },
];

impl Outcome {
    /// Packets that left in the nanosecond in which they came.
    fn at_once(&self) -> usize {
        self.left.iter().filter(|(time, id, _)| self.came[id] == *time).count()
    }

    /// Packets of a sender that left after a later one of the same sender; numbers identify senders by
    /// remainder.
    fn overtaken(&self) -> usize {
        let mut latest: HashMap<u64, u64> = HashMap::new();
        self.left
            .iter()
            .filter(|(_, id, _)| {
                let last = latest.entry(id % 4).or_default();
                let behind = *id < *last;
                *last = (*last).max(*id);
                behind
            })
            .count()
    }

    fn last_gap(&self) -> u64 {
        let n = self.left.len();
        self.left[n - 1].0 - self.left[n - 2].0
    }

    /// The mean rate between the first and the last departure.
    fn kbit(&self) -> u64 {
        let bytes: u64 = self.left.iter().skip(1).map(|(_, _, len)| len).sum();
        (bytes as f64 * 8e6 / (self.left[self.left.len() - 1].0 - self.left[0].0) as f64).round() as u64
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn numbers(line: &str) -> Vec<u64> {
    line.split(',').map_while(|field| field.parse().ok()).collect()
}

/// Does an experiment again, and holds it against the kernel's answer.
fn outcome(name: &str, place: &Path) -> Outcome {
    let dir = root().join("docs/disciplines/experiments").join(name);
    let out = place.join(name);
    let run = Command::new(TIDEGATE)
        .arg("replay")
        .arg(&dir)
        .arg("--out")
        .arg(&out)
        .output()
        .expect("tidegate runs");
    assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
    let ours = |file: &str| fs::read_to_string(out.join(file)).unwrap_or_default();
    for file in ["egress.csv", "stats.txt", "filters.txt", "snap.txt"] {
        let kernel = fs::read_to_string(dir.join(file)).unwrap_or_default();
        assert_eq!(ours(file), kernel, "{name}/{file} is not what the kernel answered");
    }
    let schedule = fs::read_to_string(dir.join("schedule.csv")).expect("a schedule");
    let came =
        schedule.lines().map(numbers).filter(|row| row.len() > 1).map(|row| (row[1], row[0])).collect();
    let rows = ours("egress.csv");
    let left =
        rows.lines().map(numbers).filter(|row| row.len() > 2).map(|row| (row[0], row[1], row[2])).collect();
    Outcome { left, came, shown: ours("snap.txt"), stats: ours("stats.txt") }
}

const HEAD: &str = "# A classic article on Linux traffic control, checked against the kernel

*Journey to the Center of the Linux Kernel* (J. Vehent, 2011) is the text from which many people learned
traffic control. Most of it is correct. This page lists what has changed since, what was never so, and some
claims that hold. To see one experiment:

    tidegate replay docs/disciplines/experiments/htb-no-parent --flows

Each row is an experiment in [disciplines/experiments](disciplines/experiments), recorded from a real Linux
6.1. The tests replay it, require the same result to the nanosecond, and write the **figures** below.

| the article says | the kernel does | experiment |
|---|---|---|
";

#[test]
fn the_article_and_the_kernel() {
    if skip() {
        return;
    }
    let place = Place::new("article");
    let mut page = HEAD.to_owned();
    for claim in CLAIMS {
        let figures = (claim.figures)(&outcome(claim.experiment, &place.0));
        let mut does = claim.does.to_owned();
        for figure in figures {
            does = does.replacen("{}", &format!("**{figure}**"), 1).replace("`**", "`").replace("**`", "`");
        }
        assert!(!does.contains("{}"), "{}: figures are missing", claim.experiment);
        page +=
            &format!("| {} | {does} | [{1}](disciplines/experiments/{1}) |\n", claim.claim, claim.experiment);
    }
    let path = root().join("docs/article.md");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&path, &page).expect("docs can be written");
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        page,
        "docs/article.md is not what is made today"
    );
    println!(
        "fidelity: documentation | the experiments of docs/article.md | exact | {} recordings identical",
        CLAIMS.len()
    );
}
