//! A case: what a folder of the oracle holds.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Columns of a schedule.
const HEADER: &str = "time_ns,id,size,src,dst,proto,sport,dport,dsfield,mark,prio,flags,seq,ack";

/// A run to make.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    /// The line of `link`.
    pub(super) link: String,
    /// The lines of `script.tc`.
    pub(super) script: Vec<String>,
    /// The rows of `schedule.csv`, in order of time.
    pub(super) rows: Vec<String>,
}

impl Case {
    /// Writes the folder anew.
    pub(super) fn write(&self, dir: &Path) -> io::Result<()> {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir)?;
        fs::write(dir.join("link"), format!("{}\n", self.link))?;
        fs::write(dir.join("script.tc"), self.script.join("\n") + "\n")?;
        fs::write(dir.join("schedule.csv"), format!("{HEADER}\n{}\n", self.rows.join("\n")))
    }

    /// The kinds and features in it, for the report.
    pub(super) fn features(&self) -> BTreeSet<&'static str> {
        const WORDS: [&str; 22] = [
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
            "fw",
            "u32",
            "flow",
            "stab",
            "peakrate",
            "atm",
            "change",
            "replace",
            "del",
            "perturb",
            "snap.txt",
        ];
        let mut found = BTreeSet::new();
        for line in self.script.iter().chain(self.rows.iter().filter(|row| row.contains(",!,"))) {
            for word in line.split([' ', ';']) {
                // `prio` and `flow` are words of filters too: a kind follows its handle.
                found.extend(WORDS.iter().find(|known| **known == word));
            }
        }
        if self.rows.iter().any(|row| row.contains("2001:db8")) {
            found.insert("ipv6");
        }
        found
    }
}
