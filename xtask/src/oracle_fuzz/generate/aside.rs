//! Devices beside the link: the ifb that packets are redirected to, and filters where they come in.

use super::World;
use super::kinds::KINDS;

/// Kinds that an ifb is given.
const ON_IFB: &[&str] = &["pfifo", "tbf", "fq_codel", "sfq", "red", "codel"];

impl World {
    /// Brings up the devices that packets may be redirected to, with a queue that shows where they have been.
    pub(super) fn devices_aside(&mut self) {
        for device in ["ifb0", "ifb1"] {
            self.script.push(format!("ip link set {device} up"));
            if self.rng.chance(70) {
                let kind = *self.rng.pick(ON_IFB);
                let words = KINDS
                    .iter()
                    .find(|spec| spec.name == kind)
                    .map(|spec| (spec.words)(&mut self.rng, self.rate));
                let line =
                    format!("tc qdisc add dev {device} root handle 1: {kind} {}", words.unwrap_or_default());
                self.script.push(line.trim_end().to_owned());
            }
        }
    }

    /// Filters where routed packets come in.
    pub(super) fn arrivals(&mut self) {
        let (qdisc, hook) = *self.rng.pick(&[("clsact", "ingress"), ("ingress", "parent ffff:")]);
        self.script.push(format!("tc qdisc add dev in1 {qdisc}"));
        for pref in 1..=self.rng.range(1, 4) {
            let condition = self.anything("ip");
            let result = if self.rng.chance(30) { " classid 1:1" } else { "" };
            let action = self.actions(90);
            self.script.push(format!(
                "tc filter add dev in1 {hook} protocol ip prio {pref} {condition}{result}{action}"
            ));
        }
    }

    /// The kind and the question of some filter.
    fn anything(&mut self, protocol: &str) -> String {
        let text = match self.rng.below(4) {
            0 => "matchall".to_owned(),
            1 => format!("flower {}", self.flower(protocol)),
            2 => format!("basic {}", self.basic()),
            _ => format!("u32 match ip protocol {} 0xff", self.rng.pick(&[6, 17])),
        };
        text.trim_end().to_owned()
    }
}
