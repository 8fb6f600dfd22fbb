//! Words that only newer releases know, added to what the other generators wrote.
//!
//! They come from a stream of their own, so that cases of older releases stay as they were.

use crate::oracle_fuzz::rng::Rng;

/// Adds bands to a command that makes or changes an fq.
pub(super) fn words(rng: &mut Rng, line: &mut String) {
    let makes = line.contains("tc qdisc ") && !line.contains(" show ") && !line.contains([';', '>']);
    if !makes || !line.split(' ').any(|word| word == "fq") {
        return;
    }
    if rng.chance(60) {
        let weights: Vec<String> =
            (0..3).map(|_| rng.pick(&["16384", "16384", "20000", "30000", "70000"]).to_string()).collect();
        *line += &format!(" weights {}", weights.join(" "));
    }
    if rng.chance(50) {
        let map: Vec<String> = (0..16).map(|_| rng.below(3).to_string()).collect();
        *line += &format!(" bands 3 priomap {}", map.join(" "));
    }
}
