//! iptables and ip6tables, as far as traffic control needs them: the rules that set marks, classes and DS
//! fields.

mod command;
mod parse;
mod print;
mod refused;
mod restore;
mod several;
mod values;

pub use command::{IptCommand, IptablesCommandLine, ListStyle};
pub use parse::parse;
pub use print::{ListedChain, ListedRule, list, print_rule, save};
pub use refused::{VERSION, complain, refusal_text};
pub use restore::{Restore, RestoreLine, RestoredTable, blamed, restore};
pub use several::spread;

/// The port of a service.
pub(crate) fn service(name: &str) -> Option<u16> {
    values::SERVICES.iter().find(|(known, _)| *known == name).map(|(_, port)| *port)
}
