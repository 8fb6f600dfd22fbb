//! Classes changed with the words of another kind: what Linux 6.1 made of them, by the commands beside each
//! case.

use tidegate_policy::{
    ClassParams, DrrClassParams, Errno, EtsClassParams, HfscClassParams, HtbClassParams, Kind, LinkLayer,
    QfqClassParams, RateSpec, ServiceCurve, TcError,
};

fn curve(m1: u32, d_us: u32, m2: u32) -> Option<ServiceCurve> {
    Some(ServiceCurve { m1, d_us, m2 })
}

fn drr(quantum: Option<u32>) -> ClassParams {
    ClassParams::Drr(DrrClassParams { quantum })
}

fn qfq(weight: Option<u32>, maxpkt: Option<u32>) -> ClassParams {
    ClassParams::Qfq(QfqClassParams { weight, maxpkt })
}

fn hfsc(rt: Option<ServiceCurve>, ls: Option<ServiceCurve>, ul: Option<ServiceCurve>) -> ClassParams {
    ClassParams::Hfsc(HfscClassParams { rt, ls, ul })
}

/// Rates in bytes per second.
fn htb(rate: u64, ceil: u64, of: RateSpec) -> ClassParams {
    let spec = |rate: u64| RateSpec { rate: tidegate_packet::Rate(rate), ..of };
    ClassParams::Htb(HtbClassParams { rate: spec(rate), ceil: spec(ceil), ..HtbClassParams::default() })
}

/// `tc qdisc add dev link0 root handle 1: KIND`, a class 1:1 of it, and `tc class change … classid 1:1` with
/// these words; then `tc class show`. Asked of Linux 6.1 with Debian's tc on 2026-11-26.
#[test]
fn as_linux_reads_them() {
    let plain = RateSpec::default();
    let atm = RateSpec { overhead: 0, mpu: 100, linklayer: LinkLayer::Atm, ..plain };
    let cells = RateSpec { overhead: 20, ..atm };
    let range = || Err(TcError::bare(Errno::Range));
    let table = [
        // qfq weight 7 maxpkt 900
        (Kind::Drr, qfq(Some(7), Some(900)), Ok(Some(drr(Some(7))))),
        // htb rate 1mbit: quantum 259b, of its table's cells (3) and its link layer (1)
        (Kind::Drr, htb(125_000, 125_000, plain), Ok(Some(drr(Some(259))))),
        // htb rate 1mbit mpu 100 overhead 20 linklayer atm: quantum 1Mb
        (Kind::Drr, htb(125_000, 125_000, cells), Ok(Some(drr(Some(3 + 2 * 256 + 20 * 65_536))))),
        // hfsc ls rate 1mbit: quantum as it was
        (Kind::Drr, hfsc(None, curve(0, 0, 125_000), None), Ok(Some(drr(None)))),
        // drr quantum 9: weight 9, and the longest packet again
        (Kind::Qfq, drr(Some(9)), Ok(Some(qfq(Some(9), None)))),
        // hfsc rt m1 2000 d 1000 m2 8kbit ls m1 8000bit d 2 m2 8kbit: weight 250 maxpkt 1000
        (
            Kind::Qfq,
            hfsc(curve(250, 1000, 1000), curve(1000, 2, 1000), None),
            Ok(Some(qfq(Some(250), Some(1000)))),
        ),
        // htb rate 1mbit: weight 259
        (Kind::Qfq, htb(125_000, 125_000, plain), Ok(Some(qfq(Some(259), None)))),
        // htb rate 1mbit: rt m1 2072bit d 65.5ms m2 1Mbit, ul m1 8Kbit d 2ms m2 24Kbit
        (
            Kind::Hfsc,
            htb(125_000, 125_000, plain),
            Ok(Some(hfsc(curve(259, 65_535, 125_000), None, curve(1000, 2000, 3000)))),
        ),
        // htb rate 8mbit ceil 16mbit linklayer atm mpu 100: rt m1 4120bit d 6.62s m2 8Mbit, ul m1 9872bit d
        // 1.23ms m2 9872bit
        (
            Kind::Hfsc,
            htb(1_000_000, 2_000_000, atm),
            Ok(Some(hfsc(curve(515, 65_535 + 100 * 65_536, 1_000_000), None, curve(1234, 1234, 1234)))),
        ),
        // qfq weight 7, drr quantum 1000: Numerical result out of range
        (Kind::Hfsc, qfq(Some(7), None), range()),
        (Kind::Hfsc, drr(Some(1000)), range()),
        (Kind::Htb, qfq(Some(7), None), range()),
        (Kind::Htb, qfq(None, Some(900)), range()),
    ];
    for (kind, words, expected) in table {
        assert_eq!(words.read_by(kind), expected, "{kind:?}: {words:?}");
    }
    // What has nothing under the numbers that HTB reads is left to it.
    assert_eq!(ClassParams::Ets(EtsClassParams { quantum: Some(3000) }).read_by(Kind::Htb), Ok(None));
    assert_eq!(
        hfsc(None, None, curve(1, 2, 3)).read_by(Kind::Hfsc),
        Ok(Some(hfsc(None, None, curve(1, 2, 3))))
    );
    assert_eq!(drr(Some(1)).read_by(Kind::Prio), Ok(None));
    assert_eq!(drr(Some(1)).read_by(Kind::Ets).map_err(|error| error.errno), Err(Errno::Inval));
}

#[test]
fn words_name_their_kind() {
    let table = [
        (ClassParams::None, None),
        (htb(1, 1, RateSpec::default()), Some(Kind::Htb)),
        (drr(None), Some(Kind::Drr)),
        (hfsc(None, None, None), Some(Kind::Hfsc)),
        (qfq(None, None), Some(Kind::Qfq)),
        (ClassParams::Ets(EtsClassParams::default()), Some(Kind::Ets)),
    ];
    for (words, kind) in table {
        assert_eq!(words.kind(), kind, "{words:?}");
    }
}
