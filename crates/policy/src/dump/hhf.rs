//! hhf.

/// hhf's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HhfStats {
    /// Packets dropped because the queue was full.
    pub drop_overlimit: u32,
    /// Heavy hitters that could not be noted.
    pub hh_overlimit: u32,
    /// Heavy hitters found.
    pub tot_hh: u32,
    /// Heavy hitters known now.
    pub cur_hh: u32,
}
