//! The queues of a device as nested boxes of text, which are readable on a phone.

use super::parts::{is_empty, prose};
use crate::chart::TreeBox;
use maud::{Markup, html};

/// The boxes, each with those below it inside. `label` says what they show.
pub(super) fn nested(label: &str, boxes: &[TreeBox]) -> Markup {
    html! { ul.tree aria-label=(label) { (below(boxes, None)) } }
}

/// The boxes of one parent. A parent comes before its children, so this ends.
fn below(boxes: &[TreeBox], parent: Option<usize>) -> Markup {
    let is_here = |at: usize, one: &TreeBox| one.parent == parent && parent.is_none_or(|parent| parent < at);
    html! {
        @for (at, one) in boxes.iter().enumerate().filter(|(at, one)| is_here(*at, one)) {
            @let within = below(boxes, Some(at));
            li {
                (boxed(one))
                @if !is_empty(&within) { ul { (within) } }
            }
        }
    }
}

fn boxed(one: &TreeBox) -> Markup {
    html! {
        div.node.dead[one.dead.is_some()] {
            @if let Some(colour) = one.colour { i.chip.{ "c" (colour) } {} }
            b { (one.name) }
            @if !one.aside.is_empty() { span.aside { (prose(&one.aside)) } }
            @for line in &one.lines { span { (prose(line)) } }
            @if let Some((used, guaranteed)) = one.load { (bar(used, guaranteed)) }
            @if let Some(why) = &one.dead { span.key.lost { "No packet reaches it: " (why) } }
            @for filter in &one.filters { span { "◂ " (filter) } }
        }
    }
}

/// The share of a ceiling that was used, and a stroke at the guaranteed one.
fn bar(used: f64, guaranteed: Option<f64>) -> Markup {
    let percent = |share: f64| format!("{:.1}%", share.clamp(0.0, 1.0) * 100.0);
    html! {
        i.load {
            i style={ "width:" (percent(used)) } {}
            @if let Some(share) = guaranteed { b style={ "left:" (percent(share)) } {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_inside_each_other() {
        let one = |name: &str, parent| TreeBox { name: name.into(), parent, ..TreeBox::default() };
        let load =
            TreeBox { load: Some((0.25, Some(2.0))), filters: vec!["a<b".into()], ..one("1:2", Some(0)) };
        let shown =
            nested("The \"tree\"", &[one("1:", None), one("1:1", Some(0)), one("1:11", Some(1)), load]).0;
        let expected = "<ul class=\"tree\" aria-label=\"The &quot;tree&quot;\">\
            <li><div class=\"node\"><b>1:</b></div><ul>\
            <li><div class=\"node\"><b>1:1</b></div><ul><li><div class=\"node\"><b>1:11</b></div></li></ul></li>\
            <li><div class=\"node\"><b>1:2</b><i class=\"load\"><i style=\"width:25.0%\"></i>\
            <b style=\"left:100.0%\"></b></i><span>◂ a&lt;b</span></div></li></ul></li></ul>";
        assert_eq!(shown, expected);
    }

    /// Boxes that name each other as parents are not followed.
    #[test]
    fn circles_end() {
        let one = |parent| TreeBox { parent: Some(parent), ..TreeBox::default() };
        assert_eq!(nested("", &[one(1), one(0)]).0, "<ul class=\"tree\" aria-label=\"\"></ul>");
    }
}
