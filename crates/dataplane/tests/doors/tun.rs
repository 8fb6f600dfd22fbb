//! The backend between two namespaces.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;

use tidegate_dataplane::packet_io::tun::{TunEnd, TunIo};
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::netlink::Links;

use crate::hosts::{ping, transfer};
use crate::wire::{FrameOutcome, Keeper, Wire, address, keep};

const ADDRESSES: [&str; 2] = ["10.6.0.1", "10.6.0.2"];
const ADDRESSES_V6: [&str; 2] = ["fd06::1", "fd06::2"];

/// The namespace of a place, as a file.
fn namespace(place: &NamespaceThread) -> PathBuf {
    let thread =
        place.go(|| std::fs::read_link("/proc/thread-self")).expect("place").expect("a thread is a file");
    PathBuf::from("/proc").join(thread).join("ns/net")
}

/// Opens the backend between both machines of a wire, from the near one.
fn open(
    wire: &Wire,
    decide: impl FnMut(&tidegate_dataplane::packet_io::Came<'_>) -> FrameOutcome + Send + 'static,
) -> Keeper {
    let there = namespace(&wire.remote);
    let open = move || {
        let end = |namespace, name: &str| TunEnd { namespace, name: name.into(), mtu: 1500 };
        TunIo::open(&[end(Some(there), "tide0"), end(None, "tide1")])
    };
    let keeper = keep(&wire.near, open, decide);
    for (me, place) in [&wire.remote, &wire.near].into_iter().enumerate() {
        let set_up = move || -> io::Result<()> {
            let (mut links, name) = (Links::open()?, format!("tide{me}"));
            [ADDRESSES, ADDRESSES_V6].into_iter().try_for_each(|addresses| {
                links.address(&name, address(addresses[me]))?;
                links.add_route(&name, address(addresses[1 - me]))
            })
        };
        place.go(set_up).expect("place").expect("addresses and routes");
    }
    keeper
}

#[test]
fn packets_pass_between_namespaces() {
    let Some(wire) = Wire::lay() else { return };
    let (tell, receiver) = mpsc::channel();
    let keeper = open(&wire, move |came| {
        let _ = tell.send((came.place, came.frame[0] >> 4, came.segments));
        FrameOutcome::Pass
    });
    for addresses in [ADDRESSES, ADDRESSES_V6] {
        // The first may be late on a busy computer.
        assert!(ping(&wire.remote, address(addresses[1]), 3, 56).is_some(), "{addresses:?}");
        transfer(&wire.near, &wire.remote, address(addresses[0]), 3_000_000);
        transfer(&wire.remote, &wire.near, address(addresses[1]), 3_000_000);
    }
    let counts = keeper.end().expect("the door stands");
    let seen: Vec<_> = receiver.try_iter().collect();
    for (place, version) in [(0, 4), (0, 6), (1, 4), (1, 6)] {
        let whole = seen.iter().any(|seen| (seen.0, seen.1) == (place, version) && seen.2 > 1);
        assert!(whole, "super-packets of IPv{version} from {place}");
    }
    assert_eq!((counts.dropped, counts.full, counts.malformed, counts.held), (0, 0, 0, 0));
    assert_eq!(counts.received, counts.passed);
}

#[test]
fn what_is_lost_does_not_arrive_and_the_devices_go_with_the_door() {
    let Some(wire) = Wire::lay() else { return };
    let mut first = true;
    let keeper = open(&wire, move |came| {
        let is_request = came.frame.get(9) == Some(&1) && came.frame.get(20) == Some(&8);
        if is_request && std::mem::take(&mut first) { FrameOutcome::Lose } else { FrameOutcome::DsField(2) }
    });
    assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), 3, 56), Some(2));
    let counts = keeper.end().expect("the door stands");
    assert_eq!((counts.dropped, counts.unchanged), (1, 0));
    for (name, place) in [("tide0", &wire.remote), ("tide1", &wire.near)] {
        let index = place.go(move || Links::open()?.index(name)).expect("place");
        assert!(index.is_err(), "{name} is gone");
    }
}
