//! Which rows of an interval are shown, and in which order.

use super::interval::{DeviceInterval, Figures, QueueRow, branches};
use std::cmp::Ordering;

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// Each class below its parent.
    #[default]
    Tree,
    /// Queues (rows without classes below them), the largest throughput first.
    Throughput,
    /// Queues, the longest queueing delay (99th percentile) first.
    Delay,
    /// Queues, the largest backlog in bytes first.
    Backlog,
    /// Queues, most packets dropped first.
    Drops,
}

impl RowOrder {
    /// The order after this one, where a key changes it; the last is followed by the first.
    pub fn next(self) -> RowOrder {
        match self {
            RowOrder::Tree => RowOrder::Throughput,
            RowOrder::Throughput => RowOrder::Delay,
            RowOrder::Delay => RowOrder::Backlog,
            RowOrder::Backlog => RowOrder::Drops,
            RowOrder::Drops => RowOrder::Tree,
        }
    }

    /// Which of two rows comes first; those that are equal stay in the order of the tree.
    fn compare(self, one: &Figures, other: &Figures) -> Ordering {
        match self {
            RowOrder::Tree => Ordering::Equal,
            RowOrder::Throughput => other.bps.total_cmp(&one.bps),
            RowOrder::Delay => other.p99_ns.cmp(&one.p99_ns),
            RowOrder::Backlog => other.backlog.cmp(&one.backlog),
            RowOrder::Drops => other.drops.total_cmp(&one.drops),
        }
    }
}

/// A row with the branches of the tree as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownRow<'i> {
    /// The branches before its name; empty outside [`RowOrder::Tree`].
    pub branch: String,
    /// The row.
    pub row: &'i QueueRow,
}

/// The rows of a device that are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownRows<'i> {
    /// Those shown, in order.
    pub rows: Vec<ShownRow<'i>>,
    /// Rows left out because they are idle.
    pub idle: usize,
}

/// Orders the rows of an interval and leaves out idle ones. In the order of a tree a row stays if one below
/// it is shown, and what is on the device itself always does.
pub fn shown_rows<'i>(
    interval: &'i DeviceInterval,
    order: RowOrder,
    is_idle: impl Fn(&QueueRow) -> bool,
) -> ShownRows<'i> {
    let rows = &interval.rows;
    // A row's descendants follow it and are deeper.
    let is_leaf = |at: usize| rows.get(at + 1).is_none_or(|next| next.depth <= rows[at].depth);
    let candidates: Vec<usize> =
        (0..rows.len()).filter(|&at| order == RowOrder::Tree || is_leaf(at)).collect();
    let mut shown = Vec::new();
    // From below: the depth that the nearest shown row below asks its ancestors for.
    let mut needed = 0;
    for &at in candidates.iter().rev() {
        let (row, tree) = (&rows[at], order == RowOrder::Tree);
        let is_ancestor = tree && row.depth < needed;
        if is_ancestor || (tree && row.depth == 0) || !is_idle(row) {
            shown.push(at);
            needed = row.depth;
        }
    }
    shown.reverse();
    let idle = candidates.len() - shown.len();
    shown.sort_by(|&one, &other| order.compare(&rows[one].figures, &rows[other].figures));
    let depths: Vec<usize> = shown.iter().map(|&at| rows[at].depth).collect();
    let drawn = match order {
        RowOrder::Tree => branches(&depths),
        _ => vec![String::new(); shown.len()],
    };
    let row = |(at, branch): (usize, String)| ShownRow { branch, row: &rows[at] };
    ShownRows { rows: shown.into_iter().zip(drawn).map(row).collect(), idle }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(rows: &[(usize, &str, f64)]) -> DeviceInterval {
        let row = |&(depth, id, bps): &(usize, &str, f64)| QueueRow {
            depth,
            id: id.into(),
            figures: Figures { bps, p99_ns: (bps > 0.0).then_some(1), ..Figures::default() },
            ..QueueRow::default()
        };
        DeviceInterval { rows: rows.iter().map(row).collect(), ..DeviceInterval::default() }
    }

    fn text(shown: &ShownRows<'_>) -> Vec<String> {
        shown.rows.iter().map(|shown| format!("{}{}", shown.branch, shown.row.id)).collect()
    }

    /// HTB counts what inner classes send. Other kinds do not: a class stays if one below it does.
    const ROWS: [(usize, &str, f64); 9] = [
        (0, "htb 1:", 9.0),
        (1, "1:1", 0.0),
        (2, "1:10", 2.0),
        (2, "1:20", 0.0),
        (3, "1:21", 0.0),
        (2, "1:30", 7.0),
        (2, "1:40", 0.0),
        (1, "1:2", 0.0),
        (0, "clsact ffff:", 0.0),
    ];

    #[test]
    fn idle_rows_are_left_out_and_the_tree_is_drawn_without_them() {
        let interval = interval(&ROWS);
        let shown = shown_rows(&interval, RowOrder::Tree, |row| row.figures.bps == 0.0);
        assert_eq!(text(&shown), ["htb 1:", "└ 1:1", "  ├ 1:10", "  └ 1:30", "clsact ffff:"]);
        assert_eq!(shown.idle, 4);
        let all = shown_rows(&interval, RowOrder::Tree, |_| false);
        let expected = [
            "htb 1:",
            "├ 1:1",
            "│ ├ 1:10",
            "│ ├ 1:20",
            "│ │ └ 1:21",
            "│ ├ 1:30",
            "│ └ 1:40",
            "└ 1:2",
            "clsact ffff:",
        ];
        assert_eq!((text(&all), all.idle), (expected.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn other_orders_have_queues_only() {
        let interval = interval(&ROWS);
        let is_idle = |row: &QueueRow| row.figures.bps == 0.0;
        let shown = shown_rows(&interval, RowOrder::Throughput, is_idle);
        assert_eq!((text(&shown), shown.idle), (vec!["1:30".to_owned(), "1:10".to_owned()], 4));
        let shown = shown_rows(&interval, RowOrder::Delay, |_| false);
        assert_eq!(text(&shown), ["1:10", "1:30", "1:21", "1:40", "1:2", "clsact ffff:"]);
    }

    #[test]
    fn the_key_comes_round_to_the_tree() {
        let orders: Vec<RowOrder> =
            std::iter::successors(Some(RowOrder::Tree), |order| Some(order.next())).take(6).collect();
        assert_eq!(orders[5], RowOrder::Tree);
        assert!(orders[1..5].iter().all(|order| *order != RowOrder::Tree));
    }
}
