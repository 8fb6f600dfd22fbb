//! Who leads to a box.

/// What leads packets to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    /// The filter or rule.
    pub(crate) text: String,
    /// The rules that set the marks it matches.
    pub(crate) markers: Vec<String>,
}

impl From<String> for Lead {
    fn from(text: String) -> Lead {
        Lead { text, markers: Vec::new() }
    }
}

impl Lead {
    /// The filter or rule, and then the rules that set its marks.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.text).chain(&self.markers)
    }
}
