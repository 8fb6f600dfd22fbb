//! A policy tried on a simulated home link, with a leaf of choice below a shaper.

use tidegate_custom_qdisc::Deadline;
use tidegate_packet::{Handle, Nanos, Pool, Rate, Seeded};
use tidegate_policy::{Op, QdiscOp, SharedBlocks, Verb};
use tidegate_qdisc::custom;
use tidegate_shims::Machine;
use tidegate_trial::{Configured, Trial, TrialDevices, TrialLoad, TrialPolicy, TrialProbe, TrialSettings};

/// What stands below the shaper.
#[derive(Clone, Copy)]
pub(crate) enum Leaf {
    /// A pfifo of so many packets.
    #[allow(dead_code)] // the example program tries one only
    Pfifo(u32),
    /// The example's qdisc.
    Deadline(Deadline),
}

/// The operation that puts `kind` on the class `parent` of a device, with the handle 10:.
pub(crate) fn add(dev: &str, parent: Handle, kind: Deadline) -> Op {
    Op::Qdisc(QdiscOp {
        verb: Verb::Add,
        dev: dev.into(),
        parent,
        handle: Handle::new(0x10, 0),
        kind: Some("custom".into()),
        params: Some(custom(kind)),
        stab: None,
        estimator: None,
        blocks: SharedBlocks::default(),
    })
}

/// A machine that shapes uploads on `eth0` to 1 Mbit/s in one class.
pub(crate) fn machine(leaf: Leaf) -> Machine {
    let mut machine = Machine::for_script(["eth0"]);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut shim = machine.shim(&mut pool, &mut draws);
    let mut tc = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(shim.tc(&words, None).code, 0, "{line}");
    };
    tc("qdisc add dev eth0 root handle 1: htb default 1");
    tc("class add dev eth0 parent 1: classid 1:1 htb rate 1mbit");
    match leaf {
        Leaf::Pfifo(limit) => tc(&format!("qdisc add dev eth0 parent 1:1 handle 10: pfifo limit {limit}")),
        Leaf::Deadline(kind) => {
            let done = shim.apply(add("eth0", Handle::new(1, 1), kind));
            assert!(done.is_ok(), "{done:?}");
        }
    }
    machine
}

/// The document of a run as `tidegate try` makes it: an upload beside pings, without the policy and with it.
pub(crate) fn tried(leaf: Leaf) -> tidegate_measure::trial::TrialDocument {
    let configured = Configured {
        machine: machine(leaf),
        commands: 3,
        wan: None,
        lan: None,
        notes: Vec::new(),
        names: Default::default(),
    };
    let policy = TrialPolicy::new(configured, TrialDevices::default()).expect("one device is configured");
    let settings = TrialSettings {
        duration: Nanos::secs(5),
        load: vec![TrialLoad::Tcp1up],
        probes: vec![TrialProbe::Ping],
        ..TrialSettings::new("deadline.sh", Rate::bits(1_200_000), Rate::bits(10_000_000))
    };
    let mut trial = Trial::new(&settings, &policy);
    trial.explore();
    trial.simulate(&|| ());
    trial.document()
}
