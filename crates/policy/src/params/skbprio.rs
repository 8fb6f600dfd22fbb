//! skbprio.

/// skbprio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkbprioParams {
    /// Packets that may wait. Default: 64.
    pub limit: Option<u32>,
}
