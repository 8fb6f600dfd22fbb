//! Binding a policy to another device than it names.

use std::collections::BTreeSet;
use std::fmt;
use tidegate_inspect::ClassNames;
use tidegate_policy::{LinkDriver, LinkOp, Op};

/// Why a policy cannot be bound to another device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RebindError {
    /// It queues nothing on any device.
    NoDevice {
        /// The device it was to be bound to.
        to: String,
    },
    /// It is for several devices.
    Several(Vec<String>),
}

impl fmt::Display for RebindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RebindError::NoDevice { to } => {
                write!(f, "the policy queues nothing on any device, so it cannot be bound to `{to}`")
            }
            RebindError::Several(devices) => {
                let devices = devices.join(" and ");
                write!(
                    f,
                    "the policy is for {devices}; one for a single device can be bound to another with --dev"
                )
            }
        }
    }
}

impl std::error::Error for RebindError {}

/// The devices that a policy queues on and does not make itself: neither an ifb nor lo. In the order of their
/// names.
pub fn real_devices(ops: &[Op]) -> Vec<String> {
    let made = |op: &Op| match op {
        Op::Link(LinkOp::Add { name, .. }) => Some(name.clone()),
        _ => None,
    };
    let made: BTreeSet<String> = ops.iter().filter_map(made).collect();
    let queues = |op: &&Op| matches!(op, Op::Qdisc(_) | Op::Class(_) | Op::Filter(_));
    let named: BTreeSet<&str> = ops.iter().filter(queues).filter_map(Op::device).collect();
    let real =
        |name: &&str| !made.contains(*name) && LinkDriver::of_name(name) != LinkDriver::Ifb && *name != "lo";
    named.into_iter().filter(real).map(str::to_owned).collect()
}

/// The device after which the daemon of a policy is named: the first, in the order of names, on which what
/// leaves is queued; else the first of [`real_devices`]. `None`: there is none.
pub fn main_device(ops: &[Op]) -> Option<String> {
    let leaves = |name: &&String| {
        ops.iter().any(|op| match op {
            Op::Qdisc(op) => {
                op.dev == **name && op.kind.as_deref().is_some_and(|kind| !HOOKS.contains(&kind))
            }
            _ => false,
        })
    };
    let real = real_devices(ops);
    real.iter().find(leaves).or(real.first()).cloned()
}

/// Kinds of qdiscs that queue nothing.
const HOOKS: [&str; 2] = ["ingress", "clsact"];

/// The same policy for device `to`, wherever it names the one device that it is for.
///
/// # Errors
/// It is for several devices, or for none.
///
/// ```
/// use tidegate_plan::rebind::{RebindError, on_device};
///
/// assert_eq!(on_device(&[], "wan7"), Err(RebindError::NoDevice { to: "wan7".into() }));
/// ```
pub fn on_device(ops: &[Op], to: &str) -> Result<Vec<Op>, RebindError> {
    let real = real_devices(ops);
    let [from] = real.as_slice() else {
        return Err(match real.is_empty() {
            true => RebindError::NoDevice { to: to.to_owned() },
            false => RebindError::Several(real),
        });
    };
    let mut ops = ops.to_vec();
    let mut rename = |name: &mut String| {
        if name == from {
            to.clone_into(name);
        }
    };
    ops.iter_mut().for_each(|op| op.each_device(&mut rename));
    Ok(ops)
}

/// The names of a policy's classes where [`on_device`] binds it to device `to`.
pub fn names_on_device(names: &ClassNames, ops: &[Op], to: &str) -> ClassNames {
    let real = real_devices(ops);
    let bound = |dev: &String| if real == [dev.as_str()] { to.to_owned() } else { dev.clone() };
    names.iter().map(|((dev, class), name)| ((bound(dev), *class), name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_loader::{ReadOptions, read_text};

    fn ops(batch: &str) -> Vec<Op> {
        let Ok(taken) = read_text("x.batch", batch, &ReadOptions::default()) else { panic!("a batch") };
        taken.machine.log
    }

    #[test]
    fn every_name_of_the_device_is_another() {
        let script = |dev: &str| {
            format!(
                "qdisc add dev {dev} root handle 1: htb default 10\nclass add dev {dev} parent 1: classid \
                1:10 htb rate 1mbit\n\
                 qdisc add dev {dev} handle ffff: ingress\n\
                 filter add dev {dev} parent ffff: protocol ip u32 match u32 0 0 action mirred egress \
                 redirect dev ifb0\n\
                 qdisc add dev ifb0 root tbf rate 1mbit burst 2k limit 10k\n\
                 filter add dev ifb0 parent 1: protocol ip u32 match u32 0 0 action mirred egress mirror \
                 dev {dev}\n"
            )
        };
        let bound = on_device(&ops(&script("eth0")), "wan7").expect("it is for one device");
        assert_eq!(bound, ops(&script("wan7")));
        assert_eq!(real_devices(&bound), ["wan7"]);
    }

    #[test]
    fn a_policy_is_named_after_what_it_queues_on_first() {
        let main = |batch: &str| {
            let Ok(taken) = read_text("x.batch", batch, &ReadOptions::default()) else { panic!("a batch") };
            main_device(&taken.machine.log)
        };
        let two = "qdisc add dev lan0 root sfq\nqdisc add dev eth0 root sfq\n";
        assert_eq!(main(two).as_deref(), Some("eth0"));
        let arrives = "qdisc add dev eth0 ingress\nqdisc add dev lan0 root sfq\n";
        assert_eq!(main(arrives).as_deref(), Some("lan0"));
        assert_eq!(main("qdisc add dev eth0 ingress\n").as_deref(), Some("eth0"));
        assert_eq!(main_device(&[]), None);
    }

    #[test]
    fn names_of_classes_go_with_their_device() {
        let batch = "qdisc add dev eth0 root handle 1: htb\n\
                     # calls\n\
                     class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n";
        let Ok(taken) = read_text("x.batch", batch, &ReadOptions::default()) else { panic!("a batch") };
        let bound = names_on_device(&taken.names, &taken.machine.log, "wan7");
        let class = ("wan7".to_owned(), tidegate_packet::Handle::new(1, 0x10));
        assert_eq!(bound.into_iter().collect::<Vec<_>>(), [(class, "calls".to_owned())]);
    }

    #[test]
    fn a_policy_for_two_devices_or_none_is_bound_to_no_other() {
        let two = ops("qdisc add dev eth0 root pfifo\nqdisc add dev eth1 root pfifo\n");
        let text = on_device(&two, "wan7").expect_err("two").to_string();
        assert_eq!(
            text,
            "the policy is for eth0 and eth1; one for a single device can be bound to another with --dev"
        );
        assert!(
            on_device(&[], "wan7").expect_err("none").to_string().starts_with("the policy queues nothing")
        );
    }
}
