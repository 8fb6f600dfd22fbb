//! What users give: a file or a text, and how scripts are confined.

use crate::failure::Failure;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_loader::{LoadedPolicy, MAX_POLICY, ReadOptions, SandboxOptions};
use tidegate_packet::{Dissector, KernelModel};
use tidegate_sessions::simulated::scenario_text;
use tidegate_syntax::TcVersion;
use tidegate_sys::input_file;

/// The longest that a script may run.
const MAX_TIMEOUT_S: f64 = 86_400.0;

/// A policy or scenario: a file, or a text, which has the name of standard input.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct Given {
    #[pyo3(item)]
    pub(crate) path: PathBuf,
    #[pyo3(item)]
    text: Option<String>,
}

/// How a policy is loaded.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct Loading {
    #[pyo3(item)]
    pub(crate) args: Vec<String>,
    #[pyo3(item)]
    pub(crate) also: Vec<PathBuf>,
    #[pyo3(item)]
    pub(crate) sandbox: Confined,
    #[pyo3(item)]
    pub(crate) linux: String,
    #[pyo3(item)]
    tc: String,
    #[pyo3(item)]
    pub(crate) legacy: bool,
}

/// How scripts are confined.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct Confined {
    /// How long a script may run, seconds.
    #[pyo3(item)]
    timeout: f64,
    /// Hide home directories and the environment.
    #[pyo3(item)]
    pub(crate) private: bool,
    /// The network namespace of a script that is looked at.
    #[pyo3(item)]
    netns: Option<String>,
    /// The lines that a script reads from its standard input.
    #[pyo3(item)]
    answers: Vec<String>,
}

impl Confined {
    /// The same, for the libraries.
    pub(crate) fn options(&self) -> Result<SandboxOptions, Failure> {
        if !(self.timeout > 0.0 && self.timeout <= MAX_TIMEOUT_S) {
            return Err(Failure::input("timeout must be more than 0 s and at most a day (86400 s)"));
        }
        let timeout = Duration::from_secs_f64(self.timeout);
        let (netns, answers) = (self.netns.clone(), self.answers.clone());
        Ok(SandboxOptions { timeout, private: self.private, netns, answers, stubs: Vec::new() })
    }
}

impl Given {
    /// Its text.
    pub(crate) fn text(&self) -> Result<String, Failure> {
        match &self.text {
            Some(text) => Ok(text.clone()),
            None => input_file::read_text(&self.path, MAX_POLICY)
                .map_err(|error| Failure::file(&self.path, &error)),
        }
    }

    /// Its text, if it is a scenario: one that is part of the program may be named.
    pub(crate) fn scenario(&self) -> Result<String, Failure> {
        match &self.text {
            Some(text) => Ok(text.clone()),
            None => scenario_text(&self.path).map_err(|error| Failure::file(&self.path, &error)),
        }
    }

    /// The text that is in no file.
    pub(crate) fn own_text(&self) -> Option<(&Path, &str)> {
        self.text.as_deref().map(|text| (self.path.as_path(), text))
    }
}

impl Loading {
    /// Loads a policy; `devices` are there beside those it names.
    pub(crate) fn load(
        &self,
        policy: &Given,
        devices: Vec<String>,
        seed: u64,
    ) -> Result<LoadedPolicy, Failure> {
        self.load_as(policy, &self.options(devices, seed)?)
    }

    /// How it is loaded.
    pub(crate) fn options(&self, devices: Vec<String>, seed: u64) -> Result<ReadOptions, Failure> {
        Ok(ReadOptions {
            args: self.args.clone(),
            devices,
            sandbox: self.sandbox.options()?,
            kernel: self.kernel()?,
            tc: self.tc()?,
            seed,
            ..ReadOptions::default()
        })
    }

    /// Loads a policy with these options.
    pub(crate) fn load_as(&self, policy: &Given, options: &ReadOptions) -> Result<LoadedPolicy, Failure> {
        match policy.own_text() {
            Some(_) if !self.also.is_empty() => {
                Err(Failure::input("`also` goes with a policy in a file: save the text first"))
            }
            Some((name, text)) => Ok(tidegate_loader::read_text(&name.to_string_lossy(), text, options)?),
            None => {
                let files = [std::slice::from_ref(&policy.path), &self.also].concat();
                Ok(tidegate_loader::read(&files, options)?)
            }
        }
    }

    /// The tc that the policy is for.
    pub(crate) fn tc(&self) -> Result<TcVersion, Failure> {
        self.tc.parse().map_err(|error| Failure::input(format!("tc: {error}")))
    }

    /// The kernel that the policy is for.
    pub(crate) fn kernel(&self) -> Result<KernelModel, Failure> {
        let linux = self.linux.parse().map_err(|error| Failure::input(format!("linux: {error}")))?;
        Ok(KernelModel { linux, dissector: if self.legacy { Dissector::Legacy } else { Dissector::Modern } })
    }
}
