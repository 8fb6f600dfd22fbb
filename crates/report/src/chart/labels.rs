//! Labels that do not cover each other.

/// Moves places apart until neighbours are `gap` from each other within `low..=high`, as little as needed.
/// Where there is too little room for all, they are spaced evenly.
pub(super) fn apart(places: &mut [f64], gap: f64, low: f64, high: f64) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let gap = if order.len() > 1 { gap.min((high - low) / (order.len() - 1) as f64) } else { gap };
    // Groups of labels that touch, each around the mean of what its members want.
    let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
    let clamped = |centre: f64, n: usize| {
        let half = gap * (n - 1) as f64 / 2.0;
        centre.max(low + half).min(high - half)
    };
    for index in order {
        groups.push((clamped(places[index], 1), vec![index]));
        while groups.len() > 1 {
            let (last, before) = (&groups[groups.len() - 1], &groups[groups.len() - 2]);
            let needed = gap * (last.1.len() + before.1.len()) as f64 / 2.0;
            if last.0 - before.0 >= needed - 1e-9 {
                break;
            }
            let Some((_, members)) = groups.pop() else { break };
            let Some(group) = groups.last_mut() else { break };
            group.1.extend(members);
            let wanted = group.1.iter().map(|&i| places[i]).sum::<f64>() / group.1.len() as f64;
            group.0 = clamped(wanted, group.1.len());
        }
    }
    for (centre, members) in groups {
        let first = centre - gap * (members.len() - 1) as f64 / 2.0;
        for (n, index) in members.into_iter().enumerate() {
            places[index] = first + gap * n as f64;
        }
    }
}

/// Where the name of a dot stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DotLabel {
    /// Before the dot, not behind it.
    pub(super) before: bool,
    /// Of its baseline, pixels from the top.
    pub(super) down: f64,
}

/// Pixels of a letter in the mean, of a line, and from a dot to its name.
const LETTER: f64 = 7.0;
const LINE: f64 = 14.0;
pub(super) const AIR: f64 = 9.0;
/// Half of a dot.
const DOT: f64 = 5.0;
/// The narrowest and the widest drawing, pixels across: what is apart in both is apart between.
const WIDTHS: [f64; 2] = [280.0, 1000.0];
/// From the middle of a dot to the baseline of its name: the first that is free is taken.
const BESIDE: [f64; 7] = [-5.0, 15.0, 5.0, -19.0, 29.0, -33.0, 43.0];

/// Places names beside dots, so that they cover neither each other nor another dot, in a drawing of this
/// height. A dot is its share of the width, pixels from the top, and its name. Nothing: there is no room for
/// that name.
pub(super) fn beside(dots: &[(f64, f64, &str)], height: f64) -> Vec<Option<DotLabel>> {
    let mut placed: Vec<(usize, DotLabel)> = Vec::new();
    // Left, right, top and bottom of a name at a width.
    let name = |dot: usize, label: DotLabel, width: f64| {
        let (across, _, text) = dots[dot];
        let long = text.chars().count() as f64 * LETTER;
        let left = if label.before { across * width - AIR - long } else { across * width + AIR };
        [left, left + long, label.down - LINE + 3.0, label.down + 3.0]
    };
    let spot = |(across, down, _): (f64, f64, &str), width: f64| {
        [across * width - DOT, across * width + DOT, down - DOT, down + DOT]
    };
    let meet = |one: [f64; 4], other: [f64; 4]| {
        one[0] < other[1] && other[0] < one[1] && one[2] < other[3] && other[2] < one[3]
    };
    // The longest are hardest to place.
    let mut order: Vec<usize> = (0..dots.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(dots[*at].2.chars().count()));
    for at in order {
        let (across, middle, _) = dots[at];
        // Towards the right edge a name stands before its dot.
        let first = across > 0.75;
        let tried = [first, !first].into_iter().flat_map(|before| {
            BESIDE.into_iter().map(move |beside| DotLabel { before, down: middle + beside })
        });
        let free = tried.into_iter().find(|label| {
            WIDTHS.into_iter().all(|width| {
                let own = name(at, *label, width);
                own[0] >= 0.0
                    && own[1] <= width
                    && own[2] >= 0.0
                    && own[3] <= height
                    && placed.iter().all(|(other, label)| !meet(own, name(*other, *label, width)))
                    && dots.iter().all(|other| !meet(own, spot(*other, width)))
            })
        });
        placed.extend(free.map(|label| (at, label)));
    }
    let of = |dot: usize| placed.iter().find(|(at, _)| *at == dot).map(|(_, label)| *label);
    (0..dots.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_near_dots_stand_apart_and_one_without_room_is_left_out() {
        let alone = beside(&[(0.2, 100.0, "alone")], 260.0);
        assert_eq!(alone, [Some(DotLabel { before: false, down: 95.0 })]);
        let near = beside(&[(0.5, 100.0, "one"), (0.51, 102.0, "other"), (0.5, 99.0, "third")], 260.0);
        let near: Vec<DotLabel> = near.into_iter().flatten().collect();
        assert_eq!(near.len(), 3);
        for (at, one) in near.iter().enumerate() {
            for other in &near[at + 1..] {
                assert!(one.before != other.before || (one.down - other.down).abs() >= LINE, "{near:?}");
            }
        }
        let many: Vec<(f64, f64, &str)> = (0..40).map(|_| (0.5, 130.0, "as many as this")).collect();
        let room = beside(&many, 260.0).iter().flatten().count();
        assert!((2..20).contains(&room), "{room}");
        let right = beside(&[(0.98, 20.0, "right")], 260.0);
        assert_eq!(right, [Some(DotLabel { before: true, down: 15.0 })]);
    }

    #[test]
    fn moved_no_more_than_needed() {
        let cases: [(&[f64], &[f64]); 5] = [
            (&[50.0], &[50.0]),
            (&[80.0, 20.0], &[80.0, 20.0]),
            (&[50.0, 50.0], &[45.0, 55.0]),
            (&[99.0, 100.0, 10.0], &[90.0, 100.0, 10.0]),
            (&[0.0; 21], &[]),
        ];
        for (wanted, expected) in cases {
            let mut places = wanted.to_vec();
            apart(&mut places, 10.0, 0.0, 100.0);
            if expected.is_empty() {
                assert!(places.windows(2).all(|p| (p[1] - p[0] - 5.0).abs() < 1e-9), "{places:?}");
            } else {
                assert_eq!(places, expected);
            }
        }
    }
}
