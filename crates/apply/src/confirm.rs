//! Confirming a policy.

use crate::{job, kept, status};
use serde_json::Value;
use tidegate_daemon::{Result, RuntimeDir, bail};

/// Confirms the pending policy of a device, or of all: the names of those confirmed.
///
/// # Errors
/// tidegate applied nothing there, or something is in progress.
pub fn confirm(dev: Option<&str>) -> Result<Vec<String>> {
    let runtime = RuntimeDir::here()?;
    let _alone = job::alone(&runtime)?;
    let mut confirmed = Vec::new();
    for (name, state) in status::chosen(&runtime, dev)? {
        if state.job().is_some() {
            bail!(
                Busy,
                "`{name}` is in progress, so there is nothing to confirm yet; `tidegate status` shows more"
            );
        }
        if state.left_to_confirm().is_some() {
            let mut state = state;
            state.0["confirm"] = Value::Null;
            state.write(&runtime, &name)?;
            if state.0["by_hand"] != true {
                kept::keep(&name, &state)?;
            }
            confirmed.push(name);
        }
    }
    Ok(confirmed)
}
