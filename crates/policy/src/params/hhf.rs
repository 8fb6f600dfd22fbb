//! hhf.

/// hhf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HhfParams {
    /// Packets that may wait.
    pub limit: Option<u32>,
    /// Bytes that the heavy hitters send in their turn.
    pub quantum: Option<u32>,
    /// Heavy hitters that are known at once.
    pub hh_limit: Option<u32>,
    /// For how long bytes are added up, µs.
    pub reset_timeout_us: Option<u32>,
    /// Bytes in that time that make a flow a heavy hitter.
    pub admit_bytes: Option<u32>,
    /// Silence after which it is none any more, µs.
    pub evict_timeout_us: Option<u32>,
    /// How many quanta the others send in their turn.
    pub non_hh_weight: Option<u32>,
}
