//! The failures of the field, each as a case on a line that is otherwise steady: 2 Mbit/s up and 8 down, 20
//! ms of delay in all and as much to the servers, a quarter of a second of buffer each way.

use crate::case::{DELAY, GymCase, GymFaults, GymLoad};
use tidegate_control::PerDirection;
use tidegate_packet::Nanos;
use tidegate_sim::Trace;

const UP: u64 = 2_000_000;
const DOWN: u64 = 8_000_000;

/// A failure of the field.
#[derive(Clone, Copy, Debug)]
pub struct NamedFailure {
    /// Its name.
    pub name: &'static str,
    /// What happens, in a sentence.
    pub about: &'static str,
    load: GymLoad,
    line: fn() -> PerDirection<Trace>,
    faults: fn() -> GymFaults,
}

/// All of them.
pub const NAMED_FAILURES: [NamedFailure; 18] = [
    NamedFailure {
        name: "blind-probes",
        about: "probes take a way past the line's queues, as on some satellite lines: they never see delay",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { blind_probes: true, ..GymFaults::default() },
    },
    NamedFailure {
        name: "one-target-dead",
        about: "one of eight probe targets stops replying",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { dead_reflectors: 1, dead_from: Nanos::secs(8), ..GymFaults::default() },
    },
    NamedFailure {
        name: "all-targets-dead",
        about: "all probe targets stop replying",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { dead_reflectors: 8, dead_from: Nanos::secs(8), ..GymFaults::default() },
    },
    NamedFailure {
        name: "icmp-limit",
        about: "each probe target replies once a second at most",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { icmp_per_second: Some(1), ..GymFaults::default() },
    },
    NamedFailure {
        name: "reordering",
        about: "2 % of the packets from the provider are 20 ms late and overtaken",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { reordered: 0.02, ..GymFaults::default() },
    },
    NamedFailure {
        name: "jitter",
        about: "each packet is delayed by up to 15 ms more, in order, as on Wi-Fi",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { jitter: Nanos::millis(15), ..GymFaults::default() },
    },
    NamedFailure {
        name: "clock-step",
        about: "the clock is set forward by two seconds: delays one way jump, round trips do not",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { clock_step: Some(Nanos::secs(2)), ..GymFaults::default() },
    },
    NamedFailure {
        name: "silence",
        about: "the line carries nothing for a second, every ten",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(9, rate), (1, 0)])),
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "acks-saturate",
        about: "1:40: acknowledgements of the downloads fill the uplink",
        load: GymLoad::Down,
        line: || PerDirection { up: rates(&[(60, 400_000)]), down: rates(&[(60, 2 * DOWN)]) },
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "upstream-shaper",
        about: "the provider shapes to 60 % of the line, behind it, with half a second of buffer",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { upstream_share: Some(0.6), ..GymFaults::default() },
    },
    NamedFailure {
        name: "halved-doubled",
        about: "the capacity is halved for five seconds, then doubled for five",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(5, rate), (5, rate / 2), (5, 2 * rate)])),
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "base-moves",
        about: "the path becomes 30 ms longer, then shorter again, every 15 s",
        load: GymLoad::Both,
        line: || {
            both(|rate| {
                let moved = Nanos(DELAY.0 + 15_000_000);
                let delays = [(Nanos::secs(15), DELAY), (Nanos::secs(15), moved)];
                rates(&[(60, rate)]).with_delays(delays).unwrap_or_else(|_| rates(&[(60, rate)]))
            })
        },
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "bursts",
        about: "load begins and ends every eight seconds",
        load: GymLoad::Bursts,
        line: steady,
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "one-to-fifty",
        about: "1:50: 400 kbit/s up and 20 Mbit/s down, both loaded",
        load: GymLoad::Both,
        line: || PerDirection { up: rates(&[(60, 400_000)]), down: rates(&[(60, 20_000_000)]) },
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "rival",
        about: "somebody else's download fills a link beyond the line: no rate of the shaper shortens that queue",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { rival: true, ..GymFaults::default() },
    },
    NamedFailure {
        name: "pauses",
        about: "the controller's program stands still for 0.7 s every five seconds",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(7, rate), (6, rate / 2)])),
        faults: || GymFaults { paused: Nanos::millis(700), ..GymFaults::default() },
    },
    NamedFailure {
        name: "late-timers",
        about: "the controller's timers are late by up to 200 ms",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(7, rate), (6, rate / 2)])),
        faults: || GymFaults { late: Nanos::millis(200), ..GymFaults::default() },
    },
    NamedFailure {
        name: "no-timestamps",
        about: "probe targets give no timestamps: only round trips are known",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { no_timestamps: true, ..GymFaults::default() },
    },
];

impl NamedFailure {
    /// As a case.
    #[must_use]
    pub fn case(&self) -> GymCase {
        let case = GymCase::of_traces(self.name, (self.line)(), self.load);
        GymCase { faults: (self.faults)(), duration: Nanos::secs(25), ..case }
    }
}

fn steady() -> PerDirection<Trace> {
    both(|rate| rates(&[(60, rate)]))
}

fn both(of: impl Fn(u64) -> Trace) -> PerDirection<Trace> {
    PerDirection { up: of(UP), down: of(DOWN) }
}

/// Seconds and rates, with the usual delay.
fn rates(steps: &[(u64, u64)]) -> Trace {
    let steps = steps.iter().map(|(seconds, rate)| (Nanos::secs(*seconds), *rate));
    let trace = Trace::rates(steps).and_then(|trace| trace.with_delays([(Nanos::secs(60), DELAY)]));
    // The rates above are none of those that are refused: a test makes all cases.
    trace.unwrap_or_else(|_| Trace::steady(UP, Nanos::secs(60)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::ControllerChoice;
    use crate::front::p95_at_use;
    use crate::run::{GymRun, run_case};
    use crate::score::GymScore;
    use std::collections::BTreeSet;
    use tidegate_control::{OwnController, OwnSettings};

    fn case(name: &str) -> GymCase {
        let failure = NAMED_FAILURES.iter().find(|failure| failure.name == name).expect(name);
        // Short, and at a quarter of the speed: what happens is the same.
        let case = failure.case();
        GymCase { warm_up: Nanos::secs(5), duration: Nanos::secs(10), ..case }
    }

    fn played(case: &GymCase, controller: &str) -> GymRun {
        let mut controller =
            ControllerChoice::named(controller).expect(controller).build(case).expect("a controller");
        run_case(case, controller.as_mut(), true).expect("a run")
    }

    /// Without a shaper that holds anything back: what the line itself does.
    fn open(name: &str) -> (GymCase, GymRun) {
        let case = case(name);
        let run = played(&case, "fixed:3");
        (case, run)
    }

    #[test]
    fn names_are_unique_and_each_case_has_a_line_of_its_rates() {
        let names: BTreeSet<&str> = NAMED_FAILURES.iter().map(|failure| failure.name).collect();
        assert_eq!(names.len(), NAMED_FAILURES.len());
        for failure in &NAMED_FAILURES {
            let means = failure.case().line.means();
            assert!(means.up > 0 && means.down >= means.up, "{}: {means:?}", failure.name);
        }
    }

    /// tidegate's own at an aim.
    fn own(case: &GymCase, aim: f64) -> GymScore {
        let settings = OwnSettings::new(case.line.limits()).aiming(aim);
        run_case(case, &mut OwnController::new(settings), false).expect("a run").score
    }

    /// What is wrong with tidegate's own in a failure, if anything is: its p95 is more than a tenth above a
    /// published controller's at equal use of the line. Where it never uses as much, the aim that uses most
    /// is compared.
    fn worse(failure: &NamedFailure) -> Option<String> {
        let case = failure.case();
        let usual = own(&case, 1.0);
        for name in ["cake-autorate", "sqm-autorate"] {
            let mut rival = ControllerChoice::named(name).expect(name).build(&case).expect("a controller");
            let rival = run_case(&case, rival.as_mut(), false).expect("a run").score;
            let most = 1.1 * rival.call_p95_ms;
            if usual.utilisation >= rival.utilisation && usual.call_p95_ms <= most {
                continue;
            }
            let aims = [0.25, 0.5, 2.0, 4.0].map(|aim| own(&case, aim));
            let all: Vec<GymScore> = aims.into_iter().chain([usual.clone()]).collect();
            let used = all.iter().map(|one| one.utilisation).fold(0.0, f64::max);
            let p95 = p95_at_use(&all, rival.utilisation.min(used)).expect("an aim uses as much");
            if p95 > most {
                return Some(format!("{}: {p95} ms, {name} {} ms", failure.name, rival.call_p95_ms));
            }
        }
        None
    }

    #[test]
    fn in_no_failure_is_the_own_controller_a_tenth_later_than_a_published_one_at_equal_use() {
        static ALL: [NamedFailure; NAMED_FAILURES.len()] = NAMED_FAILURES;
        let halves = ALL.chunks(ALL.len().div_ceil(2));
        let wrong: Vec<String> = std::thread::scope(|scope| {
            let work = |half: &'static [NamedFailure]| {
                scope.spawn(move || half.iter().filter_map(worse).collect::<Vec<String>>())
            };
            let both: Vec<_> = halves.map(work).collect();
            both.into_iter().flat_map(|half| half.join().expect("a half")).collect()
        });
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Jitter is no queue: a controller that takes it for one drains the line all the time.
    #[test]
    fn jitter_is_no_queue_and_does_not_hold_the_line() {
        let case =
            NAMED_FAILURES.iter().find(|failure| failure.name == "jitter").expect("it is there").case();
        let used = |jitters: f64| {
            let settings = OwnSettings { jitters, ..OwnSettings::new(case.line.limits()) };
            run_case(&case, &mut OwnController::new(settings), false).expect("a run").score
        };
        let usual = used(OwnSettings::new(case.line.limits()).jitters);
        assert!(usual.utilisation > 0.75 && usual.call_p95_ms < 80.0, "{usual:?}");
        let blind = used(0.0);
        assert!(blind.utilisation < 0.5, "without the rule: {blind:?}");
    }

    /// A path that becomes longer is no queue, however differently a slow shaper delays probes: the line
    /// stays in use (without that rule two thirds of it were).
    #[test]
    fn a_base_that_moves_does_not_hold_the_line() {
        let failure = NAMED_FAILURES.iter().find(|failure| failure.name == "base-moves");
        let score = own(&failure.expect("it is there").case(), 1.0);
        assert!(score.utilisation > 0.8 && score.call_p95_ms < 55.0, "{score:?}");
    }

    #[test]
    fn jitter_delays_each_packet_by_another_time() {
        let case = GymCase { load: GymLoad::Idle, ..case("jitter") };
        let run = played(&case, "fixed:3");
        let score = &run.score;
        assert!(score.call_p95_ms - score.call_p50_ms > 4.0 && score.call_lost == 0.0, "{score:?}");
        let without = GymCase { faults: GymFaults::default(), ..case };
        let score = played(&without, "fixed:3").score;
        assert!(score.call_p95_ms - score.call_p50_ms < 4.0, "{score:?}");
    }

    #[test]
    fn blind_probes_see_nothing_of_the_queue_that_a_call_meets() {
        let (_, blind) = open("blind-probes");
        assert!(blind.score.call_p95_ms > 150.0, "{:?}", blind.score);
        assert!(blind.score.probe_p95_ms < 70.0, "{:?}", blind.score);
        let (_, seeing) = open("no-timestamps");
        assert!(seeing.score.probe_p95_ms > 150.0, "{:?}", seeing.score);
    }

    #[test]
    fn the_line_is_silent_halved_or_shaped_upstream_as_its_name_says() {
        let (_, silent) = open("silence");
        let carried = &silent.record.expect("a record").carried[1];
        // From the ninth second to the tenth, but for what was under way.
        assert!(carried[92..99].iter().all(|bits| *bits == 0.0), "{carried:?}");
        assert!(carried[..85].iter().skip(20).all(|bits| *bits > 0.0));

        let (_, halved) = open("halved-doubled");
        let capacity = &halved.record.expect("a record").capacity[1];
        let mbit = [20, 70, 120].map(|at| (capacity[at] / 1e6).round() as u64);
        assert_eq!(mbit, [8, 4, 16]);

        let (_, shaped) = open("upstream-shaper");
        let record = shaped.record.expect("a record");
        let mean = record.carried[1][60..].iter().sum::<f64>() / record.carried[1][60..].len() as f64;
        let share = mean / DOWN as f64;
        assert!(share > 0.54 && share < 0.61, "{share}");
    }

    #[test]
    fn a_rival_makes_a_queue_that_no_rate_of_ours_shortens() {
        let rival = case("rival");
        let slow = played(&rival, "fixed:0.25");
        assert!(slow.score.call_p95_ms > 100.0, "{:?}", slow.score);
        let alone = GymCase { faults: GymFaults::default(), ..rival };
        let slow = played(&alone, "fixed:0.25");
        assert!(slow.score.call_p95_ms < 60.0, "{:?}", slow.score);
    }

    #[test]
    fn acknowledgements_alone_fill_the_uplink() {
        let (_, run) = open("acks-saturate");
        let record = run.record.expect("a record");
        let mean = |of: &[f64]| of[60..].iter().sum::<f64>() / of[60..].len() as f64;
        assert!(mean(&record.carried[0]) > 0.9 * 400_000.0, "{}", mean(&record.carried[0]));
    }

    #[test]
    fn the_path_becomes_longer_and_what_is_reordered_comes_late() {
        let case = GymCase { load: GymLoad::Idle, ..case("base-moves") };
        let case = GymCase { warm_up: Nanos::secs(1), duration: Nanos::secs(18), ..case };
        let record = played(&case, "fixed:3").record.expect("a record");
        let longer = record.call_ms[0][160] - record.call_ms[0][100];
        assert!((longer - 15.0).abs() < 2.0, "{longer}");

        let case = GymCase { load: GymLoad::Idle, ..self::case("reordering") };
        let run = played(&case, "fixed:3");
        assert!(run.score.call_p99_ms > run.score.call_p50_ms + 15.0, "{:?}", run.score);
    }

    #[test]
    fn bursts_begin_and_end_and_an_uplink_of_a_fiftieth_is_one() {
        let (_, run) = open("bursts");
        let carried = &run.record.expect("a record").carried[1];
        assert!(
            carried[20..38].iter().all(|bits| *bits > 1e6) && carried[60..78].iter().all(|bits| *bits < 5e5)
        );
        let means = case("one-to-fifty").line.means();
        assert_eq!(means.down / means.up, 50);
    }

    /// What is wrong with the probes, the clock and the program shows in what a controller hears.
    #[test]
    fn dead_targets_limits_clocks_pauses_and_late_timers_are_heard() {
        let heard = |name: &str| {
            let mut case = GymCase { load: GymLoad::Idle, ..case(name) };
            case.warm_up = Nanos::secs(1);
            case.duration = Nanos::secs(11);
            case.faults.dead_from = Nanos::secs(2);
            let mut listener = Listener::default();
            run_case(&case, &mut listener, false).expect("a run");
            listener
        };
        let usual = heard("no-timestamps");
        assert_eq!((usual.lost, usual.stamped), (0, 0));
        assert!(usual.replies > 300 && usual.longest_gap_ms <= 60, "{usual:?}");

        let one = heard("one-target-dead");
        assert!(one.lost > 25 && one.lost < 40 && one.stamped == one.replies, "{one:?}");
        let all = heard("all-targets-dead");
        assert!(all.lost > 200 && all.replies < 80, "{all:?}");
        let limited = heard("icmp-limit");
        assert!(limited.replies < 110 && limited.lost > 150, "{limited:?}");
        let set = heard("clock-step");
        assert!(set.least_up_ms + 1990 < set.first_up_ms && set.lost == 0, "{set:?}");
        assert!((700..=760).contains(&heard("pauses").longest_gap_ms));
        let late = heard("late-timers");
        assert!((150..=260).contains(&late.longest_gap_ms), "{late:?}");
    }

    /// Counts what it hears.
    #[derive(Debug)]
    struct Listener {
        replies: u64,
        lost: u64,
        stamped: u64,
        first_up_ms: i64,
        least_up_ms: i64,
        last_counters: Option<tidegate_packet::Time>,
        longest_gap_ms: u64,
    }

    impl Default for Listener {
        fn default() -> Listener {
            Listener {
                replies: 0,
                lost: 0,
                stamped: 0,
                first_up_ms: i64::MIN,
                least_up_ms: i64::MAX,
                last_counters: None,
                longest_gap_ms: 0,
            }
        }
    }

    impl tidegate_control::RateController for Listener {
        fn name(&self) -> &str {
            "listener"
        }

        fn on_event(
            &mut self,
            now: tidegate_packet::Time,
            event: &tidegate_control::ControlEvent,
            _: &mut Vec<tidegate_control::RateDecision>,
        ) {
            use tidegate_control::ControlEvent;
            match event {
                ControlEvent::ProbeReply(reply) => {
                    self.replies += 1;
                    if let Some(one_way) = reply.one_way {
                        self.stamped += 1;
                        if reply.reflector == 4 {
                            let ms = one_way.up / 1_000_000;
                            self.first_up_ms =
                                if self.first_up_ms == i64::MIN { ms } else { self.first_up_ms };
                            self.least_up_ms = self.least_up_ms.min(ms);
                        }
                    }
                }
                ControlEvent::ProbeLost { .. } => self.lost += 1,
                ControlEvent::Counters(_) => {
                    let gap = self.last_counters.map_or(0, |last| now.since(last).0 / 1_000_000);
                    self.longest_gap_ms = self.longest_gap_ms.max(gap);
                    self.last_counters = Some(now);
                }
                _ => {}
            }
        }
    }
}
