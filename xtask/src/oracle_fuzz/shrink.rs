//! The smallest case that still differs in the same way: rows, script lines, options, then figures.

use super::case::{Case, Row};

/// Asks whether a smaller case still differs; counts, so that shrinking ends.
struct DifferenceTest<'a> {
    differs: &'a mut dyn FnMut(&Case) -> bool,
    left: u32,
}

impl DifferenceTest<'_> {
    fn accepts(&mut self, case: &Case) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        (self.differs)(case)
    }
}

/// Shrinks `case` with at most `questions` to `differs`.
pub(crate) fn shrink(case: &Case, questions: u32, differs: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut judge = DifferenceTest { differs, left: questions };
    let mut best = case.clone();
    quiet(&mut best, &mut judge);
    tail(&mut best, &mut judge);
    branches(&mut best, &mut judge);
    loop {
        let before = best.clone();
        script(&mut best, &mut judge);
        rows(&mut best, &mut judge);
        tail(&mut best, &mut judge);
        commands(&mut best, &mut judge);
        script_words(&mut best, &mut judge);
        figures(&mut best, &mut judge);
        if best == before || judge.left == 0 {
            return best;
        }
    }
}

/// Tries without any command in the middle: they cost the kernel the most.
fn quiet(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    let mut smaller = best.clone();
    smaller.rows.retain(|row| row.command().is_none());
    if smaller != *best && judge.accepts(&smaller) {
        *best = smaller;
    }
}

/// Removes whole branches of the tree, the largest first: what is below a qdisc or class goes with it.
fn branches(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    let mut names: Vec<String> = best.script.iter().filter_map(|line| name(line)).collect();
    // Every filter list is a branch too.
    names.extend(
        best.script
            .iter()
            .filter(|line| line.starts_with("tc filter"))
            .filter_map(|line| after(line, "parent")),
    );
    names.dedup();
    let mut sets: Vec<(usize, bool, String)> = names
        .into_iter()
        .flat_map(|name| {
            [false, true].map(|filters| (below(&best.script, &name, filters).len(), filters, name.clone()))
        })
        .filter(|(size, ..)| *size > 1)
        .collect();
    sets.sort_by_key(|(size, ..)| std::cmp::Reverse(*size));
    for (_, filters, name) in sets {
        let gone = below(&best.script, &name, filters);
        if gone.len() < 2 || gone.len() >= best.script.len() {
            continue;
        }
        let mut smaller = best.clone();
        smaller.script.retain(|line| !gone.contains(line));
        if judge.accepts(&smaller) {
            *best = smaller;
        }
    }
}

/// `10:` or `1:5`: what a line of the script adds.
fn name(line: &str) -> Option<String> {
    if line.starts_with("tc class") {
        after(line, "classid")
    } else {
        after(line, "handle").filter(|_| line.starts_with("tc qdisc"))
    }
}

/// The word after a word.
fn after(line: &str, word: &str) -> Option<String> {
    line.split(' ').skip_while(|other| *other != word).nth(1).map(str::to_owned)
}

/// The lines that make `top` and all that is attached to it; or only the filters that ask at it.
fn below(script: &[String], top: &str, filters: bool) -> Vec<String> {
    if filters {
        let at_top =
            |line: &&String| line.starts_with("tc filter") && after(line, "parent").as_deref() == Some(top);
        return script.iter().filter(at_top).cloned().collect();
    }
    let mut names = vec![top.to_owned()];
    let mut gone: Vec<String> = Vec::new();
    for line in script {
        let own = name(line).is_some_and(|name| name == top);
        let hangs = after(line, "parent").is_some_and(|parent| names.contains(&parent));
        let result = line.starts_with("tc filter")
            && ["classid", "flowid", "baseclass"]
                .iter()
                .any(|word| after(line, word).is_some_and(|id| names.contains(&id)));
        // Classes of a qdisc `13:` whose line names another class as the parent are reached through that
        // class.
        if own || hangs || result {
            gone.push(line.clone());
            names.extend(name(line));
        }
    }
    gone
}

/// Cuts the end off, by halves: most differences need only the beginning.
fn tail(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    let (mut enough, mut short) = (best.rows.len(), 0);
    while enough > short + 1 {
        let middle = usize::midpoint(enough, short);
        let mut smaller = best.clone();
        smaller.rows.truncate(middle);
        if judge.accepts(&smaller) {
            *best = smaller;
            enough = middle;
        } else {
            short = middle;
        }
    }
}

/// Removes pieces of a list, ever smaller ones, while the difference stays.
fn pieces<T: Clone>(list: &[T], mut accepts: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut list = list.to_vec();
    let mut size = list.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut removed = false;
        while at < list.len() {
            let mut smaller = list.clone();
            smaller.drain(at..(at + size).min(list.len()));
            if accepts(&smaller) {
                list = smaller;
                removed = true;
            } else {
                at += size;
            }
        }
        if size == 1 && !removed {
            return list;
        }
        size = if size == 1 { 1 } else { size.div_ceil(2) };
    }
}

fn rows(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    let base = best.clone();
    best.rows = pieces(&base.rows, |rows| judge.accepts(&Case { rows: rows.to_vec(), ..base.clone() }));
}

fn script(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    let base = best.clone();
    best.script =
        pieces(&base.script, |script| judge.accepts(&Case { script: script.to_vec(), ..base.clone() }));
}

/// Removes parts of commands in the middle (`a; b`), and the words of what is left.
fn commands(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    for at in 0..best.rows.len() {
        let Some(text) = best.rows[at].command().map(str::to_owned) else { continue };
        let with = |best: &Case, text: &str| {
            let mut smaller = best.clone();
            smaller.rows[at].rest = format!("!,{text}");
            smaller
        };
        let parts: Vec<&str> = text.split("; ").collect();
        let base = best.clone();
        let parts =
            pieces(&parts, |parts| !parts.is_empty() && judge.accepts(&with(&base, &parts.join("; "))));
        *best = with(best, &parts.join("; "));
        for part in 0..parts.len() {
            if !parts[part].starts_with("tc ") || parts[part].contains(" show ") {
                continue;
            }
            let base = best.clone();
            let line = words(parts[part], &mut |line| {
                let mut all: Vec<&str> = base.rows[at].command().unwrap_or_default().split("; ").collect();
                all[part] = line;
                judge.accepts(&with(&base, &all.join("; ")))
            });
            let text = base.rows[at].command().unwrap_or_default().to_owned();
            let mut all: Vec<&str> = text.split("; ").collect();
            all[part] = &line;
            *best = with(best, &all.join("; "));
        }
    }
}

fn script_words(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    for at in 0..best.script.len() {
        let base = best.clone();
        best.script[at] = words(&base.script[at], &mut |line| {
            let mut smaller = base.clone();
            line.clone_into(&mut smaller.script[at]);
            judge.accepts(&smaller)
        });
    }
}

/// Removes options (two words, or one) behind `tc OBJECT VERB dev link0 PLACE ID`.
fn words(line: &str, accepts: &mut dyn FnMut(&str) -> bool) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let mut at = 7;
    while at < words.len() {
        if words[at].starts_with("2>") || words[at].starts_with(">>") {
            break;
        }
        let mut gone = false;
        for count in [2, 1] {
            if at + count > words.len() {
                continue;
            }
            let mut smaller = words.clone();
            smaller.drain(at..at + count);
            if accepts(&smaller.join(" ")) {
                words = smaller;
                gone = true;
                break;
            }
        }
        if !gone {
            at += 1;
        }
    }
    words.join(" ")
}

/// Makes the figures of packets plain: all rows together, then, when they are few, one by one.
fn figures(best: &mut Case, judge: &mut DifferenceTest<'_>) {
    let start = best.rows.first().map_or(0, |row| row.time);
    try_rows(best, judge, |row| row.time -= start);
    let plain: &[fn(&mut Row)] = &[
        |row| row.time = row.time / 1_000_000 * 1_000_000,
        |row| row.time = row.time / 1000 * 1000,
        |row| column(row, 9, "0"),
        |row| column(row, 8, "0"),
        |row| column(row, 7, "0"),
        |row| column(row, 1, "1000"),
        |row| column(row, 1, "1500"),
        |row| {
            column(row, 2, "10.0.0.1");
            column(row, 3, "10.9.0.1");
            column(row, 4, "udp");
            column(row, 5, "1");
            column(row, 6, "2000");
            column(row, 10, "");
            column(row, 11, "0");
            column(row, 12, "0");
        },
    ];
    for change in plain {
        if !try_rows(best, judge, change) && best.rows.len() <= 16 {
            for at in 0..best.rows.len() {
                let mut smaller = best.clone();
                change(&mut smaller.rows[at]);
                let ordered = smaller.rows.windows(2).all(|pair| pair[0].time <= pair[1].time);
                if smaller != *best && ordered && judge.accepts(&smaller) {
                    *best = smaller;
                }
            }
        }
    }
    let mut smaller = best.clone();
    "0 0 1500 1000".clone_into(&mut smaller.link);
    if smaller != *best && judge.accepts(&smaller) {
        *best = smaller;
    }
}

/// Applies a change to every row; true if nothing more is to be done with it.
fn try_rows(best: &mut Case, judge: &mut DifferenceTest<'_>, change: impl Fn(&mut Row)) -> bool {
    let mut smaller = best.clone();
    smaller.rows.iter_mut().for_each(change);
    if smaller == *best {
        return true;
    }
    let accepted = judge.accepts(&smaller);
    if accepted {
        *best = smaller;
    }
    accepted
}

/// Sets column `at` (counted behind the time: id 0, size 1, src 2 …) of a packet.
fn column(row: &mut Row, at: usize, value: &str) {
    if row.command().is_some() {
        return;
    }
    let mut columns: Vec<&str> = row.rest.split(',').collect();
    if at < columns.len() {
        columns[at] = value;
        row.rest = columns.join(",");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle_fuzz::case::Release;
    use crate::oracle_fuzz::generate;

    #[test]
    fn shrinks_to_what_a_fake_test_wants() {
        let mut case = generate::case(11, 4, Some("tbf"), &Release::default());
        case.rows.push(Row {
            time: 70_000_000_000,
            rest: "!,tc qdisc change dev link0 root handle 1: tbf rate 1mbit burst 9k; echo x".to_owned(),
        });
        let mut requested = 0;
        let small = shrink(&case, 5000, &mut |case| {
            requested += 1;
            let packets = case.rows.iter().filter(|row| row.command().is_none()).count();
            let changed =
                case.rows.iter().any(|row| row.command().is_some_and(|text| text.contains("burst 9k")));
            packets >= 3 && changed && case.script.iter().any(|line| line.contains("tbf"))
        });
        assert_eq!(small.rows.len(), 4);
        assert_eq!(small.script.len(), 1);
        let command = small.rows[3].command().unwrap();
        assert_eq!(command, "tc qdisc change dev link0 root handle burst 9k");
        let packet = small.rows.iter().find(|row| row.command().is_none()).unwrap();
        assert!(packet.rest.ends_with(",1500,10.0.0.1,10.9.0.1,udp,1,2000,0,0,0,,0,0"), "{}", packet.rest);
        assert!(requested < 1000, "{requested}");
    }

    #[test]
    fn branches_go_as_a_whole() {
        let script: Vec<String> = [
            "tc qdisc add dev link0 root handle 1: prio",
            "tc qdisc add dev link0 parent 1:1 handle 10: drr",
            "tc class add dev link0 parent 10: classid 10:1 drr",
            "tc qdisc add dev link0 parent 10:1 handle 20: pfifo",
            "tc qdisc add dev link0 parent 1:2 handle 30: pfifo",
            "tc filter add dev link0 parent 1: protocol ip prio 1 handle 1 fw classid 1:1",
            "tc filter add dev link0 parent 10: protocol ip prio 1 handle 1 fw classid 10:1",
        ]
        .map(str::to_owned)
        .to_vec();
        let places = |top: &str, filters| -> Vec<usize> {
            let gone = below(&script, top, filters);
            (0..script.len()).filter(|at| gone.contains(&script[*at])).collect()
        };
        assert_eq!(places("10:", false), [1, 2, 3, 6]);
        assert_eq!(places("10:1", false), [2, 3, 6]);
        assert_eq!(places("10:", true), [6]);
    }

    #[test]
    fn runs_no_more_tests_than_allowed() {
        let case = generate::case(11, 5, None, &Release::default());
        let mut requested = 0;
        let same = shrink(&case, 40, &mut |_| {
            requested += 1;
            false
        });
        assert_eq!((requested, same), (40, case));
    }
}
