//! A search for values of parameters: what is wanted, and which values are tried next.

mod goal;
mod search;

pub use goal::{BadGoal, TuneBound, TuneGoal, TuneLimit, TuneRank};
pub use search::{FEWEST_TRIED, search};
