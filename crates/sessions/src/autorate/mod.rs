//! A controller of rates, live: the same [`RateController`](tidegate_control::RateController)s that the gym
//! tries, by the real clock.
//!
//! ```text
//! probe targets ─▶ replies, losses ─┐                        ┌─▶ netlink: the rate of CAKE, HTB or TBF
//! netlink: counters, each 50 ms ────┴─▶ RateController ─▶ decisions
//!                                                            ├─▶ a file each second, for those who watch
//!                                                            └─▶ events for the caller
//! file + guard process: the rates that were found, put back however this ends
//! ```
//!
//! What the controllers of the gym hear of passing TCP connections is not heard here: see docs/autorate.md.

mod kept;
mod plan;
mod published;
mod remembered;
mod run;
mod shaper;

pub use kept::{LeftBehind, PutBack, guard, restore};
pub use plan::{AutorateEvent, AutorateOptions, AutoratePlan, obstacles, plan};
pub use published::controls;
pub use run::run;
pub use shaper::{FoundShaper, LEAST_RATE};
