//! What tables of options are made of: what each option is called, how it may be abbreviated, what it takes,
//! and what it means in our own words.
//!
//! The tables of the kinds are in the kinds' files (`kind/KIND.rs`). The parser of `syntax` reads words by
//! these tables, `tc … help` prints them, and the documentation pages are generated from them.

pub(crate) mod error_style;
mod filters;
mod parts;
mod refused;
mod stab;
pub(crate) mod table;

pub use error_style::{ErrorStyle, Help};
pub use filters::{BASIC, CGROUP, FILTERS, FLOW, FLOWER, FW, MATCHALL, ROUTE, U32};
pub use parts::{
    ACTIONS, DocumentedName, EMATCHES, REFUSED_ACTIONS, REFUSED_EMATCHES, REFUSED_FILTERS,
    REFUSED_FLOWER_KEYS, action_kind, why_not,
};
pub use refused::{REFUSED, UnsupportedKind};
pub use stab::STAB;
pub use table::{Clash, FilterSpec, KindSpec, OptionSpec, Repeat, ValueKind, Within, help_options};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use alloc::vec::Vec;

    #[test]
    fn every_kind_has_a_table_and_every_option_a_line_of_documentation() {
        for kind in Kind::ALL {
            let spec = KindSpec::find(kind.name()).unwrap_or_else(|| panic!("{} has no table", kind.name()));
            for option in spec.qdisc.unwrap_or(&[]).iter().chain(spec.class.unwrap_or(&[])) {
                assert!(option.doc.len() > 10, "{} {}", kind.name(), option.key);
                assert!(spec.help().contains(option.doc));
            }
        }
    }

    #[test]
    fn no_kind_is_both_built_and_refused() {
        let both: Vec<_> = REFUSED.iter().filter(|refused| KindSpec::find(refused.name).is_some()).collect();
        assert!(both.is_empty(), "{both:?}");
        assert_eq!(UnsupportedKind::find("teql0").map(|kind| kind.name), Some("teql"));
    }

    #[test]
    fn the_first_option_that_fits_wins() {
        let class = KindSpec::find("htb").and_then(|spec| spec.class).unwrap_or(&[]);
        let named = |word: &str| class.iter().find(|option| option.is(word)).map(|option| option.key);
        let table: Vec<_> = ["p", "m", "b", "c", "ce", "ceil", "ra", "maxburst", "max"].map(named).into();
        let wanted = [
            Some("prio"),
            Some("mtu"),
            Some("burst"),
            Some("cburst"),
            None,
            Some("ceil"),
            None,
            Some("burst"),
            None,
        ];
        assert_eq!(table, wanted);
    }
}
