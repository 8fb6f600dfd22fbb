//! From bytes to what they cost on the wire.

use tidegate_policy::SizeTable;

/// The length that a size table gives a packet: at least 1.
pub fn adjusted_size(stab: &SizeTable, len: u32) -> u32 {
    let len = i64::from(len) + i64::from(stab.overhead);
    if stab.data.is_empty() {
        return len.max(1) as u32;
    }
    let slot = ((len + i64::from(stab.cell_align)).max(0) >> stab.cell_log) as usize;
    let entries = stab.data.len();
    let cost = match stab.data.get(slot) {
        Some(cost) => u64::from(*cost),
        None => {
            u64::from(stab.data[entries - 1]) * (slot / entries) as u64 + u64::from(stab.data[slot % entries])
        }
    };
    ((cost << stab.size_log) as u32).max(1)
}
