//! Ways through a world: by the fewest cables, the first of several alike.

use super::World;
use super::layout::{CableEnd, Step};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

impl World {
    /// The cables from one node to another, if they are joined.
    pub(super) fn steps(&self, from: usize, to: usize) -> Option<Vec<Step>> {
        let mut came_by: Vec<Option<(usize, Step)>> = alloc::vec![None; self.nodes];
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            if node == to {
                break;
            }
            for step in self.steps_from(node) {
                let next = self.arrives(&step).node;
                if next != from && next < self.nodes && came_by[next].is_none() {
                    came_by[next] = Some((node, step));
                    waiting.push_back(next);
                }
            }
        }
        let (mut steps, mut at) = (Vec::new(), to);
        while at != from {
            let (before, step) = came_by.get(at).copied().flatten()?;
            steps.push(step);
            at = before;
        }
        steps.reverse();
        Some(steps)
    }

    fn steps_from(&self, node: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        for (cable, ends) in self.cables.iter().enumerate() {
            let Some((hub, spokes)) = ends.split_last() else { continue };
            for (spoke, end) in spokes.iter().enumerate() {
                if end.node == node {
                    steps.push(Step { cable, spoke, there: true });
                }
                if hub.node == node {
                    steps.push(Step { cable, spoke, there: false });
                }
            }
        }
        steps
    }

    /// Where a packet is after a step.
    pub(super) fn arrives(&self, step: &Step) -> CableEnd {
        let ends = &self.cables[step.cable];
        if step.there { ends[ends.len() - 1] } else { ends[step.spoke] }
    }

    /// Where it was before.
    pub(super) fn departs(&self, step: &Step) -> CableEnd {
        let ends = &self.cables[step.cable];
        if step.there { ends[step.spoke] } else { ends[ends.len() - 1] }
    }
}
