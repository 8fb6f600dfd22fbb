//! A machine that is read back, and what was found so far.

use super::class_match::Way;
use super::found::{Counterpart, Misfit, Rules, WrongWay};
use super::left::Accounts;
use std::collections::BTreeMap;
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};

/// A machine, and what was found so far.
pub(super) struct Back<'m> {
    pub(super) qdiscs: &'m [QdiscDump],
    pub(super) classes: &'m [ClassDump],
    pub(super) filters: &'m [FilterDump],
    pub(super) rules: &'m [Rules],
    pub(super) misfits: Vec<Misfit>,
    pub(super) accounts: Accounts,
    /// Rules that are left out unless the class has their hosts anyway.
    pub(super) wrong_way: Vec<WrongWay>,
    /// The hosts of the classes of the short policy, by the minor numbers of those they are made of.
    pub(super) hosts: Vec<(u16, Vec<String>)>,
    pub(super) counterparts: Vec<Counterpart>,
    pub(super) devices: [Option<String>; 2],
    /// Which way the packets of each device go.
    pub(super) ways: BTreeMap<String, Way>,
}

impl<'m> Back<'m> {
    pub(super) fn new(
        qdiscs: &'m [QdiscDump],
        classes: &'m [ClassDump],
        filters: &'m [FilterDump],
        rules: &'m [Rules],
    ) -> Back<'m> {
        Back {
            qdiscs,
            classes,
            filters,
            rules,
            misfits: Vec::new(),
            accounts: Accounts::default(),
            wrong_way: Vec::new(),
            hosts: Vec::new(),
            counterparts: Vec::new(),
            devices: [None, None],
            ways: BTreeMap::new(),
        }
    }

    pub(super) fn miss(&mut self, what: impl Into<String>, instead: impl Into<String>) {
        self.misfits.push(Misfit::new(what, instead));
    }
}
