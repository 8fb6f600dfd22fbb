//! The rules of the checker: one file per family.

mod rates;

use crate::finding::Finding;
use crate::reading::Reading;

/// Everything found wrong, in the order of the files; within a line the worst first.
pub fn check(reading: &mut Reading) -> Vec<Finding> {
    let families: [fn(&mut Reading) -> Vec<Finding>; 1] = [rates::check];
    let mut found: Vec<Finding> = families.iter().flat_map(|family| family(reading)).collect();
    let line = |finding: &Finding| finding.place.as_ref().map(|place| (place.file, place.line));
    found.sort_by(|a, b| line(a).cmp(&line(b)).then(b.level.cmp(&a.level)));
    found
}
