//! A policy's text, loaded.

use crate::refusal::Refusal;
use crate::request::PolicyRequest;
use tidegate_capture::Exit;
use tidegate_loader::{InputFormat, LoadedPolicy, ReadOptions, read_command_list, read_text, short, sniff};

/// What is said of a script, which cannot run here.
const SCRIPT: &str = "this is a shell script, and a page cannot run one";
const PASTE: &str =
    "run `tidegate run --print tc SCRIPT` on your computer, and paste the commands that it prints";

/// Loads a request's policy.
pub(crate) fn load(request: &PolicyRequest, batches_go_on: bool) -> Result<LoadedPolicy, Refusal> {
    let PolicyRequest { name, policy, .. } = request;
    if policy.trim().is_empty() {
        return Err(Refusal::with("there is no policy", "write commands of tc, or take one of the examples"));
    }
    let format = sniff(name, policy.as_bytes()).map_err(|why| Refusal::new(why.to_string()))?;
    if short::is_short(format)
        && let Err(problems) = short::policies(format, name, policy)
    {
        return Err(Refusal::of_short(&problems));
    }
    let options = ReadOptions {
        devices: request.dev.iter().cloned().collect(),
        seed: request.seed.filter(|_| !batches_go_on).unwrap_or(ReadOptions::default().seed),
        batches_go_on,
        ..ReadOptions::default()
    };
    let loaded = match format {
        InputFormat::Script => {
            read_command_list(name, policy, &options).ok_or_else(|| Refusal::with(SCRIPT, PASTE))?
        }
        _ => read_text(name, policy, &options),
    };
    loaded.map_err(|error| Refusal::new(error.to_string()))
}

/// The commands that a policy comes to: what a short policy is compiled to, and what a batch
/// or a list of rules has.
pub(crate) fn commands(request: &PolicyRequest) -> Result<String, Refusal> {
    let loaded = load(request, false)?;
    if loaded.outcomes.iter().any(|outcome| outcome.exit != Exit::Code(0)) {
        return Err(Refusal::of_troubles("a command of the policy fails", &loaded));
    }
    let line =
        |words: &Vec<String>| words.iter().map(|word| tidegate_text::shell_word(word)).collect::<Vec<_>>();
    let lines: Vec<String> = loaded.machine.carried.iter().map(|one| line(&one.words).join(" ")).collect();
    Ok(serde_json::to_string_pretty(&serde_json::json!({ "commands": lines })).unwrap_or_default() + "\n")
}
