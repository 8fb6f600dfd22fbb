//! A file of a crate with its changes in it, each behind the switch.
//!
//! `fn f() -> u8 { 1 + 2 }` with one change becomes `fn f() -> u8 { match ::tidegate_mutant_switch::on(0) { 7
//! => { 1 - 2 } _ => { 1 + 2 } } }`, with line breaks between.

use super::list::{Mutant, SourcePosition, Span};
use crate::walls::code_only;

/// A function's number: by it a test's reach is recorded.
pub(super) type FunctionNumber = u32;

/// Lines of a rewritten file that a compiler's error may be in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arm {
    /// The first line and the last, from 1.
    pub(super) lines: (usize, usize),
    /// The change that is there; where the original stands, all changes of the function.
    pub(super) mutants: Vec<u32>,
    /// Whether it is the original.
    pub(super) is_original: bool,
}

/// A rewritten file.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    pub(super) text: String,
    pub(super) arms: Vec<Arm>,
    /// The function of each change.
    pub(super) functions: Vec<(u32, FunctionNumber)>,
    /// Changes that are in no function's body.
    pub(super) outside: Vec<u32>,
}

/// A function with changes.
struct Function<'m> {
    span: Span,
    /// Inside its braces, in characters.
    body: (usize, usize),
    mutants: Vec<&'m Mutant>,
}

/// The file with the changes. `next` is the number of the next function.
pub(super) fn rewrite(text: &str, mutants: &[&Mutant], next: &mut FunctionNumber) -> Rewritten {
    let source = Source::new(text);
    let mut functions: Vec<Function<'_>> = Vec::new();
    let mut rewritten = Rewritten::default();
    for mutant in mutants {
        let body = mutant.function.and_then(|span| Some((span, source.body(span)?)));
        let Some((span, body)) = body.filter(|(_, body)| source.is_within(mutant.span, *body)) else {
            rewritten.outside.push(mutant.number);
            continue;
        };
        match functions.iter_mut().find(|known| known.span == span) {
            Some(known) => known.mutants.push(mutant),
            None => functions.push(Function { span, body, mutants: vec![mutant] }),
        }
    }
    functions.sort_by_key(|function| function.body);
    let mut writer = Writer { source: &source, lines: 1, next, out: &mut rewritten };
    writer.part((0, source.letters.len()), &functions);
    rewritten
}

/// A file by characters.
struct Source {
    letters: Vec<char>,
    /// The same without comments and strings.
    code: Vec<char>,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Source {
    fn new(text: &str) -> Source {
        let letters: Vec<char> = text.chars().collect();
        let breaks = letters.iter().enumerate().filter(|(_, letter)| **letter == '\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Source { code: code_only(text).chars().collect(), lines, letters }
    }

    fn at(&self, place: SourcePosition) -> Option<usize> {
        Some(self.lines.get(place.line.checked_sub(1)?)? + place.column.checked_sub(1)?)
    }

    /// What is between a function's braces.
    fn body(&self, function: Span) -> Option<(usize, usize)> {
        let (from, to) = (self.at(function.from)?, self.at(function.to)?);
        let mut depth = 0;
        let code = self.code.get(from..to)?;
        let open = code.iter().position(|letter| {
            match letter {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                _ => {}
            }
            *letter == '{' && depth == 0
        })?;
        (code.last() == Some(&'}')).then_some((from + open + 1, to - 1))
    }

    fn is_within(&self, span: Span, (open, close): (usize, usize)) -> bool {
        self.at(span.from).is_some_and(|from| open <= from) && self.at(span.to).is_some_and(|to| to <= close)
    }
}

struct Writer<'w> {
    source: &'w Source,
    lines: usize,
    next: &'w mut FunctionNumber,
    out: &'w mut Rewritten,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.lines += text.matches('\n').count();
        self.out.text.push_str(text);
    }

    fn copy(&mut self, (from, to): (usize, usize)) {
        let text: String = self.source.letters[from..to].iter().collect();
        self.push(&text);
    }

    /// A part of the file, with the functions that begin in it.
    fn part(&mut self, (from, to): (usize, usize), functions: &[Function<'_>]) {
        let mut at = from;
        let mut rest = functions;
        while let [function, others @ ..] = rest {
            let (open, close) = function.body;
            let inner = others.iter().take_while(|other| other.body.0 < close).count();
            self.copy((at, open));
            self.function(function, &others[..inner]);
            (at, rest) = (close, &others[inner..]);
        }
        self.copy((at, to));
    }

    fn function(&mut self, function: &Function<'_>, inner: &[Function<'_>]) {
        let number = *self.next;
        *self.next += 1;
        self.push(&format!(" match ::tidegate_mutant_switch::on({number}) {{\n"));
        for mutant in &function.mutants {
            self.push(&format!("{} => {{\n", mutant.number));
            let first = self.lines;
            self.changed(function.body, mutant);
            self.arm(first, vec![mutant.number], false);
            self.out.functions.push((mutant.number, number));
        }
        self.push("_ => {\n");
        let first = self.lines;
        self.part(function.body, inner);
        self.arm(first, function.mutants.iter().map(|mutant| mutant.number).collect(), true);
        self.push("}");
    }

    fn arm(&mut self, first: usize, mutants: Vec<u32>, is_original: bool) {
        self.out.arms.push(Arm { lines: (first, self.lines), mutants, is_original });
        self.push("\n}\n");
    }

    /// A body with one change.
    fn changed(&mut self, (open, close): (usize, usize), mutant: &Mutant) {
        let place = |place| self.source.at(place).expect("it is within the body");
        let (from, to) = (place(mutant.span.from), place(mutant.span.to));
        self.copy((open, from));
        self.push(&mutant.replacement);
        self.copy((to, close));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_in_a_copy_of_its_function() {
        let text = "/// { \"\nfn f(a: [u8; { 2 }]) -> u8 {\n    fn g() -> u8 { 3 }\n    1 + g()\n}\n";
        let place = |line, column| SourcePosition { line, column };
        let mutant = |number, function, from, to, replacement: &str| Mutant {
            number,
            file: String::new(),
            function: Some(function),
            span: Span { from, to },
            replacement: replacement.to_owned(),
            name: String::new(),
            key: String::new(),
        };
        let f = Span { from: place(1, 1), to: place(5, 2) };
        let g = Span { from: place(3, 5), to: place(3, 23) };
        let mutants = [
            mutant(7, f, place(4, 7), place(4, 8), "-"),
            mutant(8, g, place(3, 20), place(3, 21), "0"),
            mutant(9, g, place(1, 1), place(1, 2), "0"),
        ];
        let mut next = 4;
        let rewritten = rewrite(text, &mutants.iter().collect::<Vec<_>>(), &mut next);
        let wanted = "/// { \"
fn f(a: [u8; { 2 }]) -> u8 { match ::tidegate_mutant_switch::on(4) {
7 => {

    fn g() -> u8 { 3 }
    1 - g()

}
_ => {

    fn g() -> u8 { match ::tidegate_mutant_switch::on(5) {
8 => {
 0\x20
}
_ => {
 3\x20
}
}}
    1 + g()

}
}}
";
        assert_eq!(rewritten.text, wanted);
        let line = |needle: &str| wanted.lines().position(|line| line == needle).unwrap() + 1;
        let of = |number| {
            rewritten.arms.iter().find(|arm| arm.mutants == [number] && !arm.is_original).unwrap().lines
        };
        assert!((of(7).0..=of(7).1).contains(&line("    1 - g()")));
        assert_eq!(of(8), (line(" 0 "), line(" 0 ")));
        assert_eq!((rewritten.functions, rewritten.outside, next), (vec![(7, 4), (8, 5)], vec![9], 6));
    }
}
