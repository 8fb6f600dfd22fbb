//! What all tools work with: the machine, and what the call under way needs and has done.

use crate::call::{Effect, Reply};
use crate::machine::{Carried, Machine};
use tidegate_packet::{Pool, RandomSource};
use tidegate_syntax::Refusal;

/// The tools of a machine, with what carrying out an operation needs: see [`Machine::shim`].
///
/// ```
/// # use tidegate_gateway::DeviceSpec;
/// # use tidegate_packet::{Pool, Seeded};
/// use tidegate_shims::{Answer, Call, Machine};
///
/// let mut machine = Machine::for_script(["eth0"]);
/// let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
/// let words = ["link", "add", "ifb0", "type", "ifb"].map(str::to_owned);
/// let call = Call { tool: "ip".into(), args: words.to_vec(), stdin: None, cwd: "/".into(), netns: None };
/// assert_eq!(machine.shim(&mut pool, &mut draws).answer(&call).code, 0);
/// assert!(machine.gateway.device("ifb0").is_some());
/// ```
pub struct ToolShim<'m> {
    pub(crate) machine: &'m mut Machine,
    pub(crate) pool: &'m mut Pool,
    pub(crate) draws: &'m mut dyn RandomSource,
    /// What the call under way changes in the sandbox.
    pub(crate) effects: Vec<Effect>,
    /// The line under way of what the call was given to read: a batch, a file of rules.
    pub(crate) line: Option<usize>,
    /// Says whether the time of the run is up: work of many steps stops then.
    pub(crate) is_over: Option<Box<dyn Fn() -> bool>>,
}

impl Machine {
    /// The tools, for as long as a command runs.
    pub fn shim<'m>(&'m mut self, pool: &'m mut Pool, draws: &'m mut dyn RandomSource) -> ToolShim<'m> {
        ToolShim { machine: self, pool, draws, effects: Vec::new(), line: None, is_over: None }
    }
}

impl ToolShim<'_> {
    /// Is the time of the run up?
    pub(crate) fn is_late(&self) -> bool {
        self.is_over.as_ref().is_some_and(|is_over| is_over())
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        self.machine
    }

    /// How many operations and how many commands were carried out so far.
    pub fn counts(&self) -> (usize, usize) {
        (self.machine.log.len(), self.machine.carried.len())
    }

    /// Gives commands that were carried out other lines: of what the lines of their input come from.
    pub fn relabel(&mut self, carried: std::ops::Range<usize>, lines: &[usize]) {
        for one in self.machine.carried.get_mut(carried).unwrap_or_default() {
            one.line = one.line.map(|line| lines.get(line - 1).copied().unwrap_or(line));
        }
    }

    /// Notes a command that was carried out, as it would be written again.
    pub(crate) fn did(&mut self, tool: &str, words: &[String]) {
        let ops = self.machine.log.len();
        let mut all = vec![tool.to_owned()];
        all.extend(words.iter().cloned());
        self.machine.carried.push(Carried { words: all, ops, line: self.line });
    }
}

/// The most bytes of a line of a refusal: the word that it quotes may be a whole file.
const MAX_LINE: usize = 4096;

/// A text whose lines are cut.
fn cut(text: String) -> String {
    if text.lines().all(|line| line.len() <= MAX_LINE) {
        return text;
    }
    let mut out = String::new();
    for line in text.lines() {
        let end = line.floor_char_boundary(MAX_LINE.min(line.len()));
        out.push_str(&line[..end]);
        out.push_str(if end < line.len() { "…\n" } else { "\n" });
    }
    out
}

/// A refusal as the tool prints it, our better explanation after its own words.
pub(crate) fn refused(shim: &ToolShim<'_>, tool: &str, refusal: Refusal) -> Reply {
    let mut text = cut(refusal.stderr);
    let missing = text.starts_with("Cannot find device");
    let remedy = refusal.remedy.or_else(|| {
        missing.then(|| {
            "There is no such device on this machine; make it first (ip link add … type …, \
        modprobe ifb), or correct the name."
                .into()
        })
    });
    if let Some(remedy) = remedy.filter(|_| shim.machine.grows) {
        text.push_str(&format!("{tool}: {remedy}\n"));
    }
    Reply { at_fault: refusal.word, ..Reply::error(refusal.code, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_refusal_quotes_has_a_bound() {
        let long = "é".repeat(1 << 20);
        let text = cut(format!("Object \"{long}\" is unknown\nshort\n"));
        assert!(text.len() < MAX_LINE + 32 && text.ends_with("…\nshort\n"), "{}", text.len());
        assert_eq!(cut("a\nb".to_owned()), "a\nb");
    }
}
