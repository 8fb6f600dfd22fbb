//! One question: the folder that both the kernel and our engine are given.

use super::generate;
use std::fs;
use std::io;
use std::path::Path;

/// The columns of the packets in every schedule; where the last one is missing the transport header is made
/// from the others.
pub(crate) const COLUMNS: &str =
    "time_ns,id,size,src,dst,proto,sport,dport,dsfield,mark,prio,flags,seq,ack,payload";

/// A line of the schedule: a packet, or a command (`!,tc …`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Nanoseconds since the start.
    pub(crate) time: u64,
    /// What is after the time.
    pub(crate) rest: String,
}

impl Row {
    /// The number of a row's packet; 0: it has none.
    pub(crate) fn id(&self) -> u64 {
        self.rest.split(',').next().and_then(|id| id.parse().ok()).unwrap_or(0)
    }

    /// The command of a row that is one.
    pub(crate) fn command(&self) -> Option<&str> {
        self.rest.strip_prefix("!,")
    }
}

/// Whose behaviour a case asks for: names of releases, as `ask` takes them; empty: the oldest, 6.1.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Release {
    pub(crate) linux: String,
    pub(crate) tc: String,
}

impl Release {
    /// The files that say it in a folder.
    pub(crate) const FILES: [&'static str; 2] = ["linux", "tc"];

    /// What the files of a folder say.
    pub(crate) fn of(dir: &Path) -> Release {
        let [linux, tc] = Release::FILES
            .map(|name| fs::read_to_string(dir.join(name)).unwrap_or_default().trim().to_owned());
        Release { linux, tc }
    }

    /// The kinds that it knows: `dualpi2` is in the newer kernel and the newer tc only.
    pub(crate) fn kinds(&self) -> &'static [generate::Kind] {
        let old = generate::KINDS.len() - generate::NEWER_KINDS;
        if self.is_newer() { generate::KINDS } else { &generate::KINDS[..old] }
    }

    /// Are both the kernel and tc the newer ones?
    pub(crate) fn is_newer(&self) -> bool {
        [&self.linux, &self.tc].iter().all(|name| name.as_str() == "7.2")
    }

    fn write(&self, dir: &Path) -> io::Result<()> {
        for (name, text) in Release::FILES.into_iter().zip([&self.linux, &self.tc]) {
            if !text.is_empty() {
                fs::write(dir.join(name), format!("{text}\n"))?;
            }
        }
        Ok(())
    }
}

/// A folder in memory.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Case {
    /// `rate overhead mtu txqueuelen`.
    pub(crate) link: String,
    /// The lines of script.tc.
    pub(crate) script: Vec<String>,
    /// Packets and commands, by time.
    pub(crate) rows: Vec<Row>,
    /// Its shape, for people.
    pub(crate) note: String,
    /// Who is asked.
    pub(crate) release: Release,
}

impl Case {
    /// Writes `link`, `script.tc`, `schedule.csv`, `note.txt` and the release's files into a new or existing
    /// folder.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        self.release.write(dir)?;
        fs::write(dir.join("link"), format!("{}\n", self.link))?;
        fs::write(dir.join("script.tc"), lines(&self.script))?;
        let mut schedule = String::from(COLUMNS);
        schedule.push('\n');
        for row in &self.rows {
            schedule.push_str(&format!("{},{}\n", row.time, row.rest));
        }
        fs::write(dir.join("schedule.csv"), schedule)?;
        fs::write(dir.join("note.txt"), format!("{}\n", self.note))
    }

    /// The kinds of qdisc named in the script and in the schedule's commands, sorted.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let commands = self.rows.iter().filter_map(Row::command);
        let mut kinds: Vec<String> = self
            .script
            .iter()
            .map(String::as_str)
            .chain(commands)
            .flat_map(|line| line.split(';'))
            .filter(|line| line.contains("tc qdisc ") && !line.contains(" show "))
            .filter_map(kind_of)
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

/// The kind a `tc qdisc add|change|replace` line names.
fn kind_of(line: &str) -> Option<String> {
    let known = |word: &&str| generate::KINDS.iter().any(|kind| kind.name == *word);
    line.split_whitespace().skip(3).find(known).map(str::to_owned)
}

fn lines(list: &[String]) -> String {
    list.iter().map(|line| format!("{line}\n")).collect()
}
