//! Requests and replies, with losses, delays, duplicates and reordering.

use super::message::RequestId;
use tidegate_measure::pinged::{Fault, PingRequest, PingTarget};

/// The faults of one target that are distinguished; more are counted with the last.
const MOST_FAULTS: usize = 32;

/// Notes another request and gives its number.
pub(super) fn ask(target: &mut PingTarget, sent_ns: u64) -> u64 {
    target.requests.push(PingRequest { sent_ns, ..PingRequest::default() });
    target.requests.len() as u64 - 1
}

/// Notes a reply at a time: the round-trip time. `None`: a duplicate, or a reply to no request.
pub(super) fn answered(target: &mut PingTarget, which: RequestId, at_ns: u64) -> Option<u64> {
    let request = find(target, which)?;
    if request.took_ns.is_some() {
        target.duplicates += 1;
        return None;
    }
    request.took_ns = Some(at_ns.saturating_sub(request.sent_ns));
    request.took_ns
}

/// Notes when the driver got a request. False: that cannot be, so what the kernel numbers is not what we
/// think it is.
pub(super) fn left(target: &mut PingTarget, number: u64, at_ns: u64) -> bool {
    let Some(request) = find(target, RequestId::Number(number)) else { return false };
    let here = at_ns.checked_sub(request.sent_ns);
    let can_be = here.is_some_and(|here| request.took_ns.is_none_or(|took| here <= took));
    if can_be {
        request.here_ns = here;
    }
    can_be
}

/// Notes an error that came instead of a reply.
pub(super) fn fault(target: &mut PingTarget, by: &str, what: &str) {
    let faults = &mut target.faults;
    if let Some(known) = faults.iter_mut().find(|fault| fault.by == by && fault.what == what) {
        known.count += 1;
    } else if faults.len() < MOST_FAULTS {
        faults.push(Fault { by: by.to_owned(), what: what.to_owned(), count: 1 });
    } else if let Some(last) = faults.last_mut() {
        last.count += 1;
    }
}

/// Is there a request without an answer that was sent at `since` or later?
pub(super) fn waits(target: &PingTarget, since: u64) -> bool {
    let recent = target.requests.iter().rev().take_while(|request| request.sent_ns >= since);
    recent.into_iter().any(|request| request.took_ns.is_none())
}

/// Leaves out the requests that may still be answered, since the wait has ended: those sent at `since` or
/// later without a reply.
pub(super) fn forget_since(target: &mut PingTarget, since: u64) {
    target.requests.retain(|request| request.took_ns.is_some() || request.sent_ns < since);
}

/// The request that is meant: of those whose number ends alike, the last.
fn find(target: &mut PingTarget, which: RequestId) -> Option<&mut PingRequest> {
    let number = match which {
        RequestId::Number(number) => number,
        RequestId::Sequence(sequence) => {
            let last = (target.requests.len() as u64).checked_sub(1)?;
            last.checked_sub(u64::from((last as u16).wrapping_sub(sequence)))?
        }
    };
    target.requests.get_mut(usize::try_from(number).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_of(count: u64) -> PingTarget {
        let mut target = PingTarget::default();
        (0..count).for_each(|n| assert_eq!(ask(&mut target, n * 10), n));
        target
    }

    fn took(target: &PingTarget) -> Vec<Option<u64>> {
        target.requests.iter().map(|request| request.took_ns).collect()
    }

    #[test]
    fn answers_come_late_twice_and_in_any_order() {
        let mut target = target_of(4);
        let found = [(2, 25), (0, 27), (2, 30), (9, 31)]
            .map(|(n, at)| answered(&mut target, RequestId::Number(n), at));
        assert_eq!(found, [Some(5), Some(27), None, None]);
        assert_eq!((took(&target), target.duplicates), (vec![Some(27), None, Some(5), None], 1));
    }

    #[test]
    fn sixteen_bits_mean_the_last_request_that_ends_so() {
        let mut target = target_of(65_538);
        let found = [1, 2].map(|sequence| answered(&mut target, RequestId::Sequence(sequence), 655_380));
        assert_eq!((found, target.requests[2].took_ns), ([Some(10), Some(655_360)], Some(655_360)));
        assert_eq!(
            answered(&mut target_of(1), RequestId::Sequence(5), 9),
            None,
            "nothing of that number was asked"
        );
        assert_eq!(answered(&mut target_of(0), RequestId::Sequence(0), 9), None);
    }

    #[test]
    fn a_request_leaves_after_it_was_sent_and_before_its_answer() {
        let mut target = target_of(2);
        answered(&mut target, RequestId::Number(1), 15);
        let found =
            [(0, 3), (1, 9), (1, 16), (7, 99), (1, 12)].map(|(number, at)| left(&mut target, number, at));
        assert_eq!(found, [true, false, false, false, true]);
        assert_eq!(
            target.requests.iter().map(|request| request.here_ns).collect::<Vec<_>>(),
            [Some(3), Some(2)]
        );
    }

    #[test]
    fn what_may_still_come_is_no_loss() {
        let mut target = target_of(4);
        answered(&mut target, RequestId::Number(3), 40);
        assert!(waits(&target, 10) && waits(&target, 20) && !waits(&target, 30));
        forget_since(&mut target, 20);
        assert_eq!(took(&target), [None, None, Some(10)]);
    }

    #[test]
    fn faults_are_counted_and_bounded() {
        let mut target = target_of(1);
        (0..50).for_each(|n| fault(&mut target, &format!("10.0.0.{n}"), "host unreachable"));
        fault(&mut target, "10.0.0.0", "host unreachable");
        let counts: u64 = target.faults.iter().map(|fault| fault.count).sum();
        assert_eq!((target.faults.len(), target.faults[0].count, counts), (MOST_FAULTS, 2, 51));
    }
}
