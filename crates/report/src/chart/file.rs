//! A drawing as a file that every program for SVG shows alike: without variables, and with a plot's marks in
//! their true places instead of stretched to them. (In a page and in a browser's own window,
//! [`alone`](super::alone) follows the reader's theme.)

use super::drawing::{AIR, Body, Drawing, EDGE, Margin, SERIES_STYLE, STYLE, WIDE, cut, escape, words};

/// Colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Theme {
    /// Dark on light, for print.
    #[default]
    Light,
    /// Light on dark.
    Dark,
}

/// Pixels above a plot for its title.
const HEADING: f64 = 26.0;
/// Pixels of a letter of a title, about.
const LETTER: f64 = 7.6;

/// An SVG document of a drawing with its title on it; a plot gets `width` pixels, what has its size keeps it.
pub fn file(drawing: &Drawing, width: f64, theme: Theme) -> String {
    let (width, height, around, content) = match &drawing.body {
        Body::Plot { height, margin, under, marks, over } => {
            let Margin { left, right, top, bottom } = margin;
            let inner = (width - left - right).max(1.0);
            let content = format!(
                "<g transform=\"translate({left} {})\">{under}{}{over}</g>",
                top + HEADING,
                in_place(marks, inner / WIDE)
            );
            let mut heading = String::new();
            words(
                &mut heading,
                EDGE,
                18.0,
                "strong",
                &cut(&drawing.title, ((width - 2.0 * EDGE) / LETTER) as usize),
            );
            (width, height + top + bottom + HEADING, 0.0, heading + &settled(&content, inner))
        }
        Body::Fixed { width, height, content } => {
            (width + 2.0 * AIR, height + 2.0 * AIR, AIR, content.clone())
        }
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart alone\" width=\"{width}\" \
        height=\"{height}\" \
         viewBox=\"{0} {0} {width} {height}\" \
         role=\"img\"><title>{1}</title><desc>{2}</desc><style>{3}</style>\
         <rect class=\"paper\" x=\"{0}\" y=\"{0}\" width=\"{width}\" height=\"{height}\"/>{content}</svg>\n",
        0.0 - around,
        escape(&drawing.title),
        escape(&drawing.description),
        style(theme)
    )
}

/// Plots below each other, `width` pixels wide, each with its title, as one drawing; what is no plot is left
/// out.
pub fn column(title: &str, description: &str, width: f64, drawings: &[Drawing]) -> Drawing {
    let (mut content, mut height) = (String::new(), 0.0);
    for drawing in drawings {
        let Body::Plot { height: of_plot, margin, under, marks, over } = &drawing.body else { continue };
        let Margin { left, right, top, bottom } = margin;
        let inner = (width - left - right).max(1.0);
        let most = ((width - EDGE) / LETTER) as usize;
        words(&mut content, EDGE, height + 14.0, "strong", &cut(&drawing.title, most));
        let plot = format!(
            "<g transform=\"translate({left} {})\">{under}{}{over}</g>",
            height + HEADING + top,
            in_place(marks, inner / WIDE)
        );
        // A line's class would draw its name's outline, too.
        let names = "<text class=\"s";
        let plot = plot.replace(names, "<text style=\"stroke:none\" class=\"s");
        content.push_str(&settled(&plot, inner));
        height += HEADING + top + of_plot + bottom;
    }
    let body = Body::Fixed { width, height, content };
    Drawing { title: title.to_owned(), description: description.to_owned(), body }
}

/// The style sheets with their variables replaced by the colours of a theme.
fn style(theme: Theme) -> String {
    let (light, rest) = STYLE.split_once("@media").unwrap_or((STYLE, ""));
    let (dark, rest) = rest.split_once("}}").unwrap_or(("", rest));
    let colours = if theme == Theme::Dark { dark } else { light };
    // The rules begin where the last block of colours has ended.
    let rules = rest.find(".chart{").map_or("", |at| &rest[at..]);
    let mut out = String::new();
    for (n, piece) in format!("{rules}{SERIES_STYLE}").split("var(").enumerate() {
        match piece.split_once(')') {
            Some((name, after)) if n > 0 => {
                out.push_str(variable(colours, name));
                out.push_str(after);
            }
            _ => out.push_str(piece),
        }
    }
    out
}

fn variable<'c>(colours: &'c str, name: &str) -> &'c str {
    let found = colours
        .split([';', '{', '}', '\n'])
        .find_map(|entry| entry.trim().strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or("currentColor")
}

/// Marks with every path's horizontal places times `by`.
fn in_place(marks: &str, by: f64) -> String {
    let mut out = String::with_capacity(marks.len() * 2);
    for (n, piece) in marks.split(" d=\"").enumerate() {
        match piece.split_once('"') {
            Some((path, after)) if n > 0 => {
                out.push_str(" d=\"");
                out.push_str(&stretched(path, by));
                out.push('"');
                out.push_str(after);
            }
            _ => out.push_str(piece),
        }
    }
    out
}

/// A path with its horizontal places times `by`. Paths of plots have the commands M, H, V, Z, l, h and v
/// only.
fn stretched(path: &str, by: f64) -> String {
    let mut out = String::with_capacity(path.len() * 2);
    let mut command = ' ';
    let mut horizontal = true;
    for token in Tokens(path) {
        match token.chars().next() {
            Some(c) if c.is_ascii_alphabetic() => {
                command = c;
                horizontal = c != 'v' && c != 'V';
                out.push(c);
            }
            _ => {
                let value: f64 = token.parse().unwrap_or(0.0);
                // A dot is a line of almost no length: it stays one.
                let moved = if horizontal && !(command == 'h' && value <= 0.1) { value * by } else { value };
                if !out.ends_with(|c: char| c.is_ascii_alphabetic()) {
                    out.push(' ');
                }
                out.push_str(&plain(moved));
                if command == 'M' || command == 'l' || command == 'L' {
                    horizontal = !horizontal;
                }
            }
        }
    }
    out
}

/// A number with two decimals at most.
fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The commands and numbers of a path: a number ends at a blank, a sign, a second point or a letter.
struct Tokens<'p>(&'p str);

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        self.0 = self.0.trim_start();
        let first = self.0.chars().next()?;
        let mut pointed = first == '.';
        let end = self.0.char_indices().skip(1).find(|(_, c)| {
            let more = c.is_ascii_digit() || (*c == '.' && !pointed);
            pointed |= *c == '.';
            !more
        });
        let end = if first.is_ascii_alphabetic() { 1 } else { end.map_or(self.0.len(), |(at, _)| at) };
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

/// Places in percent as pixels, and pieces at a place (`<svg x= y=>`) as moved groups: programs differ in
/// what they make of those.
fn settled(content: &str, inner: f64) -> String {
    let mut out = String::with_capacity(content.len());
    let mut open = false;
    for piece in content.split_inclusive('>') {
        let piece = percents(piece, inner);
        if let Some(at) = piece.strip_prefix("<svg x=\"").filter(|at| !at.contains("width=")) {
            let mut values = at.split('"');
            let (x, y) = (values.next().unwrap_or("0"), values.nth(1).unwrap_or("0"));
            out.push_str(&format!("<g transform=\"translate({x} {y})\">"));
            open = true;
        } else if open && piece.ends_with("</svg>") {
            out.push_str(&piece.replace("</svg>", "</g>"));
            open = false;
        } else {
            out.push_str(&piece);
        }
    }
    out
}

/// A tag with its attributes in percent made pixels. Only widths and horizontal places are ever given so.
fn percents(tag: &str, inner: f64) -> String {
    let mut out = String::with_capacity(tag.len());
    for (n, part) in tag.split('"').enumerate() {
        if n > 0 {
            out.push('"');
        }
        let share = part.strip_suffix('%').filter(|_| n % 2 == 1 && tag.starts_with('<'));
        match share.and_then(|share| share.parse::<f64>().ok()) {
            Some(share) => out.push_str(&plain(share / 100.0 * inner)),
            None => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_stretched_sideways_only() {
        let cases = [
            ("M0 240l.3 0l.4-240l9.3-.5", "M0 240l0.6 0l0.8 -240l18.6 -0.5"),
            ("M10 0v5M12 0v5", "M20 0v5M24 0v5"),
            ("M0 7H1000", "M0 7H2000"),
            ("M3 4h.1", "M6 4h0.1"),
            ("M1.5-2l1.5.5Z", "M3 -2l3 0.5Z"),
        ];
        for (path, expected) in cases {
            assert_eq!(stretched(path, 2.0), expected, "{path}");
        }
    }

    #[test]
    fn no_variables_are_left() {
        for theme in [Theme::Light, Theme::Dark] {
            let style = style(theme);
            assert!(
                !style.contains("var(") && !style.contains("currentColor") && !style.contains('@'),
                "{style}"
            );
            assert!(style.contains(".chart .s1{stroke:#") && style.contains(".chart .dash{"), "{style}");
        }
        assert_ne!(style(Theme::Light), style(Theme::Dark));
    }
}
