//! Places in a row and the links between them, from left to right where there is room, else downwards: text
//! that stays readable on a phone.

use super::parts::prose;
use maud::{Markup, html};

/// A place that packets pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainPlace {
    /// What it is called.
    pub(crate) name: String,
    /// More about it, a line each.
    pub(crate) lines: Vec<String>,
    /// What the page is about.
    pub(crate) strong: bool,
}

/// What joins a place to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainLink {
    /// What it is called; may be empty.
    pub(crate) name: String,
    /// What it carries to the next place; may be empty.
    pub(crate) there: String,
    /// What it carries back.
    pub(crate) back: String,
    /// It is the slowest.
    pub(crate) strong: bool,
}

/// More places than these are below each other also where there is room beside.
const MOST_ACROSS: usize = 6;

/// A chain: one link fewer than places. `label` says what it shows.
pub(crate) fn chain(label: &str, places: &[ChainPlace], links: &[ChainLink]) -> Markup {
    html! {
        ol.chain.tall[places.len() > MOST_ACROSS] aria-label=(label) {
            @for (n, place) in places.iter().enumerate() {
                li.place.strong[place.strong] {
                    b { (place.name) }
                    @for line in place.lines.iter().filter(|line| !line.is_empty()) { span { (line) } }
                }
                @if let Some(link) = links.get(n).filter(|_| n + 1 < places.len()) { (wire(link)) }
            }
        }
    }
}

fn wire(link: &ChainLink) -> Markup {
    html! {
        li.wire.strong[link.strong] {
            @if !link.name.is_empty() { b { (link.name) } }
            // The style writes arrows; a reader of the text alone has the order.
            @if link.there == link.back {
                span.there.both[!link.there.is_empty()] { (prose(&link.there)) }
            } @else {
                span.there.ahead { (prose(&link.there)) }
                span.back { (prose(&link.back)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_links_alternate() {
        let place = |name: &str| ChainPlace { name: name.into(), ..ChainPlace::default() };
        let link = ChainLink { there: "1 Mbit/s, 5 ms".into(), back: "2 <b>".into(), ..ChainLink::default() };
        let shown = chain("A & B", &[place("a"), place("b")], &[link.clone(), link]).0;
        let expected = "<ol class=\"chain\" aria-label=\"A &amp; B\"><li class=\"place\"><b>a</b></li>\
            <li class=\"wire\"><span class=\"there ahead\">1\u{a0}Mbit/s, 5\u{a0}ms</span><span class=\"back\">2 &lt;b&gt;</span></li>\
            <li class=\"place\"><b>b</b></li></ol>";
        assert_eq!(shown, expected);
    }
}
