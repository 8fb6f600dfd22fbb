//! Every small world there is: all sequences of five steps, each an arrival of one of two sizes in one of
//! three classes, or a packet taken out.

use super::flat::Flat;
use super::world::World;
use std::collections::VecDeque;

const CLASSES: u16 = 3;
const SIZES: [u32; 2] = [100, 1400];
const STEPS: u32 = 5;
/// Arrivals, and taking one out.
const CHOICES: u32 = CLASSES as u32 * SIZES.len() as u32 + 1;

/// What a step is.
enum Step {
    Comes(u16, u32),
    Goes,
}

fn steps(mut number: u32) -> impl Iterator<Item = Step> {
    (0..STEPS).map(move |_| {
        let choice = number % CHOICES;
        number /= CHOICES;
        match choice.checked_sub(1) {
            None => Step::Goes,
            Some(arrival) => Step::Comes(1 + (arrival % 3) as u16, SIZES[arrival as usize / 3]),
        }
    })
}

/// A simulated machine with a tree of one kind, and the backlog of each of its classes.
struct Watched {
    world: World,
    queues: [VecDeque<usize>; CLASSES as usize],
}

impl Watched {
    fn new(kind: Flat) -> Watched {
        let mut world = World::new(1, 0);
        kind.build(&mut world, CLASSES);
        Watched { world, queues: Default::default() }
    }

    fn comes(&mut self, class: u16, len: u32) {
        self.queues[usize::from(class) - 1].push_back(self.world.offered.len());
        self.world.offer_only(class, 0, len);
    }

    /// A packet leaves exactly when one waits, and it is the oldest of its class.
    fn goes(&mut self) -> Option<usize> {
        let waits = self.world.waiting() > 0;
        let number = self.world.poll();
        assert_eq!(number.is_some(), waits, "it works whenever there is work");
        if let Some(number) = number {
            let class = self.world.offered[number].class;
            assert_eq!(self.queues[usize::from(class) - 1].pop_front(), Some(number));
        }
        number
    }
}

#[test]
fn every_small_world_is_whole_and_in_order() {
    for kind in Flat::ALL {
        for number in 0..CHOICES.pow(STEPS) {
            let mut watched = Watched::new(kind);
            for step in steps(number) {
                match step {
                    Step::Comes(class, len) => watched.comes(class, len),
                    Step::Goes => drop(watched.goes()),
                }
            }
            while watched.goes().is_some() {}
            assert_eq!(watched.world.waiting(), 0, "{kind:?} {number}");
        }
    }
}

#[test]
fn prio_always_serves_the_best_band() {
    for number in 0..CHOICES.pow(STEPS) {
        let mut watched = Watched::new(Flat::Prio);
        for step in steps(number) {
            match step {
                Step::Comes(class, len) => watched.comes(class, len),
                Step::Goes => {
                    let best = watched.queues.iter().position(|queue| !queue.is_empty());
                    let served =
                        watched.goes().map(|number| usize::from(watched.world.offered[number].class) - 1);
                    assert_eq!(served, best, "{number}");
                }
            }
        }
    }
}

/// Deficit round robin as in its paper: active classes are in line; the first sends while its deficit pays,
/// else gets another quantum and goes to the end.
#[derive(Default)]
struct RoundRobin {
    line: VecDeque<usize>,
    deficit: [u32; CLASSES as usize],
}

impl RoundRobin {
    fn comes(&mut self, class: usize) {
        if !self.line.contains(&class) {
            self.deficit[class] = quantum(class);
            self.line.push_back(class);
        }
    }

    fn goes(&mut self, next: impl Fn(usize) -> u32, left: impl Fn(usize) -> usize) -> Option<usize> {
        loop {
            let class = *self.line.front()?;
            if next(class) <= self.deficit[class] {
                self.deficit[class] -= next(class);
                if left(class) == 1 {
                    self.line.pop_front();
                }
                return Some(class);
            }
            self.deficit[class] += quantum(class);
            self.line.rotate_left(1);
        }
    }
}

fn quantum(class: usize) -> u32 {
    600 * (class as u32 + 1)
}

#[test]
fn drr_serves_as_in_its_paper() {
    for number in 0..CHOICES.pow(STEPS) {
        let (mut watched, mut paper) = (Watched::new(Flat::Drr), RoundRobin::default());
        let go = |watched: &mut Watched, paper: &mut RoundRobin| {
            let length = |class: usize| watched.world.offered[watched.queues[class][0]].len;
            let wanted = paper.goes(length, |class| watched.queues[class].len());
            let served = watched.goes().map(|number| usize::from(watched.world.offered[number].class) - 1);
            assert_eq!(served, wanted, "{number}");
            served
        };
        for step in steps(number) {
            match step {
                Step::Comes(class, len) => {
                    watched.comes(class, len);
                    paper.comes(usize::from(class) - 1);
                }
                Step::Goes => drop(go(&mut watched, &mut paper)),
            }
        }
        while go(&mut watched, &mut paper).is_some() {}
    }
}
