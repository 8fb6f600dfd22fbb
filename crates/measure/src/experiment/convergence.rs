//! How long a transfer that joins others takes until it has its share.
//!
//! The definition is tidegate's own, after the idea of Dong and others (PCC, NSDI 2015), who compare with
//! an equal share of the link's rate: the shortest time from the transfer's beginning after which, in each
//! of five seconds that follow each other, its payload is within a quarter of the equal share: what all
//! transfers of its group get in that second, divided by how many there are. A transfer that begins with
//! all others of its group joins none.

use super::parts::TransferRecord;
use crate::share;
use alloc::vec;
use alloc::vec::Vec;

/// How far from the equal share a rate may be, as a share of that.
const BAND: f64 = 0.25;
/// How long it has to stay there: so many spans of this length, ns.
const SPANS: u64 = 5;
const SPAN: u64 = 1_000_000_000;

/// From the beginning of the last of these transfers to join until it has its equal share, ns. `whole`: the
/// group; `until`: the end of what is looked at, ns.
///
/// # Errors
/// Why there is none, in words that follow the figure's name.
pub(super) fn convergence(
    step: u64,
    (whole, last): (&[&TransferRecord], &TransferRecord),
    until: u64,
) -> Result<u64, &'static str> {
    let joins = whole.iter().any(|other| {
        other.id != last.id && other.began < last.began && other.finished.is_none_or(|end| end > last.began)
    });
    if !joins {
        return Err("it joins no other transfer of its group");
    }
    let step = step.max(1);
    let mut total = vec![0_u64; whole.iter().map(|one| one.series.len()).max().unwrap_or(0)];
    for one in whole {
        total.iter_mut().zip(&one.series).for_each(|(sum, bytes)| *sum += bytes);
    }
    let has_its_share = |from: u64| {
        let to = from + SPAN;
        let active = |one: &&&TransferRecord| one.began <= from && one.finished.is_none_or(|end| end >= to);
        let count = whole.iter().filter(active).count();
        let equal = amount(&total, step, (from, to)) / count.max(1) as f64;
        let own = amount(&last.series, step, (from, to));
        count > 1 && equal > 0.0 && libm::fabs(own - equal) <= BAND * equal
    };
    let mut from = last.began;
    while from + SPANS * SPAN <= until {
        if (0..SPANS).all(|span| has_its_share(from + span * SPAN)) {
            return Ok(from - last.began);
        }
        from += step;
    }
    Err("its rate does not stay near the equal share")
}

/// The one of these that begins last, and all of its group.
pub(super) fn last_to_join<'r>(transfers: &[&'r TransferRecord]) -> Option<&'r TransferRecord> {
    let mut all: Vec<&TransferRecord> = transfers.to_vec();
    all.sort_by_key(|one| one.began);
    all.pop()
}

/// What a series amounts to from one moment to another; a step that is only partly between them counts in
/// part.
fn amount(series: &[u64], step: u64, (from, to): (u64, u64)) -> f64 {
    let steps = (from / step..to.div_ceil(step)).map_while(|at| Some((at, *series.get(at as usize)?)));
    steps
        .map(|(at, bytes)| {
            let (began, ended) = (at * step, (at + 1) * step);
            bytes as f64 * share(ended.min(to) - began.max(from), step)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 500_000_000;

    fn transfer(id: &str, began: u64, series: Vec<u64>) -> TransferRecord {
        TransferRecord { id: id.into(), began: began * SPAN, series, ..TransferRecord::default() }
    }

    /// The second joins after 4 s, and has a tenth of the rate for 3 s more.
    fn pair() -> (TransferRecord, TransferRecord) {
        let first = [vec![100; 8], vec![90; 6], vec![55; 26]].concat();
        let second = [vec![0; 8], vec![10; 6], vec![45; 26]].concat();
        (transfer("up-1", 0, first), transfer("up-2", 4, second))
    }

    fn of(first: &TransferRecord, second: &TransferRecord, until: u64) -> Result<u64, &'static str> {
        convergence(STEP, (&[first, second], second), until * SPAN)
    }

    #[test]
    fn it_is_the_time_to_the_first_of_five_fair_seconds() {
        let (first, second) = pair();
        assert_eq!(of(&first, &second, 20), Ok(3 * SPAN));
        assert_eq!(of(&first, &second, 12), Ok(3 * SPAN), "the five seconds end at 12 s");
        assert_eq!(of(&first, &second, 11), Err("its rate does not stay near the equal share"));
        // One second that is not fair begins it again.
        let mut unsteady = second.clone();
        unsteady.series[20..22].fill(5);
        assert_eq!(of(&first, &unsteady, 20), Ok(7 * SPAN));
        // Within a quarter: 40 of 95 are 16 % below the half, 30 of 85 are 29 % below.
        let with = |rate: u64| {
            let mut other = second.clone();
            other.series[14..].fill(rate);
            of(&first, &other, 20)
        };
        assert_eq!((with(40), with(30).is_err()), (Ok(3 * SPAN), true));
    }

    #[test]
    fn a_transfer_alone_joins_none() {
        let (first, second) = pair();
        let alone = Err("it joins no other transfer of its group");
        assert_eq!(convergence(STEP, (&[&first, &second], &first), 20 * SPAN), alone);
        let ended = TransferRecord { finished: Some(3 * SPAN), ..first.clone() };
        assert_eq!(of(&ended, &second, 20), alone);
        // One that ends before it was fair leaves no share to have.
        let ends = TransferRecord { finished: Some(9 * SPAN), ..first.clone() };
        assert!(of(&ends, &second, 20).is_err_and(|why| why.contains("equal share")));
        // Nor does one of those that begin together; one that is fair from its beginning takes no time.
        let together = TransferRecord { began: 0, series: vec![50; 40], ..second.clone() };
        let first = TransferRecord { series: vec![50; 40], ..first };
        assert_eq!(of(&first, &together, 20), alone);
        let at_once = TransferRecord { series: [vec![0; 8], vec![50; 32]].concat(), ..second };
        assert_eq!(of(&first, &at_once, 20), Ok(0));
        assert!(of(&first, &TransferRecord { series: Vec::new(), ..together }, 20).is_err());
    }
}
