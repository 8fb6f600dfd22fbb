//! What kinds count.

pub use super::cake::{CakeFlowStats, CakeStats, CakeTinStats};
pub use super::codel::CodelStats;
pub use super::dualpi2::DualPi2Stats;
pub use super::fq::FqStats;
pub use super::fq_codel::FqCodelStats;
pub use super::fq_pie::FqPieStats;
pub use super::hhf::HhfStats;
pub use super::netem::NetemStats;
pub use super::params::Xstats;
pub use super::pie::PieStats;
pub use super::red::RedStats;
pub use super::sfb::SfbStats;
pub use super::sfq::SfqStats;
