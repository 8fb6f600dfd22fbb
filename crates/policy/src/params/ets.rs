//! ets.

/// Bands there can be.
pub const MAX_BANDS: usize = 16;

/// ets: strict bands, and below them bands that share by quanta.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtsParams {
    /// Bands in all, 1 to 16.
    pub bands: u8,
    /// How many of these are strict; they come first.
    pub strict: u8,
    /// Bytes in a turn of each band that shares, as far as they were given; in a dump, of all.
    pub quanta: Vec<u32>,
    /// Band of each priority, as far as they were given: the others take the last band. In a dump, of all 16.
    pub priomap: Vec<u8>,
}

/// A class of ets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtsClassParams {
    /// Bytes sent in its turn. `None` in a dump: the band is strict.
    pub quantum: Option<u32>,
}
