//! Makes a differing case small: fewer rows, fewer lines, fewer options, as long as it still differs.

use super::case::Case;
use super::judge::{Judge, Verdict};

/// Candidates asked at once.
const BATCH: usize = 8;
/// Most candidates for one case: some minutes.
const MOST: usize = 1200;

/// The smallest case found, and how it differs.
pub(super) fn shrink(judge: &Judge, case: Case, first: Verdict) -> Result<(Case, Verdict), String> {
    let mut shrinker = Shrinker { judge, best: case, verdict: first, asked: 0 };
    loop {
        let before = shrinker.size();
        shrinker.part(|case| &mut case.rows)?;
        shrinker.part(|case| &mut case.script)?;
        shrinker.options()?;
        if shrinker.size() == before || shrinker.asked >= MOST {
            break;
        }
    }
    Ok((shrinker.best, shrinker.verdict))
}

struct Shrinker<'a> {
    judge: &'a Judge,
    best: Case,
    verdict: Verdict,
    asked: usize,
}

impl Shrinker<'_> {
    fn size(&self) -> usize {
        let words = |lines: &[String]| lines.iter().map(|line| line.split(' ').count()).sum::<usize>();
        self.best.rows.len() + words(&self.best.script) + words(&self.best.rows)
    }

    /// Takes the first candidate that still differs in the same file; true when there was one.
    fn try_all(&mut self, candidates: Vec<Case>) -> Result<bool, String> {
        for batch in candidates.chunks(BATCH) {
            if self.asked >= MOST {
                return Ok(false);
            }
            self.asked += batch.len();
            for (candidate, verdict) in batch.iter().zip(self.judge.judge(batch)?) {
                let same_file = match (&verdict, &self.verdict) {
                    (Verdict::Differs { file, .. }, Verdict::Differs { file: wanted, .. }) => file == wanted,
                    _ => false,
                };
                if same_file {
                    self.best = candidate.clone();
                    self.verdict = verdict;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Leaves out stretches of lines: half, quarters, … single ones.
    fn part(&mut self, lines: impl Fn(&mut Case) -> &mut Vec<String>) -> Result<(), String> {
        let mut length = lines(&mut self.best).len().div_ceil(2);
        while length > 0 && self.asked < MOST {
            let total = lines(&mut self.best).len();
            let candidates: Vec<Case> = (0..total)
                .step_by(length)
                .map(|start| {
                    let mut case = self.best.clone();
                    lines(&mut case).drain(start..(start + length).min(total));
                    case
                })
                .collect();
            if !self.try_all(candidates)? {
                length /= 2;
            } else {
                length = length.min(lines(&mut self.best).len().div_ceil(2));
            }
        }
        Ok(())
    }

    /// Leaves out a word, or a name and its value, of a command.
    fn options(&mut self) -> Result<(), String> {
        let mut again = true;
        while again && self.asked < MOST {
            let mut candidates = Vec::new();
            for line in 0..self.best.script.len() {
                let words: Vec<String> = self.best.script[line].split(' ').map(String::from).collect();
                // The first five words say what and where.
                for at in 5..words.len() {
                    for count in [2, 1] {
                        if at + count <= words.len() {
                            let mut fewer = words.clone();
                            fewer.drain(at..at + count);
                            let mut case = self.best.clone();
                            case.script[line] = fewer.join(" ");
                            candidates.push(case);
                        }
                    }
                }
            }
            again = self.try_all(candidates)?;
        }
        Ok(())
    }
}
