//! The capturing door.

use std::sync::mpsc;

use tidegate_live::door::capture::{Capture, Way};
use tidegate_live::door::{Direction, Spot};

use crate::hosts::{ping, transfer};
use crate::wire::{ADDRESSES, ADDRESSES_V6, Fate, WIRE, Wire, address};

fn both() -> Vec<Spot> {
    [Direction::Egress, Direction::Ingress].map(|direction| Spot { dev: WIRE.into(), direction }).to_vec()
}

#[test]
fn everything_passes_both_ways() {
    for way in [Way::Link, Way::Filter] {
        let Some(wire) = Wire::lay() else { return };
        let (tell, told) = mpsc::channel();
        let keeper = wire.keep(
            move || Capture::by(way, &both()),
            move |came| {
                let kind = u16::from_be_bytes([came.frame[12], came.frame[13]]);
                let _ = tell.send((came.place, kind, came.segments, came.len));
                Fate::Pass
            },
        );
        for addresses in [ADDRESSES, ADDRESSES_V6] {
            assert_eq!(ping(&wire.far, address(addresses[1]), 3, 56), Some(1), "{way:?}");
            assert_eq!(ping(&wire.near, address(addresses[0]), 3, 1400), Some(1), "{way:?}");
            transfer(&wire.near, &wire.far, address(addresses[0]), 3_000_000);
            transfer(&wire.far, &wire.near, address(addresses[1]), 3_000_000);
        }
        let counts = keeper.end().expect("the door stands");
        println!("{way:?} {counts:?}");
        let seen: Vec<_> = told.try_iter().collect();
        for place in 0..2 {
            for kind in [0x0806, 0x0800, 0x86dd] {
                assert!(seen.iter().any(|seen| (seen.0, seen.1) == (place, kind)), "{way:?}: {kind:x} at {place}");
            }
            let largest = seen.iter().filter(|seen| seen.0 == place).map(|seen| seen.2).max();
            assert!(largest > Some(1), "{way:?}: super-packets stay whole at {place}");
        }
        assert_eq!((counts.lost, counts.full, counts.overruns, counts.malformed, counts.held), (0, 0, 0, 0, 0));
        assert_eq!(counts.taken, counts.passed);
    }
}
