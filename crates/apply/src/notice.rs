//! Messages while a policy is applied.

use std::fmt;

/// A message while a policy is applied. Its `Display` is the text, whole lines for progress, one sentence
/// without a line's end for a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Whose qdiscs will hold the packets, and why.
    Backend {
        /// The devices of the policy.
        devices: Vec<String>,
        /// The reason, in words.
        why: String,
    },
    /// What will be changed, a line for each step, as commands of tc.
    Plan(String),
    /// A qdisc of the kernel's stays on a device whose packets a daemon queues.
    Bypassed {
        /// The device's name.
        dev: String,
        /// The kernel's qdisc and its handle.
        qdisc: String,
        /// How packets come to the daemon, where that is known.
        packet_io: Option<String>,
    },
    /// The policy is applied.
    Applied {
        /// To these devices.
        devices: Vec<String>,
        /// The name that it is kept under.
        name: String,
        /// Seconds until it is undone unless it is confirmed.
        confirm: Option<u64>,
    },
    /// A warning about applying.
    Warning(String),
    /// A warning about the policy's own files.
    Policy(String),
    /// A warning of a daemon that is started.
    Daemon(String),
}

/// Takes notices as they come.
///
/// ```
/// use tidegate_apply::{Notice, NoticeHandler};
///
/// let report: NoticeHandler<'_> = &|notice| if notice.is_progress() { print!("{notice}") } else {
/// eprintln!("{notice}") }; report(Notice::Warning("the policy queues nothing".into()));
/// assert_eq!(
///     Notice::Backend { devices: vec!["eth0".into()], why: "as asked".into() }.to_string(),
///     "eth0: as asked\n"
/// );
/// ```
pub type NoticeHandler<'r> = &'r dyn Fn(Notice);

impl Notice {
    /// True for progress, false for warnings.
    pub fn is_progress(&self) -> bool {
        !matches!(self, Notice::Warning(_) | Notice::Policy(_) | Notice::Daemon(_))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Backend { devices, why } => writeln!(f, "{}: {why}", devices.join(", ")),
            Notice::Plan(text) | Notice::Warning(text) | Notice::Policy(text) | Notice::Daemon(text) => {
                f.write_str(text)
            }
            Notice::Bypassed { dev, qdisc, packet_io } => {
                let effect = match packet_io.as_deref() {
                    Some("nfqueue") => {
                        "packets pass it after tidegate's daemon, so they are queued twice".to_owned()
                    }
                    Some(packet_io) => {
                        format!("packets bypass it while tidegate's daemon has the device ({packet_io})")
                    }
                    None => {
                        "packets would bypass it with --packet-io capture, and be queued twice with --packet-io nfqueue"
                            .to_owned()
                    }
                };
                writeln!(
                    f,
                    "{dev} has the kernel's {qdisc}: {effect}; it is left as it is, and is in force again \
                    after `tidegate down`"
                )
            }
            Notice::Applied { devices, name, confirm } => {
                writeln!(f, "applied to {}", devices.join(", "))?;
                if let Some(seconds) = confirm {
                    writeln!(f, "it is undone in {seconds} s unless confirmed: tidegate confirm {name}")?;
                }
                writeln!(f, "watch it: tidegate top {name}; undo it: tidegate revert {name}")
            }
        }
    }
}
