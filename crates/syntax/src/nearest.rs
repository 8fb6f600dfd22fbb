//! Which known word a misspelt one was meant to be.

/// Longer words are not compared.
const LONGEST: usize = 64;

/// The known word that is nearest to one, whatever its case; `None` where none is near: at most one letter
/// away, or two of a word of at least five.
///
/// ```
/// assert_eq!(tidegate_syntax::nearest("fqcodel", ["fq", "fq_codel"]), Some("fq_codel"));
/// assert_eq!(tidegate_syntax::nearest("hsot", ["host", "flow"]), Some("host"));
/// assert_eq!(tidegate_syntax::nearest("xyz", ["fq", "fq_codel"]), None);
/// ```
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let word: Vec<char> = word.to_lowercase().chars().collect();
    if word.len() > LONGEST {
        return None;
    }
    // Of those as near, one that goes on where the word ends.
    let begins = |other: &[char]| word.iter().zip(other).all(|(own, its)| own == its);
    let by_distance = known.into_iter().map(|known| {
        let other: Vec<char> = known.to_lowercase().chars().collect();
        (distance(&word, &other), !begins(&other), known)
    });
    let (away, _, near) = by_distance.min()?;
    let length = word.len().min(near.chars().count());
    (away == 0 || away == 1 && length >= 2 || away == 2 && length >= 5).then_some(near)
}

/// Letters that are missing, too many, other ones, or two that changed places.
fn distance(word: &[char], other: &[char]) -> usize {
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for (i, letter) in word.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, its) in other.iter().enumerate() {
            let changed = rows[i][j] + usize::from(letter != its);
            let mut least = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && word[i - 1] == *its {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[word.len()][other.len()]
}
