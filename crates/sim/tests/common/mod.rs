//! What the tests share: machines with a policy, made of operations.

use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Handle, Pool, Rate, Seeded, Time};
use tidegate_policy::{
    ClassOp, ClassParams, HtbClassParams, HtbParams, Op, QdiscOp, QdiscParams, RateSpec, SharedBlocks, Ticks,
    Verb,
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
        blocks: SharedBlocks::default(),
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
    let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
    for op in ops {
        let world = GatewayContext { now: Time(0), pool: &mut pool, random: &mut source };
        gateway.apply(world, op).unwrap_or_else(|error| panic!("{op:?}: {error:?}"));
    }
    GatewayMachine::new(gateway, [device], 1)
}

/// Prints figures as rows of `docs/validation.md`: `validation: GROUP | ID | WHAT | EXPECTED | FOUND |
/// VERDICT | SOURCE`.
#[allow(dead_code)]
pub(crate) struct Row {
    /// The group the rows are in.
    pub(crate) group: &'static str,
    /// Where the expected values come from.
    pub(crate) source: &'static str,
}

#[allow(dead_code)]
impl Row {
    /// A figure that should be within `band` (a share) of another. Where `gate` is given, it is wrong beyond
    /// that; otherwise it is only reported. Tells what is wrong.
    pub(crate) fn near(
        &self,
        id: &str,
        what: &str,
        expected: f64,
        found: f64,
        band: f64,
        gate: Option<f64>,
    ) -> Option<String> {
        let off = if expected == 0.0 && found == 0.0 { 0.0 } else { found / expected - 1.0 };
        let verdict = match gate {
            _ if off.abs() <= band => "within",
            Some(_) => "outside",
            None => "reported",
        };
        let (expects, finds) = (short(expected), short(found));
        self.print(
            id,
            what,
            &format!("{expects} ± {:.0} %", band * 100.0),
            &format!("{finds} ({:+.1} %)", off * 100.0),
            verdict,
        );
        gate.filter(|&gate| off.is_nan() || off.abs() > gate)
            .map(|_| format!("{id} {what}: {finds} for {expects}"))
    }

    /// A figure that should lie in a range. Tells what is wrong.
    pub(crate) fn inside(
        &self,
        id: &str,
        what: &str,
        range: std::ops::RangeInclusive<f64>,
        found: f64,
    ) -> Option<String> {
        let good = range.contains(&found);
        let expected = match (range.start(), range.end()) {
            (&f64::NEG_INFINITY, high) => format!("at most {}", short(*high)),
            (low, &f64::INFINITY) => format!("at least {}", short(*low)),
            (low, high) if low == high => short(*low),
            (low, high) => format!("{} to {}", short(*low), short(*high)),
        };
        self.print(id, what, &expected, &short(found), if good { "within" } else { "outside" });
        (!good).then(|| format!("{id} {what}: {} for {expected}", short(found)))
    }

    /// A figure that is reported and not compared.
    pub(crate) fn report(&self, id: &str, what: &str, expected: &str, found: f64) {
        self.print(id, what, expected, &short(found), "reported");
    }

    fn print(&self, id: &str, what: &str, expected: &str, found: &str, verdict: &str) {
        println!(
            "validation: {} | {id} | {what} | {expected} | {found} | {verdict} | {}",
            self.group, self.source
        );
    }
}

/// Three or four figures of a number.
#[allow(dead_code)]
fn short(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        v if v >= 0.01 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}
