//! Children that do not outlive us, and what a running child is doing.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

/// The most processes [`descendants`] looks at: a bound for a fork bomb.
const MAX_PROCESSES: usize = 65_536;

/// One running process, as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its number in our process namespace.
    pub pid: u32,
    /// Its words, the program first; empty for a zombie.
    pub words: Vec<String>,
    /// A signal has stopped it (SIGSTOP, SIGTSTP), and none lets it continue.
    pub is_stopped: bool,
}

/// Sends a program's output to where ours of errors goes.
pub fn output_to_stderr(command: &mut Command) {
    command.stdout(Stdio::from(std::io::stderr()));
}

/// Makes the kernel kill the command's process when the thread that starts it ends.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec and makes one system call that is async-signal-safe;
    // it allocates nothing and touches no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into)
        })
    }
}

/// All processes below `root` (itself not included), parents before their children.
#[must_use]
pub fn descendants(root: u32) -> Vec<ProcessInfo> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, parent) in parents() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(parent) = waiting.pop() {
        // Removing makes the walk end even if numbers are reused while we read.
        for pid in children.remove(&parent).unwrap_or_default() {
            found.push(ProcessInfo { pid, words: words_of(pid), is_stopped: state_of(pid) == Some('T') });
            waiting.push(pid);
        }
    }
    found
}

/// What all processes below one use together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many there are.
    pub processes: usize,
    /// Bytes of memory they hold that is no file's: private, and shared without a file.
    pub memory: u64,
}

/// What the processes below `root`, itself not included, use; looking stops when there are more than `limit`.
#[must_use]
pub fn usage_of_descendants(root: u32, limit: usize) -> Usage {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, parent) in parents() {
        children.entry(parent).or_default().push(pid);
    }
    let (mut usage, mut waiting) = (Usage::default(), vec![root]);
    while let Some(parent) = waiting.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        usage.processes += below.len();
        if usage.processes > limit {
            return usage;
        }
        usage.memory += below.iter().map(|pid| memory_of(*pid)).sum::<u64>();
        waiting.extend(below);
    }
    usage
}

/// Bytes of a process's memory that is no file's; 0 when it is gone.
fn memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = |line: &str| line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    let ours = status.lines().filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
    ours.filter_map(kilobytes).sum::<u64>() * 1024
}

/// Kills the process and all below it at once (SIGKILL). Processes already gone are no error.
pub fn kill_tree(root: u32) {
    signal_tree(root, Signal::KILL);
}

/// Asks the process and all below it to end (SIGTERM).
pub fn request_termination(root: u32) {
    signal_tree(root, Signal::TERM);
}

/// Asks one process to end (SIGTERM), and leaves those below it to that one.
pub fn signal_to_end(pid: u32) {
    signal_one(pid, Signal::TERM);
}

fn signal_one(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // One that is gone already has ended.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn signal_tree(root: u32, signal: Signal) {
    let mut pids = vec![root];
    pids.extend(descendants(root).iter().map(|running| running.pid));
    pids.into_iter().for_each(|pid| signal_one(pid, signal));
}

/// Puts this process before others, where we may, until the value is dropped: it must still get its turn when
/// a thousand others want theirs.
#[derive(Debug)]
pub struct Urgent {
    before: Option<i32>,
}

impl Urgent {
    /// Begins to be urgent.
    #[must_use]
    pub fn begin() -> Self {
        let before = rustix::process::getpriority_process(None).ok();
        let urgent = before.filter(|_| rustix::process::setpriority_process(None, -20).is_ok());
        Self { before: urgent }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = rustix::process::setpriority_process(None, before);
        }
    }
}

/// The words of a process, empty when it is gone.
#[must_use]
pub fn words_of(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// The effective user's number.
#[must_use]
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The effective group's number.
#[must_use]
pub fn effective_gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// The parent's number, 0 when it lies outside our process namespace.
#[must_use]
pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Every process with its parent.
fn parents() -> impl Iterator<Item = (u32, u32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).take(MAX_PROCESSES);
    pids.filter_map(|pid| Some((pid, parent_of(pid)?)))
}

/// A process's parent; `None`: it is gone.
#[must_use]
pub fn parent_of(pid: u32) -> Option<u32> {
    stat(pid)?.split_whitespace().nth(1)?.parse().ok()
}

/// The letter of a process's state (proc_pid_stat(5)): `R` runs, `S` sleeps, `T` is stopped, `Z` is a zombie;
/// `None`: it is gone.
#[must_use]
pub fn state_of(pid: u32) -> Option<char> {
    stat(pid)?.trim_start().chars().next()
}

/// Whether a process of this process namespace runs: a zombie does not. The kernel is asked, not `/proc`,
/// which in a chroot may be that of another process namespace, where the number is another process's.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
        // It is readable once the process has ended.
        Ok(process) => {
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            !rustix::event::poll(&mut ended, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        }
        Err(Errno::SRCH) => false,
        // Linux before 5.3 has no such file.
        Err(_) => state_of(pid).is_some_and(|state| !matches!(state, 'Z' | 'X')),
    }
}

/// What `/proc` shows of a process behind its name: its state, its parent, and more.
fn stat(pid: u32) -> Option<String> {
    // The name in brackets may hold blanks and brackets: what is of interest follows the last one.
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')').map(|(_, rest)| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::WaitIdOptions;

    #[test]
    fn we_are_below_our_parent() {
        let words = words_of(std::process::id());
        let below = descendants(parent());
        assert!(below.iter().any(|running| running.pid == std::process::id() && running.words == words));
        assert_eq!(parent_of(std::process::id()), Some(parent()));
    }

    #[test]
    fn a_process_that_is_stopped_is_known() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("it starts");
        assert!(state_of(child.id()).is_some_and(|state| state != 'T'));
        let pid = Pid::from_child(&child);
        rustix::process::kill_process(pid, Signal::STOP).expect("it is ours");
        // It is stopped once the kernel reports so to its parent.
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::UNTRACED).expect("it is ours");
        assert_eq!(state_of(child.id()), Some('T'));
        child.kill().and_then(|()| child.wait()).expect("it is ours");
        assert_eq!(state_of(child.id()), None);
    }

    #[test]
    fn a_zombie_runs_no_more() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("it starts");
        assert!(is_running(child.id()) && is_running(std::process::id()));
        child.kill().expect("it is ours");
        let (by_pid, options) =
            (rustix::process::WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::NOWAIT);
        rustix::process::waitid(by_pid, options | WaitIdOptions::EXITED).expect("it is ours");
        assert_eq!((state_of(child.id()), is_running(child.id())), (Some('Z'), false));
        child.wait().expect("it is ours");
        assert!(!is_running(child.id()) && !is_running(0) && !is_running(u32::MAX));
    }
}
