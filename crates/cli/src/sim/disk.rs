//! The files that a scenario names, from the file system; scripts run in the sandbox.

use crate::script_options::ScriptOptions;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tidegate_capture::Exit;
use tidegate_loader::ReadOptions;
use tidegate_policy::Table;
use tidegate_scenario::{FileError, Files, PolicyCommands, PolicyEnd, PolicyFile};

/// The file system, and how scripts are confined.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    /// The sandbox that scripts run in.
    pub(crate) sandbox: ScriptOptions,
}

impl Files for Disk {
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn text(&self, path: &Path) -> Result<String, FileError> {
        crate::input::policy(path).map_err(FileError::new)
    }

    fn policy(&self, file: &PolicyFile) -> Result<PolicyCommands, FileError> {
        let options = ReadOptions {
            args: file.args.clone(),
            sandbox: self.sandbox.into(),
            devices: file.devices.clone(),
            dissector: file.dissector,
            ..ReadOptions::default()
        };
        let loaded = tidegate_loader::read(std::slice::from_ref(&file.path), &options).map_err(FileError::new)?;
        let calls = loaded.outcomes.iter().flat_map(|outcome| &outcome.calls);
        let words = |tool: &String, args: &[String]| std::iter::once(tool).chain(args).cloned().collect();
        let failed = loaded.outcomes.iter().any(|outcome| outcome.exit != Exit::Code(0));
        Ok(PolicyCommands {
            ops: loaded.machine.log.clone(),
            carried: loaded.machine.carried.iter().map(|one| one.words.clone()).collect(),
            issued: calls.map(|recorded| words(&recorded.call.tool, &recorded.call.args)).collect(),
            notes: loaded.outcomes.iter().flat_map(|outcome| outcome.notes.clone()).collect(),
            trouble: loaded.troubles().next().map(ToString::to_string),
            ended: match failed {
                _ if !loaded.ended() => PolicyEnd::Cut,
                true => PolicyEnd::Failed,
                false => PolicyEnd::Well,
            },
        })
    }

    fn distributions(&self) -> Arc<BTreeMap<String, Table>> {
        tidegate_loader::distributions::installed()
    }
}
