//! The sentences of `quick` on lines whose truth is known: paths made up at random, with hops that are
//! silent, slow to reply themselves, or drop packets. A sentence may be missing; none may be wrong.

use tidegate_measure::pinged::PingRequest;
use tidegate_measure::quick::{Grade, HopResult, LoadDirection, LoadPhase, Quick};
use tidegate_packet::{RandomSource, Seeded};
use tidegate_report::measuring::quick::sentences;

const MS: u64 = 1_000_000;
/// Pings of a phase, one every 50 ms.
const PINGS: u64 = 40;
const PHASE: u64 = PINGS * 50 * MS;

/// A path with its queueing delays under load.
struct Line {
    quick: Quick,
    /// What waits before each place and behind the one nearer, in ms.
    waits: Vec<u64>,
}

/// A number below a bound.
fn below(draws: &mut Seeded, bound: u32) -> u64 {
    u64::from(draws.below(bound))
}

fn line(draws: &mut Seeded) -> Line {
    let places = 1 + below(draws, 6) as usize;
    let waits: Vec<u64> = (0..places)
        .map(|_| match draws.below(3) {
            0 => below(draws, 500),
            _ => 0,
        })
        .collect();
    let whole: u64 = waits.iter().sum();
    let mut distance = 0;
    let (mut idle, mut waited) = (0, 0);
    let place = |n: usize| {
        // Hops that never answer are not among the places.
        distance += 1 + draws.below(2) as u8;
        idle += 1 + below(draws, 20);
        waited += waits[n];
        let silent = n + 1 < places && draws.below(4) == 0;
        // Clearly slower than the server: one that is slower by less cannot be distinguished from a queue
        // before it.
        let slow = if n + 1 < places && draws.below(4) == 0 { 2 * whole + 20 + below(draws, 300) } else { 0 };
        let loses = if draws.below(4) == 0 { 5 } else { u32::MAX };
        let mut answer = |n: u64| {
            let loaded = n >= PINGS;
            let took = idle * MS + below(draws, 300_000) + if loaded { (waited + slow) * MS } else { 0 };
            (!silent && draws.below(loses) > 0).then_some(took)
        };
        let selected =
            (0..2 * PINGS).map(|n| PingRequest { sent_ns: n * 50 * MS, took_ns: answer(n), here_ns: None });
        HopResult { name: format!("place-{n}"), distance: Some(distance), requests: selected.collect() }
    };
    let places = (0..places).map(place).collect();
    let idle = LoadPhase { window: (0, PHASE), ..LoadPhase::default() };
    let up = LoadPhase {
        load: LoadDirection::Up,
        window: (PHASE, 2 * PHASE),
        up_bits: Some(5e6),
        ..LoadPhase::default()
    };
    Line { quick: Quick { places, phases: vec![idle, up], ..Quick::default() }, waits }
}

/// The number of a place in a sentence's words.
fn numbered(words: &str) -> usize {
    let digits: String = words.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// What waits in the stretch that a sentence names, in ms.
fn named(line: &Line, sentence: &str) -> u64 {
    let places: Vec<usize> = sentence.split("place-").skip(1).map(numbered).collect();
    let (from, to) = match places.as_slice() {
        [before] => (0, *before),
        [after, before] => (after + 1, *before),
        _ => panic!("{sentence}"),
    };
    line.waits[from..=to].iter().sum()
}

#[test]
fn sentences_about_a_line_are_true() {
    let mut draws = Seeded::new(20_261_123);
    let (mut one, mut several, mut unsaid) = (0, 0, 0);
    for _ in 0..4000 {
        let line = line(&mut draws);
        let whole: u64 = line.waits.iter().sum();
        let lines = sentences(&line.quick);
        let about = lines.iter().find(|sentence| {
            sentence.contains(" the bottleneck queue is ") || sentence.contains(" packets wait in ")
        });
        match about {
            // Medians of noisy answers may be off by a millisecond or two.
            Some(sentence) if sentence.contains(" the bottleneck queue is ") => {
                one += 1;
                assert!(named(&line, sentence) * 2 + 4 >= whole, "{sentence}\n{:?}", line.waits);
                let near = sentence.contains("your own network");
                assert!(!near || line.quick.places[0].distance == Some(1), "{sentence}");
            }
            Some(sentence) => {
                several += 1;
                let (_, stretches) = sentence.split_once(": ").expect("several");
                for stretch in stretches.split(", ") {
                    let given: f64 =
                        stretch.split(' ').next().and_then(|number| number.parse().ok()).expect("a time");
                    assert!(
                        (given - named(&line, stretch) as f64).abs() < 2.0,
                        "{stretch}\n{:?}",
                        line.waits
                    );
                }
            }
            None => {
                unsaid += 1;
                assert!(whole <= 6, "nothing is said of {whole} ms: {lines:?}");
            }
        }
        graded_by_growth(&line, whole, &lines);
    }
    assert!(one > 1000 && several > 100 && unsaid > 100, "{one}, {several}, {unsaid}");
}

/// The grade follows the queueing delay of the whole path, or is beside one of its bounds.
fn graded_by_growth(line: &Line, whole: u64, lines: &[String]) {
    let Some(grade) = lines.iter().find_map(|sentence| sentence.strip_prefix("Grade ")) else { return };
    let letter = grade.split(':').next().expect("a letter");
    let near = [whole.saturating_sub(1), whole, whole + 1].map(|ms| Grade::of(ms * MS).letter());
    assert!(near.contains(&letter), "{grade} of {whole} ms: {:?}", line.waits);
}
