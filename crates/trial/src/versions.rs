//! Whether a policy governs IPv6 as it governs IPv4: generators of policies and old scripts often write
//! filters for `protocol ip` only, and what these hold to a rate passes freely over the other version.

use crate::home::{self, GLANCE};
use crate::household::Household;
use crate::loads;
use crate::reach;
use crate::state::Trial;
use tidegate_measure::bits_per_second;
use tidegate_measure::numbers::rate;
use tidegate_packet::Handle;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::FilterEntry;
use tidegate_sim::HomeTraffic;

/// One version carries so many times what the other does, before it is worth a word.
const NOTICED: u64 = 2;

/// A note for each direction in which one transfer over IPv6 carries much more or much less than over IPv4.
/// There is none where no filter makes a difference: chance alone may make one of such short transfers
/// faster.
pub(crate) fn notes(trial: &Trial<'_>) -> Vec<String> {
    if trial.options.ipv6 || !treated_apart(trial) {
        return Vec::new();
    }
    let one = |up: bool, v6: bool| {
        let traffic = one_transfer(&trial.household, up, v6);
        let carried = home::carried(trial.options, trial.policy, vec![traffic]);
        carried.first().copied().unwrap_or(0)
    };
    let found = [(true, "upload"), (false, "download")].into_iter().filter_map(|(up, word)| {
        let (v4, v6) = (one(up, false), one(up, true));
        let how = match () {
            () if v6 >= NOTICED * v4.max(1) => "much more",
            () if v4 >= NOTICED * v6.max(1) => "much less",
            () => return None,
        };
        let bits = |bytes| rate(bits_per_second(bytes, GLANCE.0));
        Some(format!(
            "one {word} over IPv6 carries {how} than one over IPv4, {} instead of {}: the policy does not \
            treat them alike. What is shown is of IPv4; --ipv6 tries IPv6.",
            bits(v6),
            bits(v4)
        ))
    });
    found.collect()
}

/// One transfer of a computer that has the address which the policy names.
fn one_transfer(household: &Household, up: bool, v6: bool) -> HomeTraffic {
    let mut item = loads::one_transfer(up, v6);
    household.move_in([&mut item]);
    item.traffic
}

/// Does a conversation over IPv6 take other classes than the same one over IPv4, or is there a filter for one
/// of them where packets arrive?
fn treated_apart(trial: &Trial<'_>) -> bool {
    let on_arrival = trial.trees.filters.iter().any(|filter| {
        let here = filter.parent.major() == Handle::INGRESS.major();
        let entry = matches!(filter.entry, FilterEntry::Filter { .. });
        here && entry && [ethertype::IPV4, ethertype::IPV6].contains(&filter.protocol)
    });
    let of_home = |up: bool, v6: bool| one_transfer(&trial.household, up, v6);
    let takes = |traffic: HomeTraffic| reach::ask(trial.policy, &traffic, trial.options.seed);
    let classes = trial.trees.classes.iter().any(tidegate_scenario::series::counts);
    on_arrival
        || classes && [true, false].iter().any(|up| takes(of_home(*up, false)) != takes(of_home(*up, true)))
}
