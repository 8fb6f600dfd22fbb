//! Packets on their way through a queue: when each arrived, how long it waited, when it left, and which were
//! dropped.

use super::drawing::{Body, COLOURS, Drawing, OTHERS, cut, short, words};
use super::scale::Scale;
use std::fmt::Write as _;

/// A packet's way.
#[derive(Clone, Debug)]
pub struct PacketSpan {
    /// Which flow it belongs to: a place in the list of their names.
    pub flow: usize,
    /// When it arrived, ms.
    pub arrived: f64,
    /// How it ended.
    pub end: SpanEnd,
}

/// How a packet's time in a queue ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpanEnd {
    /// It left the queue.
    Left {
        /// When, ms.
        at: f64,
        /// How long it occupied the link, ms.
        takes: f64,
        /// With a congestion mark that it did not have when it came.
        marked: bool,
    },
    /// It was dropped, at this time, ms.
    Dropped(f64),
    /// It still waits.
    Waits,
}

const LEFT: f64 = 150.0;
const WIDTH: f64 = 700.0;
const LANE: f64 = 20.0;
const QUEUE: f64 = 150.0;
const WIRE: f64 = 22.0;
/// The narrowest frame that is still seen, px.
const THIN: f64 = 1.6;

/// Lanes on which packets of each flow arrive, the wire below, and a line for each packet's wait between
/// them.
pub fn packets(title: &str, description: &str, flows: &[String], packets: &[PacketSpan]) -> Drawing {
    let span = packets.iter().map(PacketSpan::end).fold(0.0, f64::max).max(1e-3);
    let scale = Scale::exact(0.0, span);
    let x = |ms: f64| LEFT + WIDTH * scale.share(ms);
    let wire = 14.0 + LANE * flows.len() as f64 + QUEUE;
    let height = wire + WIRE + 44.0;
    let mut out = String::new();
    axis(&mut out, &scale, wire);
    for (n, name) in flows.iter().enumerate() {
        words(&mut out, LEFT - 12.0, lane(n) + 4.0, &format!("end f{}", colour(n)), &cut(name, 22));
        let _ = write!(out, "<path class=\"base\" d=\"M{LEFT} {y}h{WIDTH}\"/>", y = short(lane(n)));
    }
    words(&mut out, LEFT - 12.0, wire + WIRE / 2.0 + 4.0, "end strong", "the link");
    let _ =
        write!(out, "<rect class=\"track\" x=\"{LEFT}\" y=\"{wire}\" width=\"{WIDTH}\" height=\"{WIRE}\"/>");
    for packet in packets {
        one(&mut out, packet, &x, wire);
    }
    legend(&mut out, packets, wire + WIRE + 40.0);
    let body = Body::Fixed { width: LEFT + WIDTH + 20.0, height, content: out };
    Drawing { title: title.to_owned(), description: description.to_owned(), body }
}

impl PacketSpan {
    fn end(&self) -> f64 {
        match self.end {
            SpanEnd::Left { at, takes, .. } => at + takes,
            SpanEnd::Dropped(at) => at,
            SpanEnd::Waits => self.arrived,
        }
    }
}

/// The height on which a flow's packets arrive.
fn lane(flow: usize) -> f64 {
    14.0 + LANE * flow as f64
}

fn colour(flow: usize) -> usize {
    if flow < COLOURS { flow + 1 } else { OTHERS }
}

fn axis(out: &mut String, scale: &Scale, wire: f64) {
    for tick in scale.ticks(8) {
        let x = LEFT + WIDTH * scale.share(tick);
        let _ = write!(out, "<path class=\"grid\" d=\"M{} 6V{}\"/>", short(x), short(wire + WIRE + 4.0));
        words(out, x, wire + WIRE + 18.0, "mid", &format!("{} ms", (tick * 1000.0).round() / 1000.0));
    }
}

fn one(out: &mut String, packet: &PacketSpan, x: &impl Fn(f64) -> f64, wire: f64) {
    let (n, from, y) = (colour(packet.flow), x(packet.arrived), lane(packet.flow));
    let _ = write!(out, "<circle class=\"f{n}\" cx=\"{}\" cy=\"{}\" r=\"2.4\"/>", short(from), short(y));
    match packet.end {
        SpanEnd::Left { at, takes, marked } => {
            let (to, end) = (x(at), x(at + takes));
            let _ = write!(
                out,
                "<path class=\"mark thin s{n}\" opacity=\".55\" d=\"M{} {}L{} {wire}\"/>",
                short(from),
                short(y),
                short(to)
            );
            let width = (end - to - 0.6).max(THIN);
            let _ = write!(
                out,
                "<rect class=\"f{n}\" x=\"{}\" y=\"{wire}\" width=\"{}\" height=\"{WIRE}\"/>",
                short(to),
                short(width)
            );
            if marked {
                let (cx, cy) = (short(to + width / 2.0), short(wire + WIRE / 2.0));
                let _ = write!(out, "<circle class=\"paper\" cx=\"{cx}\" cy=\"{cy}\" r=\"2.6\"/>");
            }
        }
        SpanEnd::Dropped(at) => {
            // The further it had come, the lower it ends; refused at once it ends just below its lane.
            let (to, below) = (x(at), y + 14.0 + (QUEUE / 2.0) * f64::from(at > packet.arrived));
            let _ = write!(
                out,
                "<path class=\"mark thin s{n}\" opacity=\".55\" d=\"M{} {}L{} {}\"/>",
                short(from),
                short(y),
                short(to),
                short(below)
            );
            let _ = write!(
                out,
                "<path class=\"lost\" d=\"M{} {}l6 6m0 -6l-6 6\"/>",
                short(to - 3.0),
                short(below - 3.0)
            );
        }
        SpanEnd::Waits => {}
    }
}

/// What the signs mean that are there.
fn legend(out: &mut String, packets: &[PacketSpan], y: f64) {
    let mut texts = vec!["a line: a packet's wait"];
    if packets.iter().any(|packet| matches!(packet.end, SpanEnd::Dropped(_))) {
        texts.push("×: lost");
    }
    if packets.iter().any(|packet| matches!(packet.end, SpanEnd::Left { marked: true, .. })) {
        texts.push("white dot: marked (CE)");
    }
    if packets.iter().any(|packet| packet.end == SpanEnd::Waits) {
        texts.push("no line: it still waits at the end");
    }
    words(out, LEFT, y, "", &texts.join("   ·   "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fate_has_its_sign() {
        let fate = |at, marked| SpanEnd::Left { at, takes: 1.2, marked };
        let all =
            [fate(1.0, false), fate(2.2, true), SpanEnd::Dropped(0.0), SpanEnd::Dropped(3.0), SpanEnd::Waits];
        let drawn: Vec<PacketSpan> = all.map(|fate| PacketSpan { flow: 0, arrived: 0.0, end: fate }).into();
        let Body::Fixed { content, .. } = packets("t", "d", &["A & B".into()], &drawn).body else {
            panic!("no plot")
        };
        let count = |what: &str| content.matches(what).count();
        assert_eq!(
            (count("r=\"2.4\""), count("<rect class=\"f1\""), count("class=\"lost\""), count("r=\"2.6\"")),
            (5, 2, 2, 1)
        );
        for text in ["A &amp; B", "×: lost", "white dot", "still waits"] {
            assert!(content.contains(text), "{text}");
        }
    }
}
