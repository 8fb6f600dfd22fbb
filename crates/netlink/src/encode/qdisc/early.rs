//! Kinds that drop early: red, choke, sfb, gred.

use tidegate_os::attribute::{Attributes, words};
use tidegate_policy::{GredFlags, GredParams, GredQueue, GredSetup, IdleTable, RedCurve, RedParams, SfbParams};

/// The flags that red has: ecn, harddrop, adaptive, nodrop.
const ALL_FLAGS: u32 = 15;

fn flags(params: &RedParams) -> u8 {
    let RedParams { ecn, harddrop, adaptive, nodrop, .. } = params;
    u8::from(*ecn) | u8::from(*harddrop) << 1 | u8::from(*adaptive) << 2 | u8::from(*nodrop) << 3
}

fn curve(limit: u32, curve: &RedCurve, flags: u8) -> Vec<u8> {
    let mut octets = words(&[limit, curve.min, curve.max]);
    octets.extend([curve.wlog, curve.plog, curve.scell_log, flags]);
    octets
}

fn idle(to: &mut Attributes, number: u16, table: Option<&IdleTable>) {
    if let Some(table) = table {
        to.octets(number, table);
    }
}

pub(super) fn red(to: &mut Attributes, params: &RedParams) {
    // Flags have an attribute of their own, which tells the kernel which of them are meant.
    to.octets(1, &curve(params.limit, &params.curve, 0));
    idle(to, 2, params.idle.as_deref());
    to.u32(3, params.curve.max_p).octets(4, &words(&[flags(params).into(), ALL_FLAGS]));
}

pub(super) fn choke(to: &mut Attributes, params: &RedParams) {
    to.octets(1, &curve(params.limit, &params.curve, flags(params)));
    idle(to, 2, params.idle.as_deref());
    to.u32(3, params.curve.max_p);
}

pub(super) fn sfb(to: &mut Attributes, params: &SfbParams) {
    let SfbParams { rehash_ms, warmup_ms, limit, max, target, increment, decrement, penalty_rate, penalty_burst } =
        *params;
    let all = [rehash_ms, warmup_ms, max, target, increment, decrement, limit, penalty_rate, penalty_burst];
    to.octets(1, &words(&all));
}

pub(super) fn gred(to: &mut Attributes, params: &GredParams) {
    match params {
        GredParams::Setup(setup) | GredParams::InForce(setup, _) => gred_setup(to, setup),
        GredParams::Queue(queue) => gred_queue(to, queue),
    }
}

const fn gred_flags(flags: GredFlags) -> u8 {
    flags.ecn as u8 | (flags.harddrop as u8) << 1
}

fn gred_setup(to: &mut Attributes, setup: &GredSetup) {
    let mut octets = words(&[setup.vqs, setup.default]);
    octets.extend([u8::from(setup.grio), gred_flags(setup.flags), 0, 0]);
    to.octets(3, &octets).maybe(5, setup.limit);
}

fn gred_queue(to: &mut Attributes, queue: &GredQueue) {
    let GredQueue { vq, prio, limit, curve, idle: table, flags } = queue;
    // Between number and logarithms stands what the kernel counts.
    let mut octets = words(&[*limit, curve.min, curve.max, *vq, 0, 0, 0, 0, 0, 0]);
    octets.extend([curve.wlog, curve.plog, curve.scell_log, *prio]);
    octets.extend(words(&[0, 0]));
    to.octets(1, &octets);
    idle(to, 2, table.as_deref());
    to.u32(4, curve.max_p);
    if let Some(flags) = flags {
        let (mut entry, mut list) = (Attributes::default(), Attributes::default());
        entry.u32(2, *vq).u32(12, gred_flags(*flags).into());
        list.nest(1, &entry);
        to.nest(6, &list);
    }
}
