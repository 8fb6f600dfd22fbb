//! A computer with one device, in a network namespace that the test makes, and what is on it.

use serde_json::Value;
use std::process::{Command, Output};
use tidegate_netlink::{Kernel, Netfilter};
use tidegate_policy::Op;
use tidegate_policy::dump::Installed;
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::netlink::Links;

/// A computer of its own: a namespace with a device, files, and a place for what runs.
pub(crate) struct Computer {
    pub(crate) place: NamespaceThread,
    pub(crate) files: super::Place,
}

impl Computer {
    /// `None`, with the reason, where it cannot be made.
    pub(crate) fn new(name: &str) -> Option<Computer> {
        if super::skip() {
            return None;
        }
        let place = match NamespaceThread::new(name) {
            Ok(place) => place,
            Err(error) => {
                println!("left out: no network namespace can be made here ({error})");
                return None;
            }
        };
        let made = place.go(|| {
            let mut links = Links::open()?;
            links.create_like("eth0", "dummy", 1000)
        });
        made.expect("the thread is there").expect("a device");
        Some(Computer { place, files: super::Place::new(&format!("live-{name}")) })
    }

    /// What the command does there.
    pub(crate) fn tidegate(&self, words: &[&str]) -> Output {
        self.with(words, &[])
    }

    pub(crate) fn with(&self, words: &[&str], more: &[(&str, &str)]) -> Output {
        let mut command = Command::new(super::TIDEGATE);
        command
            .args(words)
            .env("TIDEGATE_RUN", self.files.0.join("run"))
            .env("TIDEGATE_STATE", self.files.0.join("kept"))
            .env("SSH_CONNECTION", "");
        command.envs(more.iter().copied());
        self.place.go(move || command.output()).expect("the thread is there").expect("tidegate runs")
    }

    /// Runs a command there; on the computer that runs the tests where no other can be made.
    pub(crate) fn output(computer: Option<&Computer>, mut command: Command) -> std::io::Result<Output> {
        match computer {
            Some(computer) => computer.place.go(move || command.output()).expect("the thread is there"),
            None => command.output(),
        }
    }

    pub(crate) fn policy(&self, name: &str, text: &str) -> String {
        self.files.script(name, text).to_string_lossy().into_owned()
    }

    /// What is installed on a device; `None`: there is no such device.
    pub(crate) fn installed(&self, dev: &'static str) -> Option<Installed> {
        let looked = self.place.go(move || {
            let mut kernel = Kernel::open().expect("netlink");
            kernel.installed(dev).ok().map(|(installed, _)| installed)
        });
        looked.expect("the thread is there").map(without_counts)
    }

    /// Carries out commands of tc there.
    pub(crate) fn tc(&self, commands: &'static str) {
        let done = self.place.go(|| {
            let mut kernel = Kernel::open().expect("netlink");
            commands
                .lines()
                .try_for_each(|line| kernel.apply(&op(line)).map_err(|error| format!("{line}: {error}")))
        });
        done.expect("the thread is there").expect("the kernel takes it");
    }

    /// The names of nft's tables there.
    pub(crate) fn tables(&self) -> Vec<String> {
        let result = self.place.go(|| Netfilter::open().and_then(|mut netfilter| netfilter.tables()));
        result.expect("the thread is there").expect("they are told").into_keys().collect()
    }
}

/// Counters change by themselves, and who made a class first is no one's business.
pub(crate) fn without_counts(mut installed: Installed) -> Installed {
    installed.qdiscs.iter_mut().for_each(|qdisc| (qdisc.stats, qdisc.xstats) = Default::default());
    installed.classes.iter_mut().for_each(|class| (class.stats, class.xstats) = Default::default());
    installed.qdiscs.sort_by_key(|qdisc| (qdisc.parent, qdisc.handle));
    installed.classes.sort_by_key(|class| class.classid);
    for filter in &mut installed.filters {
        if let tidegate_policy::dump::FilterEntry::Filter { hits, actions, .. } = &mut filter.entry {
            *hits = None;
            actions
                .iter_mut()
                .for_each(|action| (action.installed, action.used, action.action.index) = (0, 0, 0));
        }
    }
    installed
}

pub(crate) fn op(line: &str) -> Op {
    let args: Vec<String> = line.split_whitespace().skip(1).map(String::from).collect();
    match tidegate_syntax::tc::parse(&args, &tidegate_syntax::Env::default()) {
        Ok(tidegate_syntax::tc::TcCommandLine {
            command: tidegate_syntax::tc::TcCommand::Apply(op), ..
        }) => op,
        other => panic!("{line}: {other:?}"),
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub(crate) fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    stderr(output)
}

pub(crate) fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    stderr(output)
}

pub(crate) fn json(output: &Output) -> Value {
    let document = serde_json::from_slice(&output.stdout);
    let document = document.unwrap_or_else(|error| panic!("{error}: {}", stderr(output)));
    super::schemas::must_fit(&document);
    document
}
