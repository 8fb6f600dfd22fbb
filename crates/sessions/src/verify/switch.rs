//! The policy on and off, and as it was before in the end.

use super::options::VerifyOptions;
use crate::error::{Context, Result, chain, invalid};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long beyond a turn an applied policy stays that no command reverts; then it is reverted automatically.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// How it is put on and taken away.
enum How {
    /// `tidegate apply` with these words, and `tidegate revert` of the device that it named.
    Ours { words: Vec<String>, device: Option<String> },
    /// The user's own commands.
    Commands { with: String, without: String },
}

/// A policy that is off when this is gone.
pub(super) struct Switch<'s> {
    program: PathBuf,
    how: How,
    is_on: bool,
    /// Told what goes wrong when it is dropped.
    say: &'s dyn Fn(&str),
}

impl<'s> Switch<'s> {
    /// For a policy that is off now. `turn`: how long it is left on at most.
    ///
    /// # Errors
    /// This program cannot be found again, or cannot apply the policy; or it is on, or another one is, so
    /// that a line without any cannot be measured.
    pub(super) fn new(options: &VerifyOptions, turn: Duration, say: &'s dyn Fn(&str)) -> Result<Switch<'s>> {
        let program = std::env::current_exe().context("this program's own file")?;
        let how = match (&options.with, &options.without) {
            (Some(with), Some(without)) => {
                if cfg!(panic = "abort") {
                    take_away_at_panic(without.clone());
                }
                How::Commands { with: with.clone(), without: without.clone() }
            }
            _ => {
                let words = words(options, turn);
                let dry = [&words[..1], &["--dry-run".to_owned()], &words[1..]].concat();
                let plan = ours(&program, &dry)?;
                must_be_off(&plan)?;
                must_be_alone(&plan, &applied(&program)?)?;
                How::Ours { words, device: None }
            }
        };
        Ok(Switch { program, how, is_on: false, say })
    }

    /// The device after which the policy is named, once it has been on.
    pub(super) fn device(&self) -> Option<&str> {
        if let How::Ours { device, .. } = &self.how { device.as_deref() } else { None }
    }

    /// Puts it on, or takes it away.
    ///
    /// # Errors
    /// The error of `apply`, `revert` or the command.
    pub(super) fn turn(&mut self, on: bool) -> Result<()> {
        if on == self.is_on {
            return Ok(());
        }
        // Should it fail half-way, it is better taken away once too often.
        self.is_on = true;
        COMMANDS_ON.store(matches!(self.how, How::Commands { .. }), Ordering::Relaxed);
        match (&mut self.how, on) {
            (How::Commands { with, .. }, true) => shell(with)?,
            (How::Commands { without, .. }, false) => shell(without)?,
            (How::Ours { words, device }, true) => {
                let document = ours(&self.program, words)?;
                *device = name(&document);
            }
            (How::Ours { device, .. }, false) => {
                let words: Vec<String> =
                    ["revert", "--json"].map(str::to_owned).into_iter().chain(device.clone()).collect();
                ours(&self.program, &words)?;
            }
        }
        self.is_on = on;
        COMMANDS_ON.fetch_and(on, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether a policy is on that only the user's own command takes away.
static COMMANDS_ON: AtomicBool = AtomicBool::new(false);

/// Where a panic does not unwind, no value is dropped. (A policy of `tidegate apply` is reverted by its
/// guardian.)
fn take_away_at_panic(without: String) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if COMMANDS_ON.swap(false, Ordering::Relaxed) {
            let _ = shell(&without);
        }
        before(panic);
    }));
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        let is_ours_there = !matches!(&self.how, How::Ours { device: None, .. });
        if self.is_on
            && is_ours_there
            && let Err(error) = self.turn(false)
        {
            (self.say)(&format!("the policy could not be taken away: {}", chain(&error)));
        }
    }
}

/// Refuses a policy that is in place already, by the plan of a dry run: without it would be measured with it.
fn must_be_off(plan: &Value) -> Result<()> {
    let devices = plan["plan"]["devices"].as_array().map_or(&[][..], Vec::as_slice);
    let is_done = |device: &Value| device["steps"].as_array().is_some_and(Vec::is_empty);
    if devices.is_empty() || !devices.iter().all(is_done) || !plan["plan"]["rules"].is_null() {
        return Ok(());
    }
    let name = devices.last().and_then(|device| device["dev"].as_str()).unwrap_or_default();
    invalid(format!(
        "this policy is already applied, so the line cannot be measured without it: `tidegate down {name}` \
        takes it away; apply it again afterwards"
    ))
}

/// What `tidegate status` says of the policies that are applied.
fn applied(program: &PathBuf) -> Result<Value> {
    let done = Command::new(program).args(["status", "--json"]).stdin(Stdio::null()).output();
    // Its exit code is an answer, too: 1 where nothing is applied.
    let status = serde_json::from_slice(&done.context("this program's own file")?.stdout);
    status.map_err(std::io::Error::from).context("what `tidegate status --json` said")
}

/// Refuses a policy on whose devices another one is applied: the turns without it would be measured with the
/// other.
fn must_be_alone(plan: &Value, status: &Value) -> Result<()> {
    let list = |of: &Value| of.as_array().map_or(&[][..], Vec::as_slice).to_vec();
    let wanted: Vec<Value> =
        list(&plan["plan"]["devices"]).iter().map(|device| device["dev"].clone()).collect();
    let is_there = |policy: &&Value| list(&policy["devices"]).iter().any(|device| wanted.contains(device));
    let policies = list(&status["policies"]);
    let Some(name) = policies.iter().find(is_there).and_then(|policy| policy["name"].as_str()) else {
        return Ok(());
    };
    invalid(format!(
        "another policy is applied there ({name}), so the line cannot be measured without any: `tidegate down \
        {name}` takes it away; or give the commands for both as --with and --without"
    ))
}

fn words(options: &VerifyOptions, turn: Duration) -> Vec<String> {
    let seconds = (turn + FORGOTTEN).as_secs();
    let mut words: Vec<String> = ["apply", "--json", "--confirm"].map(str::to_owned).into();
    words.push(format!("{seconds}s"));
    if let Some(dev) = &options.dev {
        words.extend(["--dev".to_owned(), dev.clone()]);
    }
    words.extend(["--backend", options.backend.name()].map(str::to_owned));
    words.extend(options.policy.iter().map(|file| file.display().to_string()));
    if !options.args.is_empty() {
        words.push("--".to_owned());
        words.extend(options.args.iter().cloned());
    }
    words
}

/// The device after which a policy that was applied is named: the last.
fn name(document: &Value) -> Option<String> {
    let devices =
        [&document["devices"], &document["state"]["devices"]].into_iter().find_map(Value::as_array)?;
    devices.last()?.as_str().map(str::to_owned)
}

/// Runs another command of this program; returns its document.
fn ours(program: &PathBuf, words: &[String]) -> Result<Value> {
    let done =
        Command::new(program).args(words).stdin(Stdio::null()).output().context("this program's own file")?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        let text = stderr.trim().trim_start_matches("tidegate ");
        // What is wrong with the policy is enough; of the other commands it is said which was run.
        return match text.strip_prefix("apply: ") {
            Some(reason) => invalid(reason),
            None => invalid(format!("`tidegate {}`: {text}", words.join(" "))),
        };
    }
    let result = serde_json::from_slice(&done.stdout).map_err(std::io::Error::from);
    result.context(format!("what `tidegate {}` said", words.join(" ")))
}

fn shell(line: &str) -> Result<()> {
    let done = Command::new("/bin/sh").args(["-c", line]).stdin(Stdio::null()).output().context("/bin/sh")?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    match done.status.success() {
        true => Ok(()),
        false => invalid(format!("`{line}` failed ({}): {}", done.status, stderr.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::{must_be_alone, must_be_off};
    use serde_json::json;

    #[test]
    fn the_line_has_no_policy_before_the_first_turn() {
        let plan =
            |steps: &[&str]| json!({"plan": {"devices": [{"dev": "eth0", "steps": steps}], "rules": null}});
        let status = |device: &str| json!({"policies": [{"name": "eth0-up", "devices": [device]}]});
        assert!(must_be_off(&plan(&["tc qdisc add …"])).is_ok());
        let error = must_be_off(&plan(&[])).expect_err("it is on").to_string();
        assert!(error.contains("`tidegate down eth0`"), "{error}");
        let new = plan(&["tc qdisc change …"]);
        assert!(must_be_alone(&new, &json!({"policies": []})).is_ok());
        assert!(must_be_alone(&new, &status("eth1")).is_ok());
        let error = must_be_alone(&new, &status("eth0")).expect_err("another is on").to_string();
        assert!(error.contains("`tidegate down eth0-up`"), "{error}");
    }
}
