//! The outcome of each packet, for people: a table by flow, and a picture.

use tidegate_packet::Time;
use tidegate_replay::recorded::{FlowAccount, RecordedEnd, RecordedLink, RecordedPackets};
use tidegate_report::chart::{self, PacketSpan, SpanEnd};
use tidegate_report::{Align, Table};

/// The most packets of a picture; more could not be distinguished.
const DRAWN: usize = 400;

/// A line for each flow: how many packets came, left, were lost, marked and overtaken, and how long they
/// waited.
pub(super) fn table(lives: &RecordedPackets) -> Table {
    use Align::{Left, Right};
    let figures = ["arrived", "left", "dropped", "marked", "overtaken", "mean wait", "longest"];
    let columns = [("flow", Left)].into_iter().chain(figures.map(|name| (name, Right)));
    let mut table = Table::new(columns);
    for (flow, name) in lives.flows.iter().enumerate() {
        let mut row = vec![name.clone()];
        row.extend(cells(&lives.account(flow)));
        table.row(row);
    }
    table
}

/// The packets as lines from arrival to departure, the first some hundred of them.
pub(super) fn picture(lives: &RecordedPackets, title: &str, link: &RecordedLink) -> chart::Drawing {
    let begin = lives.lives.first().map_or(0, |life| life.arrived.0);
    let ms = |time: Time| time.0.saturating_sub(begin) as f64 / 1e6;
    let drawn = lives.lives.iter().take(DRAWN).map(|life| PacketSpan {
        flow: life.flow,
        arrived: ms(life.arrived),
        end: match life.end {
            RecordedEnd::Left { at, marked } => {
                let takes = if link.rate > 0 { link.frame_time(life.len) as f64 / 1e6 } else { 0.0 };
                SpanEnd::Left { at: ms(at), takes, marked }
            }
            RecordedEnd::Dropped(at) => SpanEnd::Dropped(ms(at)),
            RecordedEnd::Waits => SpanEnd::Waits,
        },
    });
    let drawn: Vec<PacketSpan> = drawn.collect();
    let mut description = format!("{} packets of {} flows.", lives.lives.len(), lives.flows.len());
    if lives.lives.len() > DRAWN {
        description.push_str(&format!(" The first {DRAWN} are drawn."));
    }
    for (flow, name) in lives.flows.iter().enumerate() {
        let FlowAccount { arrived, left, dropped, longest, .. } = lives.account(flow);
        let longest = longest as f64 / 1e6;
        let text = format!(
            " {name}: {arrived} arrived, {left} left, {dropped} dropped, longest wait {longest:.1} ms."
        );
        description.push_str(&text);
    }
    chart::packets(title, &description, &lives.flows, &drawn)
}

fn cells(account: &FlowAccount) -> Vec<String> {
    let wait = |ns: f64| if account.left == 0 { String::new() } else { format!("{:.2} ms", ns / 1e6) };
    let mut cells: Vec<String> =
        [account.arrived, account.left, account.dropped, account.marked, account.overtaken]
            .map(|n| n.to_string())
            .into();
    cells.push(wait(account.waited as f64 / f64::from(account.left.max(1))));
    cells.push(wait(account.longest as f64));
    cells
}
