//! Makes a differing case small: fewer rows, fewer lines, fewer options, as long as it still differs.

use super::case::Case;
use super::judge::{Judge, Verdict};
use std::time::{Duration, Instant};

/// Candidates asked at once.
const BATCH: usize = 8;
/// Most candidates for one case.
const MOST: usize = 1200;
/// Longest time for one case.
const PATIENCE: Duration = Duration::from_secs(240);

/// The smallest case found, and how it differs.
pub(super) fn shrink(judge: &Judge, case: Case, first: Verdict) -> Result<(Case, Verdict), String> {
    let mut shrinker = Shrinker { judge, best: case, verdict: first, asked: 0, begun: Instant::now() };
    shrinker.tail()?;
    loop {
        let before = shrinker.size();
        shrinker.part(0, |case| &mut case.rows)?;
        // The first line makes the root.
        shrinker.part(1, |case| &mut case.script)?;
        shrinker.options()?;
        if shrinker.size() == before || shrinker.over() {
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
    begun: Instant,
}

impl Shrinker<'_> {
    fn size(&self) -> usize {
        let words = |lines: &[String]| lines.iter().map(|line| line.split(' ').count()).sum::<usize>();
        self.best.rows.len() + words(&self.best.script) + words(&self.best.rows)
    }

    fn over(&self) -> bool {
        self.asked >= MOST || self.begun.elapsed() > PATIENCE
    }

    /// What comes after the difference has no part in it: tries to end the schedule early.
    fn tail(&mut self) -> Result<(), String> {
        let rows = self.best.rows.len();
        let candidates = [64, 32, 16, 8, 4, 2, 1].map(|parts| rows / parts).into_iter().chain([rows * 3 / 4]);
        let candidates = candidates.filter(|length| (1..rows).contains(length)).map(|length| {
            let mut case = self.best.clone();
            case.rows.truncate(length);
            case
        });
        self.try_all(candidates.collect()).map(|_| ())
    }

    /// Takes the first candidate that still differs in the same file; true when there was one.
    fn try_all(&mut self, candidates: Vec<Case>) -> Result<bool, String> {
        for batch in candidates.chunks(BATCH) {
            if self.over() {
                return Ok(false);
            }
            self.asked += batch.len();
            for (candidate, verdict) in batch.iter().zip(self.judge.judge(batch)?) {
                if alike(&verdict, &self.verdict) {
                    self.best = candidate.clone();
                    self.verdict = verdict;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Leaves out stretches of lines: half, quarters, … single ones.
    fn part(&mut self, first: usize, lines: impl Fn(&mut Case) -> &mut Vec<String>) -> Result<(), String> {
        let mut length = lines(&mut self.best).len().div_ceil(2);
        while length > 0 && !self.over() {
            let total = lines(&mut self.best).len();
            let candidates: Vec<Case> = (first..total)
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
        while again && !self.over() {
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

/// The same sort of difference: the same file, and in listings the same words around the numbers.
fn alike(verdict: &Verdict, wanted: &Verdict) -> bool {
    let (Verdict::Differs { file, detail }, Verdict::Differs { file: wanted_file, detail: wanted_detail }) =
        (verdict, wanted)
    else {
        return false;
    };
    let shape = |detail: &str| -> String {
        detail.lines().skip(1).flat_map(str::chars).filter(|c| !c.is_ascii_hexdigit()).collect()
    };
    file == wanted_file && (file.ends_with(".csv") || shape(detail) == shape(wanted_detail))
}
