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

#[cfg(test)]
mod tests {
    use super::*;

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
