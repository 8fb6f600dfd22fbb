//! What a check came to, for programs: findings less those that comments allow, as JSON, as SARIF, and the
//! files with the fixes made.

mod allow;
mod fix;
mod json;
mod path;
mod result;
mod sarif;

pub use fix::{FixedTexts, fixed_texts};
pub use json::to_json;
pub use path::CommandPath;
pub use result::{Checked, concerns};
pub use sarif::to_sarif;
