//! The pool: tickets, copies, where packets wait, what a packet carries from hook to hook.

use tidegate_packet::header::ethertype::{IPV4, IPV6};
use tidegate_packet::{
    Addrs, Dissector, Fifo, FwMark, Handle, HashKey, Head, Meta, Pkt, Pool, QueueLocation, Time, truesize,
};

/// UDP from 10.0.0.HOST port 1 to 10.9.0.1 port 2.
fn head(host: u8) -> Head {
    let mut bytes = [0; 32];
    (bytes[0], bytes[3], bytes[8], bytes[9]) = (0x45, 32, 64, 17);
    bytes[12..20].copy_from_slice(&[10, 0, 0, host, 10, 9, 0, 1]);
    (bytes[21], bytes[23], bytes[25]) = (1, 2, 12);
    Head::from_network(IPV4, &bytes)
}

fn put(pool: &mut Pool, host: u8) -> Pkt {
    let head = head(host);
    let mut meta = Meta::of(&head, 60);
    meta.ident = host.into();
    pool.insert(meta, head).expect("there is room")
}

fn source(pool: &Pool, pkt: &Pkt) -> u8 {
    pool.head(pkt).network()[15]
}

/// As the oracle's kernel charges: up to 176 bytes 768, up to 688 1280, above 2304.
#[test]
fn memory_by_the_allocators_steps() {
    let sizes = [0, 60, 176, 177, 688, 689, 1514].map(truesize);
    assert_eq!(sizes, [768, 768, 768, 1280, 1280, 2304, 2304]);
    let mut meta = Meta::of(&head(1), 177);
    assert_eq!((meta.len, meta.frame_len, meta.truesize, meta.ethertype), (177, 177, 1280, IPV4));
    meta.priority = 0x0001_0002;
    assert_eq!(meta.priority_class(), Handle::new(1, 2));
}

#[test]
fn slots_are_counted_and_used_again() {
    let mut pool = Pool::new(2);
    assert_eq!((pool.live(), pool.dissector()), (0, Dissector::Modern));
    let (one, two) = (put(&mut pool, 1), put(&mut pool, 2));
    assert_eq!((pool.live(), pool.insert(Meta::default(), head(3)).is_none()), (2, true));
    let slot = one.slot();
    pool.release(one);
    assert_eq!((pool.live(), pool.last_known(slot).map(|meta| meta.ident)), (1, Some(1)));
    assert_eq!(pool.last_head(slot).map(|head| head.network()[15]), Some(1));
    assert!(pool.last_known(9).is_none() && pool.last_head(9).is_none());
    let three = put(&mut pool, 3);
    assert_eq!((three.slot(), source(&pool, &three), source(&pool, &two)), (slot, 3, 2));
    for pkt in [two, three] {
        pool.release(pkt);
    }
    assert_eq!((pool.live(), pool.take_released()), (0, None));
}

/// A packet whose handle is dropped without release is a bug: the assertion reports it where assertions are
/// on.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a ticket must be queued, sent or released")]
fn a_ticket_is_not_dropped() {
    let mut pool = Pool::new(1);
    drop(put(&mut pool, 1));
}

#[test]
fn observers_are_notified() {
    let mut pool = Pool::new(4);
    let (one, two) = (put(&mut pool, 1), put(&mut pool, 2));
    pool.watch_slot(two.slot());
    pool.watch_slot(99);
    let copy = pool.copy(&two).expect("room");
    let (one_slot, two_slot, copy_slot) = (one.slot(), two.slot(), copy.slot());
    assert!(one_slot != two_slot && two_slot != copy_slot);
    for pkt in [one, copy, two] {
        pool.release(pkt);
    }
    assert_eq!([pool.take_released(), pool.take_released()], [Some(two_slot), None]);
}

#[test]
fn copies_are_like_what_they_are_of() {
    let mut pool = Pool::new(6);
    let one = put(&mut pool, 1);
    assert!(!pool.has_copied());
    let before = pool.copy(&one).expect("room");
    assert!(!pool.has_copied(), "nobody follows");
    pool.follow_copies();
    pool.meta_mut(&one).mark = FwMark(7);
    pool.translate(&one, |head| head.network_mut()[15] = 77);
    let (copy, duplicate) = (pool.copy(&one).expect("room"), pool.duplicate(&one).expect("room"));
    assert_eq!(pool.copied().collect::<Vec<_>>(), [copy.slot(), duplicate.slot()]);
    assert!(pool.has_copied());
    let copied: Vec<_> = pool.take_copied().collect();
    assert_eq!(copied, [(copy.slot(), one.slot()), (duplicate.slot(), one.slot())]);
    assert!(!pool.has_copied());
    for pkt in [&copy, &duplicate] {
        assert_eq!((source(&pool, pkt), pool.meta(pkt).mark, pool.meta(pkt).ident), (77, FwMark(7), 1));
        assert_eq!(pool.arrived_keys(pkt).addrs, Addrs::V4([10, 0, 0, 1], [10, 9, 0, 1]));
    }
    assert_eq!(pool.live(), 4);
    for pkt in [one, before, copy, duplicate] {
        pool.release(pkt);
    }
}

#[test]
fn queue_locations_are_kept_for_observers() {
    let mut pool = Pool::new(4);
    let one = put(&mut pool, 1);
    let (qdisc, on) = (Handle::new(1, 0), Handle::new(2, 3));
    let handed = |device, at| QueueLocation { qdisc, on, queue: None, device, since: Time(at) };
    pool.set_queue_location(&one, handed(1, 10));
    assert_eq!(
        (pool.tracks_queue_locations(), pool.queue_location(one.slot())),
        (false, QueueLocation::default())
    );
    pool.track_queue_locations();
    assert!(pool.tracks_queue_locations());
    let two = put(&mut pool, 2);
    pool.note_queue(&two, 5);
    pool.set_queue_location(&two, handed(1, 10));
    // A qdisc within the first is on the same device; the time begins again only on another device.
    pool.set_queue_location(&two, handed(1, 20));
    pool.note_queue(&two, 6);
    let location = QueueLocation { queue: Some(6), ..handed(1, 10) };
    assert_eq!(
        (pool.queue_location(two.slot()), pool.queue_location(one.slot()), pool.queue_location(99)),
        (location, QueueLocation::default(), QueueLocation::default())
    );
    let copy = pool.copy(&two).expect("room");
    assert_eq!(pool.queue_location(copy.slot()), location);
    // Following again forgets nothing; another device does.
    pool.track_queue_locations();
    assert_eq!(pool.queue_location(two.slot()), location);
    pool.set_queue_location(&two, handed(2, 30));
    assert_eq!(pool.queue_location(two.slot()), handed(2, 30));
    pool.clear_queue_location(&two);
    assert_eq!(
        (pool.queue_location(two.slot()), pool.queue_location(copy.slot())),
        (QueueLocation::default(), location)
    );
    for pkt in [one, two, copy] {
        pool.release(pkt);
    }
}

#[test]
fn what_a_packet_is_to_connections() {
    let mut pool = Pool::new(4);
    let pkt = put(&mut pool, 1);
    let (lan, wan, session) = ([10, 0, 0, 1], [192, 0, 2, 1], [10, 9, 0, 1]);
    assert_eq!(pool.untranslated_keys(&pkt), None, "nothing is known");
    // The keys before a translation that has not happened yet; equal keys are not reported.
    pool.set_inside(&pkt, Some((Addrs::V4(lan, session), (1, 2))));
    assert_eq!(pool.untranslated_keys(&pkt), None);
    for (addrs, ports) in [
        (Addrs::V4(wan, session), (1, 2)),
        (Addrs::V4(lan, session), (9, 2)),
        (Addrs::V4(wan, session), (9, 2)),
    ] {
        pool.set_inside(&pkt, Some((addrs, ports)));
        let keys = pool.untranslated_keys(&pkt).map(|keys| (keys.addrs, keys.ports, keys.protocol));
        assert_eq!(keys, Some((addrs, ports, 17)));
    }
    pool.set_inside(&pkt, Some((Addrs::V6([1; 16], [2; 16]), (1, 2))));
    assert_eq!(pool.untranslated_keys(&pkt), None, "both are of IPv4");
    // What was translated is as it came.
    let hash = pool.hash(&pkt);
    pool.meta_mut(&pkt).connection = 3;
    pool.translate(&pkt, |head| head.network_mut()[12..16].copy_from_slice(&wan));
    assert_eq!(pool.keys(&pkt).addrs, Addrs::V4(wan, session));
    assert_eq!(pool.arrived_keys(&pkt).addrs, Addrs::V4(lan, session));
    assert_eq!(
        pool.untranslated_keys(&pkt).map(|keys| (keys.addrs, keys.ports)),
        Some((Addrs::V4(lan, session), (1, 2)))
    );
    assert_ne!(pool.hash(&pkt), hash);
    // Twice translated, it still came as it came; another header is another packet's.
    pool.translate(&pkt, |head| head.network_mut()[15] = 99);
    assert_eq!(pool.arrived_keys(&pkt).addrs, Addrs::V4(lan, session));
    pool.set_head(&pkt, head(5), false);
    assert_eq!((pool.meta(&pkt).connection, pool.arrived_keys(&pkt).addrs), (3, Addrs::V4(lan, session)));
    pool.set_head(&pkt, head(5), true);
    assert_eq!(
        (pool.meta(&pkt).connection, pool.arrived_keys(&pkt).addrs),
        (0, Addrs::V4([10, 0, 0, 5], session))
    );
    pool.release(pkt);
}

/// ICMP has no ports: none are reported.
#[test]
fn packets_without_ports_report_none() {
    let mut pool = Pool::new(1);
    let pkt = put(&mut pool, 1);
    pool.translate(&pkt, |head| head.network_mut()[9] = 1);
    let addrs = Addrs::V4([192, 0, 2, 1], [10, 9, 0, 1]);
    pool.set_inside(&pkt, Some((addrs, (9, 9))));
    assert_eq!(pool.untranslated_keys(&pkt).map(|keys| (keys.addrs, keys.ports)), Some((addrs, (0, 0))));
    pool.release(pkt);
}

#[test]
fn rewritten_bytes_keep_noted_keys() {
    let mut pool = Pool::new(2);
    let pkt = put(&mut pool, 1);
    assert!(!pool.meta(&pkt).rewritten());
    pool.meta_mut(&pkt).set_tx_queue(Some(4));
    pool.meta_mut(&pkt).dsfield = 0xb8;
    assert_eq!(pool.head(&pkt).dsfield(), 0, "as it came");
    let seen = pool.rewrite(&pkt, |head| {
        let seen = head.dsfield();
        head.set_dsfield(0x28);
        seen
    });
    assert_eq!((seen, pool.meta(&pkt).dsfield, pool.meta(&pkt).rewritten()), (0xb8, 0x28, true));
    assert_eq!((pool.meta(&pkt).tx_queue(), pool.settle(&pkt).has_right_header()), (Some(4), true));
    // A connection keeps the keys that the packet came with; without one there is nothing to keep.
    pool.rewrite(&pkt, |head| head.network_mut()[15] = 50);
    assert_eq!(pool.arrived_keys(&pkt).addrs, Addrs::V4([10, 0, 0, 50], [10, 9, 0, 1]));
    pool.meta_mut(&pkt).connection = 1;
    pool.rewrite(&pkt, |head| head.network_mut()[15] = 51);
    assert_eq!(pool.arrived_keys(&pkt).addrs, Addrs::V4([10, 0, 0, 50], [10, 9, 0, 1]));
    // The mark made here is written as it leaves.
    assert!(pool.meta_mut(&pkt).set_ce() == (pool.meta(&pkt).dsfield & 3 != 0));
    pool.meta_mut(&pkt).dsfield = 0x2b;
    assert_eq!(pool.settle(&pkt).network()[1], 0x2b);
    pool.release(pkt);
}

#[test]
fn another_machine_knows_nothing_of_the_one_before() {
    let mut pool = Pool::new(2);
    let pkt = put(&mut pool, 1);
    let meta = pool.meta_mut(&pkt);
    (meta.mark, meta.priority, meta.connection, meta.watched, meta.dsfield, meta.len) =
        (FwMark(7), 6, 3, true, 3, 99);
    meta.set_tx_queue(Some(4));
    pool.translate(&pkt, |head| head.network_mut()[15] = 77);
    pool.reset_for_next_machine(&pkt);
    let meta = pool.meta(&pkt);
    assert_eq!((meta.mark, meta.priority, meta.connection, meta.watched), (FwMark(0), 0, 0, true));
    assert_eq!((meta.dsfield, meta.len, meta.ident, meta.tx_queue(), meta.ethertype), (3, 60, 1, None, IPV4));
    assert_eq!(pool.arrived_keys(&pkt).addrs, Addrs::V4([10, 0, 0, 77], [10, 9, 0, 1]));
    // Rewritten bytes are parsed again: the EtherType in the frame counts.
    pool.rewrite(&pkt, |head| head.frame_mut()[12..14].copy_from_slice(&IPV6.to_be_bytes()));
    assert_eq!(pool.meta(&pkt).ethertype, IPV4);
    pool.reset_for_next_machine(&pkt);
    assert_eq!((pool.meta(&pkt).ethertype, pool.meta(&pkt).rewritten()), (IPV6, true));
    pool.release(pkt);
    assert!(pool.take_released().is_some());
}

#[test]
fn one_bit_is_made_wrong() {
    let mut pool = Pool::new(1);
    let pkt = put(&mut pool, 1);
    pool.meta_mut(&pkt).dsfield = 2;
    // The 16th byte of the frame is the DS field's, the last of IPv4's source the 30th.
    pool.corrupt(&pkt, 15, 7);
    pool.corrupt(&pkt, 29, 9);
    assert_eq!((pool.meta(&pkt).dsfield, source(&pool, &pkt)), (0x82, 3));
    assert_eq!(pool.keys(&pkt).addrs, Addrs::V4([10, 0, 0, 3], [10, 9, 0, 1]));
    pool.corrupt(&pkt, 29, 1);
    assert_eq!(source(&pool, &pkt), 1, "turned back");
    pool.corrupt(&pkt, 500, 1);
    pool.release(pkt);
}

#[test]
fn hashes_are_remembered_until_they_are_set() {
    let mut pool = Pool::new(2);
    let (one, two) = (put(&mut pool, 1), put(&mut pool, 2));
    let hash = pool.hash(&one);
    let key = HashKey(5, 6);
    let wanted = (pool.keys(&one).hash(HashKey::default()), pool.keys(&one).hash(key));
    assert_eq!((hash, pool.keyed_hash(&one, key)), wanted);
    assert_ne!(pool.hash(&two), hash);
    pool.set_hash(&one, 42);
    assert_eq!(pool.hash(&one), 42);
    pool.set_hash(&one, 0);
    assert_eq!(pool.hash(&one), hash);
    pool.set_dissector(Dissector::Legacy);
    assert_eq!(pool.dissector(), Dissector::Legacy);
    // A router's hop: 64 are 63, and the last is reported.
    assert!(pool.hop(&one));
    assert_eq!(pool.head(&one).network()[8], 63);
    for left in (0..63).rev() {
        assert_eq!(pool.hop(&one), left > 0, "{left}");
    }
    for pkt in [one, two] {
        pool.release(pkt);
    }
}

#[test]
fn a_queue_has_two_ends() {
    let mut pool = Pool::new(8);
    let mut fifo = Fifo::new();
    assert!(fifo.is_empty() && fifo.front(&pool).is_none() && fifo.front_mut(&mut pool).is_none());
    for host in [2, 3] {
        let pkt = put(&mut pool, host);
        pool.meta_mut(&pkt).len = u32::from(host) * 100;
        fifo.push_back(&mut pool, pkt);
    }
    let first = put(&mut pool, 1);
    pool.meta_mut(&first).len = 100;
    fifo.push_front(&mut pool, first);
    assert_eq!((fifo.len(), fifo.bytes(), fifo.is_empty()), (3, 600, false));
    assert_eq!(fifo.front(&pool).map(|meta| meta.ident), Some(1));
    fifo.front_mut(&mut pool).expect("there is one").mark = FwMark(9);
    let mut other = Fifo::new();
    let last = put(&mut pool, 4);
    other.push_front(&mut pool, last);
    fifo.append_to(&mut pool, &mut other);
    assert_eq!((fifo.len(), fifo.bytes(), other.len(), other.bytes()), (0, 0, 4, 660));
    let slots: Vec<usize> = other.slots(&pool).collect();
    assert_eq!((slots.len(), Some(slots[0]), Some(slots[3])), (4, other.front_slot(), other.back_slot()));
    let taken = other.take_at(&mut pool, slots[2]).expect("it waits");
    assert_eq!((pool.meta(&taken).ident, other.len(), other.bytes()), (2, 3, 460));
    pool.release(taken);
    let end = other.pop_back(&mut pool).expect("three wait");
    assert_eq!((pool.meta(&end).ident, other.bytes()), (3, 160));
    pool.release(end);
    let mut order = Vec::new();
    while let Some(pkt) = other.pop_front(&mut pool) {
        order.push((pool.meta(&pkt).ident, pool.meta(&pkt).mark.0));
        pool.release(pkt);
    }
    assert_eq!((order, other.bytes(), pool.live()), (vec![(4, 0), (1, 9)], 0, 0));
}
