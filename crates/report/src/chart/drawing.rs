//! A picture in a page or in its own file, and what all charts write.

use super::compact::compact;
use std::fmt::Write as _;

/// Units of a plot's width; what is finer is not drawn.
pub const WIDE: f64 = 1000.0;
/// Pixels between the edge of a picture and the titles in it.
pub(super) const EDGE: f64 = 8.0;
/// Room around a picture in its own file that is drawn up to its edges.
pub(super) const AIR: f64 = 12.0;

/// Colours, light and dark, and how marks look. Part of every page and of every standalone drawing.
pub const STYLE: &str = include_str!("style.css");

/// How marks look that pages of experiments have besides; it comes after [`STYLE`].
pub const SERIES_STYLE: &str = include_str!("series.css");

/// Colours for things of a kind (classes): 1 to this; what is beyond shares [`OTHERS`].
pub const COLOURS: usize = 7;

/// The colour of what has none of its own.
pub const OTHERS: usize = COLOURS + 1;

/// A picture and what it shows in words.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(super) title: String,
    pub(super) description: String,
    pub(super) body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Stretches sideways.
    Plot { height: f64, margin: Margin, under: String, marks: String, over: String },
    /// Has its size in pixels.
    Fixed { width: f64, height: f64, content: String },
}

/// Room around a plot's marks, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// For the figures of the vertical axis.
    pub left: f64,
    /// For direct labels.
    pub right: f64,
    /// For the vertical axis's unit.
    pub top: f64,
    /// For the horizontal axis.
    pub bottom: f64,
}

impl Drawing {
    /// An `svg` element for a page that has [`STYLE`].
    pub fn inline(&self) -> String {
        let alternative = format!(
            "role=\"img\" aria-label=\"{}\"><desc>{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        match &self.body {
            Body::Plot { height, margin, .. } => {
                let Margin { left, right, top, bottom } = margin;
                let whole = height + top + bottom;
                let room = format!("style=\"padding:{top}px {right}px {bottom}px {left}px\"");
                let content = self.page_content();
                format!(
                    "<svg class=\"chart plot\" width=\"100%\" height=\"{whole}\" {room} \
                    {alternative}{content}</svg>"
                )
            }
            Body::Fixed { width, height, content } => {
                format!(
                    "<svg class=\"chart fixed\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
                    {height}\" {alternative}{content}</svg>"
                )
            }
        }
    }

    /// A document of its own, with its colours; a plot gets `width` pixels, what has its size keeps it.
    pub fn alone(&self, width: f64) -> String {
        // What is drawn up to its edges gets air around it.
        let (width, height, around, content) = match &self.body {
            Body::Plot { height, margin, .. } => {
                let Margin { left, right, top, bottom } = margin;
                let inner = (width - left - right).max(1.0);
                let content = format!(
                    "<svg x=\"{left}\" y=\"{top}\" width=\"{inner}\" height=\"{height}\" \
                    overflow=\"visible\">{}</svg>",
                    self.content()
                );
                (width, height + top + bottom, 0.0, content)
            }
            Body::Fixed { width, height, content } => {
                (width + 2.0 * AIR, height + 2.0 * AIR, AIR, content.clone())
            }
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart alone\" width=\"{width}\" \
            height=\"{height}\" \
             viewBox=\"{0} {0} {width} {height}\" \
             role=\"img\"><title>{1}</title><desc>{2}</desc><style>{STYLE}</style>\
             <rect class=\"paper\" x=\"{0}\" y=\"{0}\" width=\"100%\" height=\"100%\"/>{content}</svg>\n",
            0.0 - around,
            escape(&self.title),
            escape(&self.description)
        )
    }

    /// What the picture is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The same as [`Drawing::content`], shorter: see [`compact`].
    fn page_content(&self) -> String {
        let Body::Plot { height, under, marks, over, .. } = &self.body else { return String::new() };
        let (under, marks) = compact(under, marks, (WIDE, *height));
        format!(
            "{under}<svg class=\"marks\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {WIDE} {height}\" \
             preserveAspectRatio=\"none\">{marks}</svg>{over}"
        )
    }

    /// A plot's grid, marks and words, as wide as their container.
    pub(super) fn content(&self) -> String {
        let Body::Plot { height, under, marks, over, .. } = &self.body else { return String::new() };
        format!(
            "{under}<svg class=\"marks\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {WIDE} {height}\" \
             preserveAspectRatio=\"none\">{marks}</svg>{over}"
        )
    }
}

/// A drawing as a file of its own, `width` pixels wide.
pub fn alone(drawing: &Drawing, width: f64) -> String {
    drawing.alone(width)
}

/// Text for markup: what comes from a script must not become markup, nor control characters.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push(c),
            // Not valid in XML, invisible, or turning the text after it round.
            c if !tidegate_text::is_visible(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate: a tenth of a pixel is enough.
pub(super) fn short(value: f64) -> String {
    let mut text = format!("{value:.1}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    if text == "-0" { "0".to_owned() } else { text }
}

/// A text at a place in pixels.
pub(super) fn words(out: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let _ =
        write!(out, "<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>", short(x), short(y), escape(text));
}

/// At most so many characters, an ellipsis where something is missing.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
