//! Shorter markup for charts in pages: most of a page is paths and grids, of which a browser needs less than
//! a file that is opened in a drawing program.

use super::thin::thin;
use std::fmt::Write as _;

/// A chart's background and marks, shortened: what lies behind the marks, the grid among the marks, and the
/// marks. `wide` and `height`: the units of the marks.
pub(super) fn compact(under: &str, marks: &str, (wide, height): (f64, f64)) -> (String, String) {
    let (under, grid) = without_grid(under, (wide, height));
    (with_grouped_figures(&under), grid + &with_short_paths(marks, wide))
}

/// Puts the figures of each axis into a group that has what they share.
fn with_grouped_figures(under: &str) -> String {
    // Left of the plot, their baseline .35 of 12 pixels below the line: the style of pages moves them there.
    let upright = |rest: &str| {
        let (y, rest) = rest.split_once("\" dy=\".35em\">")?;
        Some((String::new(), format!(" y=\"{y}\""), rest.to_owned()))
    };
    let across = |rest: &str| {
        let (x, rest) = rest.split_once("\" y=\"")?;
        let (y, rest) = rest.split_once("\">")?;
        let x = if x == "0%" { String::new() } else { format!(" x=\"{x}\"") };
        Some((y.to_owned(), x, rest.to_owned()))
    };
    let (under, upright) = grouped(under, "<text class=\"end\" x=\"-8\" y=\"", upright);
    let (under, across) = grouped(&under, "<text class=\"mid\" x=\"", across);
    let mut out = under;
    for (_, texts) in upright {
        let _ = write!(out, "<g class=\"upright\">{texts}</g>");
    }
    for (y, texts) in across {
        let _ = write!(out, "<g class=\"mid\" transform=\"translate(0 {y})\">{texts}</g>");
    }
    out
}

/// Takes texts that begin so out of markup, and joins those with the same key. `read` splits what follows the
/// beginning into the key, the attributes that stay, and the content with all that follows.
fn grouped(
    markup: &str,
    beginning: &str,
    read: impl Fn(&str) -> Option<(String, String, String)>,
) -> (String, Vec<(String, String)>) {
    let mut pieces = markup.split(beginning);
    let mut left = pieces.next().unwrap_or_default().to_owned();
    let mut groups: Vec<(String, String)> = Vec::new();
    for piece in pieces {
        let found = read(piece)
            .and_then(|(key, kept, rest)| {
                let (content, after) = rest.split_once("</text>")?;
                Some((key, format!("<text{kept}>{content}</text>"), after.to_owned()))
            })
            // Its own closing tag comes first.
            .filter(|_| piece.find('<').is_some_and(|at| piece[at..].starts_with("</text>")));
        match found {
            Some((key, text, after)) => {
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, texts)) => *texts += &text,
                    None => groups.push((key, text)),
                }
                left += &after;
            }
            None => {
                left += beginning;
                left += piece;
            }
        }
    }
    (left, groups)
}

const GRID: &str = "<line class=\"grid\" ";

/// Takes grid lines out of a background; returns what is left, and the lines as one path in the marks' units.
fn without_grid(under: &str, (wide, height): (f64, f64)) -> (String, String) {
    let (mut left, mut path, mut rest) = (String::with_capacity(under.len()), String::new(), under);
    while let Some((before, after)) = rest.split_once(GRID) {
        left.push_str(before);
        let Some((line, after)) = after.split_once("/>") else {
            left.push_str(GRID);
            rest = after;
            continue;
        };
        rest = after;
        let value = |name: &str| {
            let (_, after) = line.split_once(&format!("{name}=\""))?;
            after.split_once('"')?.0.trim_end_matches('%').parse::<f64>().ok()
        };
        let _ = match (value("y1"), value("x1")) {
            (Some(y), _) => write!(path, "M0 {y}h{wide}"),
            (None, Some(percent)) => write!(path, "M{} 0v{height}", (percent * wide / 100.0).round()),
            (None, None) => write!(left, "{GRID}{line}/>"),
        };
    }
    left.push_str(rest);
    let grid = if path.is_empty() { path } else { format!("<path class=\"grid\" d=\"{path}\"/>") };
    (left, grid)
}

/// Markup with each path shortened.
fn with_short_paths(marks: &str, wide: f64) -> String {
    let mut pieces = marks.split(" d=\"");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (path, after) = piece.split_once('"').unwrap_or((piece, ""));
        // The edge of an area below a line is covered by the line.
        let is_below = out.rsplit_once('<').is_some_and(|(_, tag)| tag.contains("class=\"fill-"));
        let shorter = short_path(path, (wide, if is_below { COLUMNS / 2 } else { COLUMNS }));
        let _ = write!(out, " d=\"{shorter}\"{after}");
    }
    out
}

/// A path with whole units across and half pixels down, and without points that lie on the way.
fn short_path(path: &str, within: (f64, usize)) -> String {
    let mut out = String::with_capacity(path.len());
    for piece in path.split_inclusive('M').map(|piece| piece.trim_end_matches('M')).filter(|p| !p.is_empty())
    {
        match points(piece.trim_end_matches('Z')) {
            Some(points) if points.len() > 1 => write_points(&mut out, &thinned(&points, within)),
            // A dot, or what is no chain of points.
            _ => {
                out.push('M');
                out.push_str(piece.trim_end_matches('Z'));
            }
        }
        if piece.ends_with('Z') {
            out.push('Z');
        }
    }
    out
}

/// Columns that a long path is thinned to: a page's plot has a few pixels for each.
const COLUMNS: usize = 100;

/// A path of many points with fewer, looking the same.
fn thinned(points: &[(i64, i64)], (wide, columns): (f64, usize)) -> Vec<(i64, i64)> {
    let placed: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x as f64, y as f64)).collect();
    thin(&placed, wide, columns).into_iter().map(|(x, y)| (x as i64, y as i64)).collect()
}

/// The points of a piece of a path, `X Yl…`: units across, tenths down, in halves of ten; `None`: it has
/// other commands.
fn points(piece: &str) -> Option<Vec<(i64, i64)>> {
    let mut points = Vec::new();
    let (mut x, mut y) = (0, 0);
    for pair in piece.split('l') {
        let (across, down) = pair_of(pair)?;
        (x, y) = (x + across, y + down);
        // The same everywhere: neighbours keep their order.
        points.push(((x + 5).div_euclid(10), (y + 2).div_euclid(5) * 5));
    }
    Some(points)
}

/// Two numbers as the plots write them, in tenths.
fn pair_of(text: &str) -> Option<(i64, i64)> {
    let split = text.char_indices().skip(1).find(|(_, c)| matches!(c, ' ' | '-'))?.0;
    let tenths = |text: &str| {
        let value: f64 = text.trim_start().parse().ok()?;
        Some((value * 10.0).round() as i64)
    };
    Some((tenths(&text[..split])?, tenths(&text[split..])?))
}

fn write_points(out: &mut String, points: &[(i64, i64)]) {
    let mut corners: Vec<(i64, i64)> = Vec::with_capacity(points.len());
    for &point in points {
        if corners.last() == Some(&point) {
            continue;
        }
        // A point between two others on an upright or level line is not needed.
        if let [.., first, middle] = corners[..] {
            let between = |a: i64, b: i64, c: i64| (a..=c).contains(&b) || (c..=a).contains(&b);
            let level = first.1 == middle.1 && middle.1 == point.1 && between(first.0, middle.0, point.0);
            let upright = first.0 == middle.0 && middle.0 == point.0 && between(first.1, middle.1, point.1);
            if level || upright {
                corners.pop();
            }
        }
        corners.push(point);
    }
    let (mut before, mut command) = (None, ' ');
    for (x, y) in corners {
        let Some((x0, y0)) = before.replace((x, y)) else {
            out.push('M');
            number(out, x * 10);
            number(out, y);
            continue;
        };
        let (dx, dy) = ((x - x0) * 10, y - y0);
        let (next, values) = match (dx, dy) {
            (dx, 0) => ('h', [Some(dx), None]),
            (0, dy) => ('v', [Some(dy), None]),
            (dx, dy) => ('l', [Some(dx), Some(dy)]),
        };
        if next != command {
            out.push(next);
            command = next;
        }
        values.into_iter().flatten().for_each(|value| number(out, value));
    }
}

/// Tenths as SVG reads them, separated from the number before.
pub(super) fn number(path: &mut String, tenths: i64) {
    if tenths < 0 {
        path.push('-');
    } else if path.ends_with(|c: char| c.is_ascii_digit()) {
        path.push(' ');
    }
    let (whole, part) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
    let _ = match (whole, part) {
        (whole, 0) => write!(path, "{whole}"),
        (0, part) => write!(path, ".{part}"),
        (whole, part) => write!(path, "{whole}.{part}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_and_upright_pieces_are_short() {
        let stairs = "M0 92l47.6 0l0-.4l47.6 0l0 0l47.7 0l0 .4l47.6 0Z";
        assert_eq!(short_path(stairs, (1000.0, COLUMNS)), "M0 92h48v-.5h95v.5h48Z");
        let line = "M23.8 59.3l9.5-.3l9.6 .2l9.5 0M500 1l10 10";
        assert_eq!(short_path(line, (1000.0, COLUMNS)), "M24 59.5l9-.5h19M500 1l10 10");
    }

    /// A line of almost no length with round ends is a dot: rounding must not remove it.
    #[test]
    fn dots_and_strokes_are_kept() {
        for path in ["M5.3 6h.1", "M4 0v7M8 0v7", "M0 12H1000", "M1 2"] {
            assert_eq!(short_path(path, (1000.0, COLUMNS)), path);
        }
    }

    #[test]
    fn there_and_back_again_keeps_the_turn() {
        assert_eq!(short_path("M0 0l10 0l20 0l-5 0l0 10l0-10", (1000.0, COLUMNS)), "M0 0h30-5v10-10");
    }

    #[test]
    fn grids_are_one_path() {
        let under = "<rect/><line class=\"grid\" x2=\"100%\" y1=\"150\" y2=\"150\"/><text>0</text>\
            <line class=\"grid\" x1=\"15.4%\" x2=\"15.4%\" y2=\"150\"/><line class=\"base\"/>";
        let (left, marks) = compact(under, "<path d=\"M0 0l10 0\"/>", (1000.0, 150.0));
        assert_eq!(left, "<rect/><text>0</text><line class=\"base\"/>");
        assert_eq!(marks, "<path class=\"grid\" d=\"M0 150h1000M154 0v150\"/><path d=\"M0 0h10\"/>");
    }

    #[test]
    fn figures_of_an_axis_are_a_group() {
        let under = "<rect/><text class=\"end\" x=\"-8\" y=\"150\" dy=\".35em\">0</text>\
            <text class=\"end\" x=\"-8\" y=\"-11\">ms</text>\
            <text class=\"end\" x=\"-8\" y=\"9\" dy=\".35em\">10</text>\
            <text class=\"mid\" x=\"0%\" y=\"166\">0</text><text class=\"mid\" x=\"50%\" y=\"166\">1 s</text>";
        let expected = "<rect/><text class=\"end\" x=\"-8\" y=\"-11\">ms</text>\
            <g class=\"upright\"><text y=\"150\">0</text><text y=\"9\">10</text></g>\
            <g class=\"mid\" transform=\"translate(0 166)\"><text>0</text><text x=\"50%\">1 s</text></g>";
        assert_eq!(with_grouped_figures(under), expected);
    }
}
