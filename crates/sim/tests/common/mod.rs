//! What the tests share: machines with a policy, made of operations.

use tidegate_gateway::{DeviceSpec, Gateway, World};
use tidegate_packet::{Handle, Pool, Rate, Seeded, Time};
use tidegate_policy::{
    ClassOp, ClassParams, HtbClassParams, HtbParams, Op, QdiscOp, QdiscParams, RateSpec, Ticks, Verb,
};
use tidegate_sim::GatewayMachine;

/// A qdisc to add.
pub(crate) fn qdisc(parent: Handle, handle: Handle, kind: &str, params: Option<QdiscParams>) -> Op {
    Op::Qdisc(QdiscOp {
        verb: Verb::Add,
        dev: "wan0".into(),
        parent,
        handle,
        kind: Some(kind.into()),
        params,
        stab: None,
        estimator: None,
    })
}

/// A class to add.
#[allow(dead_code)]
pub(crate) fn class(parent: Handle, classid: Handle, kind: &str, params: ClassParams) -> Op {
    Op::Class(ClassOp {
        verb: Verb::Add,
        dev: "wan0".into(),
        parent,
        classid,
        kind: Some(kind.into()),
        params: Some(params),
        estimator: None,
    })
}

/// A class of HTB with this rate and ceiling, bucket of 1600 bytes.
#[allow(dead_code)]
pub(crate) fn htb_class(parent: Handle, classid: Handle, rate: Rate, prio: u32) -> Op {
    let spec = RateSpec { rate, ..RateSpec::default() };
    // 1600 bytes in ticks of 64 ns.
    let buffer = Ticks((1600 * Ticks::PER_SECOND / rate.0) as u32);
    let params = HtbClassParams { rate: spec, ceil: spec, buffer, cbuffer: buffer, quantum: 1514, prio };
    class(parent, classid, "htb", ClassParams::Htb(params))
}

/// `htb default 1` with the one class 1:1 of this rate, bucket of 1600 bytes.
#[allow(dead_code)]
pub(crate) fn htb(rate: Rate) -> [Op; 2] {
    let one = Handle::new(1, 0);
    let params = HtbParams { default: 1, ..HtbParams::default() };
    [qdisc(Handle::ROOT, one, "htb", Some(QdiscParams::Htb(params))), htb_class(one, one.class(1), rate, 0)]
}

/// A machine with one device, port 0, after these operations.
#[allow(dead_code)]
pub(crate) fn machine(ops: &[Op]) -> GatewayMachine {
    let mut gateway = Gateway::new();
    let device = gateway.add_device("wan0", DeviceSpec { hz: 1000, ..DeviceSpec::default() });
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    for op in ops {
        let world = World { now: Time(0), pool: &mut pool, draws: &mut draws };
        gateway.apply(world, op).unwrap_or_else(|error| panic!("{op:?}: {error:?}"));
    }
    GatewayMachine::new(gateway, [device], 1)
}
