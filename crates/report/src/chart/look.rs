//! The look of things that are compared, the same everywhere: a colour, and a line's dashes besides, so that
//! no reader depends on colour alone.

/// The look of the nth thing compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look(pub usize);

/// The most series that one chart distinguishes.
pub const LOOKS: usize = 6;

/// Colours and dashes. The first four lie far apart in colour for everyone, because dots have no dashes; so
/// do those with the same dashes (tests/suite/colours.rs).
const TABLE: [(usize, &str, &str); LOOKS] = [
    (1, "s1", "f1"),
    (2, "s2", "f2"),
    (4, "s4 dash", "f4"),
    (5, "s5 dash", "f5"),
    (6, "s6 dots", "f6"),
    (7, "s7 dots", "f7"),
];

impl Look {
    /// Its colour's number in the style sheet.
    pub fn colour(self) -> usize {
        TABLE[self.0 % LOOKS].0
    }
    /// The classes of its line.
    pub fn line(self) -> &'static str {
        TABLE[self.0 % LOOKS].1
    }
    /// The class of what is filled.
    pub fn fill(self) -> &'static str {
        TABLE[self.0 % LOOKS].2
    }
    /// Whether its line has dashes, and which: none, long, short.
    pub fn dashes(self) -> usize {
        ["", "dash", "dots"].iter().rposition(|dashes| self.line().ends_with(dashes)).unwrap_or(0)
    }
}
