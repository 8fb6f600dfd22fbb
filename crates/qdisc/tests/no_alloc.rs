//! No packet costs an allocation: once every flow was seen and every table has its size, the engine only
//! moves what it has.

#[path = "../benches/engine/rig.rs"]
mod rig;

use rig::{CASES, PacketInput, Rig};

#[test]
fn no_packet_costs_an_allocation() {
    // What counts does count.
    assert_eq!(allocation_counter::measure(|| drop(std::hint::black_box(vec![1u8]))).count_total, 1);
    let mut found = Vec::new();
    for case in CASES.iter().filter(|case| case.leaves <= 100) {
        for arrival in [PacketInput::Given, PacketInput::Single, PacketInput::Parsed] {
            let mut rig = Rig::new(case, arrival);
            rig.steady(50_000);
            let seen = allocation_counter::measure(|| rig.steady(50_000));
            found.push((case.name, arrival, seen.count_total, rig.whole()));
        }
    }
    let wanted: Vec<_> = found.iter().map(|(name, arrival, ..)| (*name, *arrival, 0, true)).collect();
    assert_eq!(found, wanted);
}
