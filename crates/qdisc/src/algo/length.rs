//! From bytes to what they cost on the wire.

use tidegate_policy::SizeTable;

/// The longest that a size table makes a packet.
const LONGEST: i32 = 1 << 20;

/// The length that a size table gives a packet: from 1 byte to 1 MiB, in the kernel's arithmetic of 32 bits
/// with a sign.
pub fn adjusted_size(stab: &SizeTable, len: u32) -> u32 {
    let len = (len as i32).wrapping_add(stab.overhead);
    if stab.data.is_empty() {
        return len.clamp(1, LONGEST) as u32;
    }
    let slot = (len.wrapping_add(i32::from(stab.cell_align)).max(0) >> stab.cell_log) as usize;
    let entries = stab.data.len();
    let cost = match stab.data.get(slot) {
        Some(cost) => u64::from(*cost),
        None => {
            u64::from(stab.data[entries - 1]) * (slot / entries) as u64 + u64::from(stab.data[slot % entries])
        }
    };
    ((cost << stab.size_log) as i32).clamp(1, LONGEST) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux 6.1 and 7.2 count for a packet of 1,000 bytes.
    #[test]
    fn lengths_have_bounds() {
        for (overhead, counted) in [
            (20, 1020),
            (-3_000, 1),
            (1_047_575, 1_048_575),
            (1_047_577, 1_048_576),
            (2_147_482_647, 1_048_576),
            (i32::MAX, 1),
        ] {
            let stab = SizeTable { overhead, ..SizeTable::default() };
            assert_eq!(adjusted_size(&stab, 1000), counted, "overhead {overhead}");
        }
    }
}
