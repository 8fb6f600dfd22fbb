//! What makes invented figures uneven.

/// Even noise of 0 to 999, the same in every run.
pub(crate) fn noise(seed: u64, n: u64) -> u64 {
    let mut x = (seed << 32) ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % 1000
}
