//! How the commands of a recording are carried out.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use tidegate_recording::line::{pieces, plain};
use tidegate_shims::{Answer, Call, Reply, TOOLS, ToolShim};

/// Carries out the commands of a recording on its machine. The command line does that with a real shell in a
/// sandbox.
pub trait Commands {
    /// The script with which the run begins, as by `sh -e`: it stops at the first command that fails.
    ///
    /// # Errors
    /// It cannot be carried out at all; commands that the machine refuses are no error.
    fn script(&mut self, shim: &mut ToolShim<'_>) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// A line of the schedule.
    ///
    /// # Errors
    /// As above.
    fn line(&mut self, line: &str, shim: &mut ToolShim<'_>) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Carries out commands without a shell: lines of tools and of `echo`, with words in quotes, `;`, `$?`, `set
/// +e`, and `>>` into one file. That is what most recordings hold; whatever needs more of a shell is refused.
///
/// ```
/// use tidegate_gateway::DeviceSpec;
/// use tidegate_packet::{Pool, Seeded};
/// use tidegate_replay::recorded::{Commands, PlainCommands};
/// use tidegate_shims::Machine;
///
/// let mut machine = Machine::new(["link0"], DeviceSpec::default());
/// let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
/// let mut commands = PlainCommands::new("tc qdisc add dev link0 root handle 1: pfifo limit 5\n");
/// commands.script(&mut machine.shim(&mut pool, &mut draws)).unwrap();
/// let line = "echo before >> snap.txt; tc qdisc show dev link0 >> snap.txt";
/// commands.line(line, &mut machine.shim(&mut pool, &mut draws)).unwrap();
/// assert_eq!(commands.snapshot().unwrap(), b"before\nqdisc pfifo 1: root refcnt 2 limit 5p\n");
/// let line = "for c in 1 2; do tc qdisc; done";
/// assert!(commands.line(line, &mut machine.shim(&mut pool, &mut draws)).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct PlainCommands {
    script: String,
    written: Option<Vec<u8>>,
    /// The exit code of the last command.
    code: u8,
    /// The script has `set +e`: it continues after a command that fails.
    goes_on: bool,
}

/// A line that needs a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPlain {
    /// The line's text.
    pub line: String,
}

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` needs a shell", self.line)
    }
}

impl Error for NotPlain {}

impl PlainCommands {
    /// With the text of a script.
    pub fn new(script: &str) -> PlainCommands {
        PlainCommands { script: script.to_owned(), ..PlainCommands::default() }
    }

    /// What commands wrote into a file.
    pub fn snapshot(&self) -> Option<&[u8]> {
        self.written.as_deref()
    }

    /// Does the script end here?
    fn stopped(&self) -> bool {
        self.code != 0 && !self.goes_on
    }

    /// Carries out a line, to its first command that fails if `stops`.
    fn carry_out(&mut self, line: &str, stops: bool, shim: &mut ToolShim<'_>) -> Result<(), NotPlain> {
        let not_plain = || NotPlain { line: line.to_owned() };
        for piece in pieces(line).ok_or_else(not_plain)? {
            let Some((words, to)) = plain(&piece, self.code).ok_or_else(not_plain)? else { continue };
            let reply = self.answered(words, shim).ok_or_else(not_plain)?;
            self.code = reply.code;
            if let Some(anew) = to.out {
                let written = self.written.get_or_insert_default();
                if anew {
                    written.clear();
                }
                written.extend(reply.stdout);
                if to.errors {
                    written.extend(reply.stderr);
                }
            }
            if stops && self.stopped() {
                break;
            }
        }
        Ok(())
    }

    /// What a command prints; `None`: it is none that is known here.
    fn answered(&mut self, mut words: Vec<String>, shim: &mut ToolShim<'_>) -> Option<Reply> {
        let tool = words.remove(0);
        match tool.as_str() {
            "echo" => Some(Reply { stdout: (words.join(" ") + "\n").into_bytes(), ..Reply::ok() }),
            "true" | ":" => Some(Reply::ok()),
            "set" if words == ["+e"] || words == ["-e"] => {
                self.goes_on = words == ["+e"];
                Some(Reply::ok())
            }
            tool if TOOLS.contains(&tool) => Some(shim.answer(&Call {
                tool: tool.to_owned(),
                args: words,
                stdin: None,
                cwd: PathBuf::from("/tmp"),
                netns: None,
            })),
            _ => None,
        }
    }
}

impl Commands for PlainCommands {
    fn script(&mut self, shim: &mut ToolShim<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let script = std::mem::take(&mut self.script);
        for line in script.lines() {
            self.carry_out(line, true, shim)?;
            if self.stopped() {
                break;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, shim: &mut ToolShim<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.carry_out(line, false, shim)?)
    }
}
