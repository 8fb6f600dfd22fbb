//! The first few of many, in a sentence.

/// The most that a sentence lists.
const MAX_SHOWN: usize = 3;

/// `a, b, c, …`; `None`: there are none.
pub(super) fn first_few(all: impl IntoIterator<Item = String>) -> Option<String> {
    let mut all = all.into_iter();
    let shown: Vec<String> = all.by_ref().take(MAX_SHOWN).collect();
    let more = if all.next().is_some() { ", …" } else { "" };
    (!shown.is_empty()).then(|| shown.join(", ") + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_few_end_in_dots() {
        let of = |number: usize| first_few((0..number).map(|one| one.to_string()));
        let expected = [None, Some("0"), Some("0, 1, 2"), Some("0, 1, 2, …")];
        assert_eq!([0, 1, 3, 4].map(of), expected.map(|text| text.map(str::to_owned)));
    }
}
