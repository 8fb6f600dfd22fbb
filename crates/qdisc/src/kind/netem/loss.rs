//! Which packets are dropped: each by chance, or by a chain of states.

use super::{Chance, Correlated};
use tidegate_policy::NetemLoss;

#[derive(Default)]
pub(super) struct LossGenerator {
    model: NetemLoss,
    pub(super) random: Correlated,
    state: State,
}

/// The state of a loss chain. Gilbert and Elliott's has the first two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Receiving, between bursts.
    #[default]
    Good,
    /// Bad; of four states: receiving within a burst of drops.
    Burst,
    /// A single packet was dropped.
    LostAlone,
    /// Losing, within a burst.
    Lost,
}

impl LossGenerator {
    pub(super) fn set(&mut self, model: NetemLoss) {
        self.model = model;
        if !matches!(model, NetemLoss::Random(_)) {
            self.state = State::Good;
        }
    }

    /// Whether this packet is dropped.
    pub(super) fn should_drop(&mut self, chance: &mut Chance<'_>) -> bool {
        match self.model {
            NetemLoss::Random(probability) => self.random.happens(chance, probability),
            NetemLoss::States { .. } => {
                self.state = self.next(chance.u32());
                matches!(self.state, State::LostAlone | State::Lost)
            }
            NetemLoss::Gilbert { p, r, h, k1 } => {
                // What happens to the packet is decided in the state that it finds.
                let good = self.state == State::Good;
                if chance.u32() < if good { p } else { r } {
                    self.state = if good { State::Burst } else { State::Good };
                }
                if good { chance.u32() < k1 } else { chance.u32() > h }
            }
        }
    }

    /// Where the chain of four goes from here.
    fn next(&self, draw: u32) -> State {
        let NetemLoss::States { p13, p31, p32, p23, p14 } = self.model else { return self.state };
        match self.state {
            State::Good if draw < p14 => State::LostAlone,
            State::Good if draw > p14 && draw < p13.wrapping_add(p14) => State::Lost,
            State::Good => State::Good,
            State::Burst if draw < p23 => State::Lost,
            State::Burst => State::Burst,
            State::Lost if draw < p32 => State::Burst,
            State::Lost if draw > p32 && draw < p31.wrapping_add(p32) => State::Good,
            State::Lost => State::Lost,
            State::LostAlone => State::Good,
        }
    }
}
