//! Batches of tc and ip: carried out line by line, within the time and the output that a run may have.

use crate::call::Reply;
use crate::shim::{ToolShim, refused};
use tidegate_syntax::batch::{self, BatchLine};

/// The most bytes that all lines of one batch may print: each can ask for everything that the others have
/// made.
const MAX_PRINTED: usize = 64 << 20;

/// Carries out the lines of a batch; `one` carries out a command and returns whether the tool ends with it,
/// with its own code.
pub(super) fn run(
    shim: &mut ToolShim<'_>,
    tool: &str,
    (file, text): (&str, &[u8]),
    force: bool,
    mut one: impl FnMut(&mut ToolShim<'_>, &BatchLine) -> (Reply, bool),
) -> Reply {
    let text = String::from_utf8_lossy(text);
    let mut all = Reply::ok();
    for line in batch::lines(&text) {
        let (number, (reply, ends)) = match &line {
            Ok(line) => match beyond(shim, all.stdout.len() + all.stderr.len()) {
                Some(why) => (
                    0,
                    (
                        Reply::error(1, format!("tidegate: {why} at line {} of the batch\n", line.number)),
                        true,
                    ),
                ),
                None => (line.number, one(shim, line)),
            },
            Err(refusal) => (0, (refused(shim, tool, refusal.clone()), true)),
        };
        all.stdout.extend_from_slice(&reply.stdout);
        all.stderr.extend_from_slice(&reply.stderr);
        if ends {
            all.code = reply.code;
            break;
        }
        // What only tidegate cannot carry out stops no batch of tc's.
        let is_ours = reply.is_ours();
        if reply.code != 0 {
            all.stderr.extend(batch::failed(file, number).into_bytes());
            all.code = 1;
            if !force && !is_ours {
                break;
            }
        }
    }
    all
}

/// Why no further command of one call may be carried out, after those that printed so many bytes.
pub(super) fn beyond(shim: &ToolShim<'_>, printed: usize) -> Option<String> {
    if shim.is_late() {
        Some("the run's time was up".to_owned())
    } else if printed > MAX_PRINTED {
        Some(format!("more than {} MiB of output", MAX_PRINTED >> 20))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Machine;
    use super::*;
    use tidegate_gateway::DeviceSpec;
    use tidegate_packet::{Pool, Seeded};

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_batch_ends_with_the_time_of_its_run() {
        let (mut pool, mut draws) = (Pool::new(16), Seeded::new(1));
        let mut machine = Machine::new(["eth0"], DeviceSpec::default());
        let mut shim = machine.shim(&mut pool, &mut draws);
        let batch = b"qdisc add dev eth0 root handle 1: htb\nclass add dev eth0 parent 1: classid 1:1 htb \
        rate 1mbit\n";
        shim.is_over = Some(Box::new(|| false));
        assert_eq!(shim.tc(&words("-batch -"), Some(batch)), Reply::ok());
        shim.is_over = Some(Box::new(|| true));
        let late = shim.tc(&words("-force -batch -"), Some(b"class show dev eth0\nclass show dev eth0\n"));
        let text = "tidegate: the run's time was up at line 1 of the batch\n";
        assert_eq!(late, Reply::error(1, text.to_owned()));
    }

    #[test]
    fn a_batch_ends_at_its_first_refused_line() {
        let batch = b"qdisc add dev eth0 root handle 1: htb\nclass add dev eth0 parent 9: classid 9:1 htb \
                      rate 1mbit\nclass add dev eth0 parent 1: classid 1:2 htb rate 1mbit\n";
        let ops = |flags: &str| {
            let mut machine = Machine::new(["eth0"], DeviceSpec::default());
            let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
            let reply = machine.shim(&mut pool, &mut draws).tc(&words(flags), Some(batch));
            let failed = String::from_utf8_lossy(&reply.stderr).contains("Command failed -:2\n");
            (machine.log.len(), reply.code, failed)
        };
        assert_eq!(ops("-batch -"), (1, 1, true));
        assert_eq!(ops("-force -batch -"), (2, 1, true));
    }

    #[test]
    fn what_a_batch_prints_has_a_bound() {
        let (mut pool, mut draws) = (Pool::new(16), Seeded::new(1));
        let mut machine = Machine::new(["eth0"], DeviceSpec::default());
        let mut shim = machine.shim(&mut pool, &mut draws);
        let make: String = (2..2002)
            .map(|n| format!("class add dev eth0 parent 1: classid 1:{n:x} htb rate 1mbit\n"))
            .collect();
        let make = format!("qdisc add dev eth0 root handle 1: htb\n{make}");
        assert_eq!(shim.tc(&words("-batch -"), Some(make.as_bytes())).code, 0);
        let show = "class show dev eth0\n".repeat(2000);
        let reply = shim.tc(&words("-batch -"), Some(show.as_bytes()));
        assert_eq!(reply.code, 1);
        assert!(
            String::from_utf8_lossy(&reply.stderr)
                .starts_with("tidegate: more than 64 MiB of output at line ")
        );
        assert!(reply.stdout.len() < MAX_PRINTED + (1 << 20));
    }
}
