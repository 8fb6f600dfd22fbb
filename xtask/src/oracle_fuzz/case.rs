//! One question: the folder that both the kernel and our engine are given.

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
}

impl Case {
    /// Writes `link`, `script.tc`, `schedule.csv` and `note.txt` into a new or existing folder.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
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
    let known = |word: &&str| super::generate::KINDS.iter().any(|kind| kind.name == *word);
    line.split_whitespace().skip(3).find(known).map(str::to_owned)
}

fn lines(list: &[String]) -> String {
    list.iter().map(|line| format!("{line}\n")).collect()
}
