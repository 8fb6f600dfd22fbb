//! What became of each packet, for people: a table by flow, and a picture.

use super::files::Link;
use std::collections::HashMap;
use tidegate_packet::Time;
use tidegate_report::chart::{self, Fate, Packet};
use tidegate_report::{Align, Table};

/// Packets that a picture holds; more would not be told apart.
const DRAWN: usize = 400;

/// The packets of a run.
#[derive(Default)]
pub(super) struct Lives {
    /// Names, in the order of first arrival.
    flows: Vec<String>,
    lives: Vec<Life>,
    /// Where a packet that still waits stands, by its number.
    waiting: HashMap<u32, usize>,
    /// In the order in which they left.
    left: Vec<usize>,
}

struct Life {
    flow: usize,
    arrived: Time,
    len: u32,
    dsfield: u8,
    end: End,
}

enum End {
    Waits,
    Left { at: Time, marked: bool },
    Dropped(Time),
}

/// The bits of ECN, and what they are when congestion was met.
const ECN: u8 = 3;

impl Lives {
    pub(super) fn arrived(&mut self, flow: &str, ident: u32, len: u32, dsfield: u8, now: Time) {
        let flow = self.flows.iter().position(|name| name == flow).unwrap_or_else(|| {
            self.flows.push(flow.to_owned());
            self.flows.len() - 1
        });
        self.waiting.insert(ident, self.lives.len());
        self.lives.push(Life { flow, arrived: now, len, dsfield, end: End::Waits });
    }

    pub(super) fn left(&mut self, ident: u32, dsfield: u8, now: Time) {
        if let Some(at) = self.waiting.remove(&ident) {
            let life = &mut self.lives[at];
            life.end = End::Left { at: now, marked: dsfield & ECN == ECN && life.dsfield & ECN != ECN };
            self.left.push(at);
        }
    }

    pub(super) fn dropped(&mut self, ident: u32, now: Time) {
        if let Some(at) = self.waiting.remove(&ident) {
            self.lives[at].end = End::Dropped(now);
        }
    }

    /// A line for each flow: how many packets came, left, were lost, marked and overtaken, and how long they waited.
    pub(super) fn table(&self) -> Table {
        use Align::{Left, Right};
        let figures = ["arrived", "left", "dropped", "marked", "overtaken", "mean wait", "longest"];
        let columns = [("flow", Left)].into_iter().chain(figures.map(|name| (name, Right)));
        let mut table = Table::new(columns);
        for (flow, name) in self.flows.iter().enumerate() {
            let mut row = vec![name.clone()];
            row.extend(self.account(flow).cells());
            table.row(row);
        }
        table
    }

    fn account(&self, flow: usize) -> Account {
        let mut account = Account { overtaken: self.overtaken(flow), ..Account::default() };
        for life in self.lives.iter().filter(|life| life.flow == flow) {
            account.arrived += 1;
            match life.end {
                End::Left { at, marked } => {
                    let wait = at.0 - life.arrived.0;
                    account.left += 1;
                    account.marked += u32::from(marked);
                    account.waited += wait;
                    account.longest = account.longest.max(wait);
                }
                End::Dropped(_) => account.dropped += 1,
                End::Waits => {}
            }
        }
        account
    }

    /// Packets of a flow that left after one which had come later.
    fn overtaken(&self, flow: usize) -> u32 {
        let (mut latest, mut count) = (0, 0);
        for at in self.left.iter().filter(|at| self.lives[**at].flow == flow) {
            count += u32::from(*at < latest);
            latest = latest.max(*at);
        }
        count
    }

    /// The packets as lines from arrival to departure, the first some hundred of them.
    pub(super) fn picture(&self, title: &str, link: &Link) -> chart::Drawing {
        let begin = self.lives.first().map_or(0, |life| life.arrived.0);
        let ms = |time: Time| time.0.saturating_sub(begin) as f64 / 1e6;
        let drawn = self.lives.iter().take(DRAWN).map(|life| Packet {
            flow: life.flow,
            arrived: ms(life.arrived),
            fate: match life.end {
                End::Left { at, marked } => {
                    let takes = if link.rate > 0 { link.frame_time(life.len) as f64 / 1e6 } else { 0.0 };
                    Fate::Left { at: ms(at), takes, marked }
                }
                End::Dropped(at) => Fate::Dropped(ms(at)),
                End::Waits => Fate::Waits,
            },
        });
        let drawn: Vec<Packet> = drawn.collect();
        let mut description = format!("{} packets of {} flows.", self.lives.len(), self.flows.len());
        if self.lives.len() > DRAWN {
            description.push_str(&format!(" The first {DRAWN} are drawn."));
        }
        for (flow, name) in self.flows.iter().enumerate() {
            let Account { arrived, left, dropped, longest, .. } = self.account(flow);
            let longest = longest as f64 / 1e6;
            let told =
                format!(" {name}: {arrived} arrived, {left} left, {dropped} lost, longest wait {longest:.1} ms.");
            description.push_str(&told);
        }
        chart::packets(title, &description, &self.flows, &drawn)
    }
}

/// A flow's figures; times in ns.
#[derive(Default)]
struct Account {
    arrived: u32,
    left: u32,
    dropped: u32,
    marked: u32,
    overtaken: u32,
    waited: u64,
    longest: u64,
}

impl Account {
    fn cells(&self) -> Vec<String> {
        let wait = |ns: f64| if self.left == 0 { String::new() } else { format!("{:.2} ms", ns / 1e6) };
        let mut cells: Vec<String> =
            [self.arrived, self.left, self.dropped, self.marked, self.overtaken].map(|n| n.to_string()).into();
        cells.push(wait(self.waited as f64 / f64::from(self.left.max(1))));
        cells.push(wait(self.longest as f64));
        cells
    }
}
