//! The objects of a PDF in an order that follows from its content alone, so that the same drawing is the same
//! file to the byte.
//!
//! `svg2pdf` writes fonts and resources in the order of a hash map, which is another one each time. Here the
//! entries of each dictionary that are references are sorted by name, objects are numbered in the order in
//! which they are reached from the root, and written in that order (ISO 32000-1, 7.3 and 7.5).

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// An object: its dictionary as text, and what follows it (a stream's bytes).
struct PdfObject<'p> {
    head: String,
    rest: &'p [u8],
}

/// The same file in that order; `None`: it is not as `pdf-writer` writes.
pub(super) fn in_order(bytes: &[u8]) -> Option<Vec<u8>> {
    let (objects, first, trailer) = parsed(bytes)?;
    let mut order: Vec<u32> = Vec::new();
    let mut waiting: Vec<u32> = references(&trailer).map(|(_, number)| number).collect();
    waiting.reverse();
    while let Some(number) = waiting.pop() {
        if !order.contains(&number) {
            order.push(number);
            let inner: Vec<u32> = references(&objects.get(&number)?.head).map(|(_, number)| number).collect();
            waiting.extend(inner.into_iter().rev());
        }
    }
    let new: BTreeMap<u32, usize> = order.iter().copied().zip(1..).collect();
    let mut out = bytes.get(..first)?.to_vec();
    let mut offsets = Vec::new();
    for (old, number) in order.iter().zip(1..) {
        let object = objects.get(old)?;
        offsets.push(out.len());
        out.extend_from_slice(format!("{number} 0 obj\n{}", renumbered(&object.head, &new)?).as_bytes());
        out.extend_from_slice(object.rest);
    }
    let table = out.len();
    let size = offsets.len() + 1;
    let mut end = format!("xref\n0 {size}\n0000000000 65535 f\r\n");
    for offset in offsets {
        let _ = write!(end, "{offset:010} 00000 n\r\n");
    }
    // The largest number of all is one less than before where an object was not reached.
    let trailer: Vec<String> = renumbered(&trailer, &new)?
        .lines()
        .map(|line| {
            if line.trim_start().starts_with("/Size ") { format!("  /Size {size}") } else { line.to_owned() }
        })
        .collect();
    let _ = write!(end, "{}\nstartxref\n{table}\n%%EOF", trailer.join("\n"));
    out.extend_from_slice(end.as_bytes());
    Some(out)
}

/// All objects by number, where the first begins, and the trailer.
fn parsed(bytes: &[u8]) -> Option<(BTreeMap<u32, PdfObject<'_>>, usize, String)> {
    const ENTRY: usize = 20;
    let tail = bytes.len().saturating_sub(64);
    let end = String::from_utf8_lossy(&bytes[tail..]).into_owned();
    let table: usize = end.rsplit_once("startxref\n")?.1.lines().next()?.parse().ok()?;
    let rest = bytes.get(table..)?.strip_prefix(b"xref\n0 ")?;
    let line = rest.iter().position(|byte| *byte == b'\n')?;
    let count: usize = std::str::from_utf8(&rest[..line]).ok()?.parse().ok()?;
    let entries = rest.get(line + 1..)?.get(..count.checked_mul(ENTRY)?)?;
    let trailer = rest.get(line + 1 + entries.len()..)?;
    let trailer = std::str::from_utf8(trailer).ok()?.split_once("\nstartxref\n")?.0.to_owned();
    let mut starts = Vec::new();
    for entry in entries.chunks_exact(ENTRY).filter(|entry| entry[17] == b'n') {
        starts.push(std::str::from_utf8(&entry[..10]).ok()?.parse::<usize>().ok()?);
    }
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([table]);
    let mut objects = BTreeMap::new();
    for (start, end) in starts.iter().zip(ends) {
        let object = bytes.get(*start..end)?;
        let line = object.iter().position(|byte| *byte == b'\n')?;
        let number = std::str::from_utf8(&object[..line]).ok()?.strip_suffix(" 0 obj")?.parse().ok()?;
        let body = &object[line + 1..];
        let stream = body.windows(8).position(|piece| piece == b"\nstream\n").unwrap_or(body.len());
        let head = sorted(std::str::from_utf8(&body[..stream]).ok()?);
        objects.insert(number, PdfObject { head, rest: &body[stream..] });
    }
    Some((objects, *starts.first()?, trailer))
}

/// A dictionary whose neighbouring entries are sorted if they are references: which come first means nothing.
fn sorted(head: &str) -> String {
    let is_entry = |line: &&str| {
        let line = line.trim_start();
        line.starts_with('/') && line.ends_with(" 0 R") && line.split(' ').count() == 4
    };
    let lines: Vec<&str> = head.split('\n').collect();
    let mut out: Vec<&str> = Vec::new();
    for run in lines.chunk_by(|a, b| is_entry(a) && is_entry(b)) {
        let mut run = run.to_vec();
        if run.len() > 1 {
            run.sort_unstable();
        }
        out.extend(run);
    }
    out.join("\n")
}

/// Where references begin and which objects they name: ` 12 0 R`.
fn references(text: &str) -> impl Iterator<Item = (usize, u32)> {
    text.match_indices(" 0 R").filter_map(|(at, _)| {
        let is_end = text[at + 4..].chars().next().is_none_or(|next| !next.is_ascii_alphanumeric());
        let begin = text[..at].rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |before| before + 1);
        Some((begin, text[begin..at].parse().ok().filter(|_| is_end)?))
    })
}

/// Text with other numbers in its references.
fn renumbered(text: &str, new: &BTreeMap<u32, usize>) -> Option<String> {
    let (mut out, mut from) = (String::new(), 0);
    for (begin, number) in references(text) {
        let _ = write!(out, "{}{}", &text[from..begin], new.get(&number)?);
        from = begin + text[begin..].find(' ')?;
    }
    out.push_str(&text[from..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two files with the same objects, in two orders and with two numberings.
    fn file(objects: &[(u32, &str)], root: u32) -> Vec<u8> {
        let (mut out, mut offsets) = (b"%PDF-1.7\n%\x80\x80\n\n".to_vec(), BTreeMap::new());
        for (number, body) in objects {
            offsets.insert(*number, out.len());
            out.extend_from_slice(format!("{number} 0 obj\n{body}\nendobj\n\n").as_bytes());
        }
        let table = out.len();
        let mut end = format!("xref\n0 {}\n0000000000 65535 f\r\n", objects.len() + 1);
        offsets.values().for_each(|offset| end.push_str(&format!("{offset:010} 00000 n\r\n")));
        let size = objects.len() + 1;
        out.extend_from_slice(
            format!("{end}trailer\n<<\n  /Size {size}\n  /Root {root} 0 R\n>>\nstartxref\n{table}\n%%EOF")
                .as_bytes(),
        );
        out
    }

    #[test]
    fn the_order_follows_from_the_content() {
        let stream = "<<\n  /Length 12\n>>\nstream\n/x 9 0 R\n9 0\nendstream";
        let one = file(
            &[
                (1, "<<\n  /Font <<\n    /f0 2 0 R\n    /f1 3 0 R\n  >>\n  /Kids [4 0 R]\n>>"),
                (2, "<<\n  /Name /A\n>>"),
                (3, "<<\n  /Name /B\n>>"),
                (4, stream),
            ],
            1,
        );
        let other = file(
            &[
                (4, "<<\n  /Font <<\n    /f1 2 0 R\n    /f0 1 0 R\n  >>\n  /Kids [3 0 R]\n>>"),
                (3, stream),
                (1, "<<\n  /Name /A\n>>"),
                (2, "<<\n  /Name /B\n>>"),
            ],
            4,
        );
        assert_eq!(in_order(&one).as_deref(), Some(&one[..]));
        assert_eq!(in_order(&other).as_deref(), Some(&one[..]));
        for broken in [&b""[..], b"startxref\n9\n%%EOF", &one[..one.len() - 30], &other[40..]] {
            assert_eq!(in_order(broken), None);
        }
    }
}
