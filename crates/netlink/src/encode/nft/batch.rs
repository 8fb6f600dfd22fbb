//! Messages about one table, gathered.

use super::super::message::NetlinkMessage;
use super::expression::Expressions;
use super::words;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_netlink_wire::numbers::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST};
use tidegate_policy::netfilter::Base;

/// The part of nfnetlink that is nftables.
const NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEWTABLE: u16 = 0;
const GETTABLE: u16 = 1;
const DELTABLE: u16 = 2;
const NEWCHAIN: u16 = 3;
const GETRULE: u16 = 7;
const NEWRULE: u16 = 6;
const DELRULE: u16 = 8;
pub(super) const NEWSET: u16 = 9;
pub(super) const NEWSETELEM: u16 = 12;
/// IPv4 and IPv6 in one table.
const INET: u8 = 1;
/// The attribute with a table's name.
pub const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
/// The attribute with what programs keep beside a table: see [`comment`].
pub const TABLE_USERDATA: u16 = 6;
/// It is its maker's alone (`NFT_TABLE_F_OWNER`).
const TABLE_OWNER: u32 = 2;
/// nft's place for a comment in what programs may keep beside a table.
const COMMENT: u8 = 0;
/// A comment's longest text, with its closing zero.
const LONGEST_COMMENT: usize = 128;

/// Messages that the kernel takes as a whole or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) table: String,
    messages: Vec<NetlinkMessage>,
    pub(super) sets: u32,
}

fn family_head(family: u8, resource: u16) -> Vec<u8> {
    let mut body = vec![family, 0];
    body.extend(resource.to_be_bytes());
    body
}

fn message(kind: u16, flags: u16, attributes: &Attributes) -> NetlinkMessage {
    let mut body = family_head(INET, 0);
    body.extend(attributes.bytes());
    NetlinkMessage { kind: NFTABLES << 8 | kind, flags: NLM_F_REQUEST | flags, body }
}

impl Batch {
    /// A batch about a table of this name in the family `inet`.
    #[must_use]
    pub fn new(table: &str) -> Batch {
        Batch { table: table.to_owned(), messages: Vec::new(), sets: 0 }
    }

    pub(super) fn push(&mut self, kind: u16, flags: u16, attributes: &Attributes) {
        self.messages.push(message(kind, flags, attributes));
    }

    /// Makes the table if it is not there; `comment` is shown by `nft list`.
    pub fn make_table(&mut self, comment: Option<&str>) {
        self.make_table_with(None, comment);
    }

    /// Makes a table that no other program may change, and that goes when the socket of the batch is closed.
    pub fn make_own_table(&mut self, comment: Option<&str>) {
        self.make_table_with(Some(TABLE_OWNER), comment);
    }

    fn make_table_with(&mut self, flags: Option<u32>, comment: Option<&str>) {
        let mut to = Attributes::default();
        to.text(TABLE_NAME, &self.table);
        if let Some(flags) = flags {
            to.payload(TABLE_FLAGS, &flags.to_be_bytes());
        }
        if let Some(comment) = comment {
            to.payload(TABLE_USERDATA, &note(comment));
        }
        self.push(NEWTABLE, NLM_F_CREATE, &to);
    }

    /// Takes the table away with all that is in it. It must be there.
    pub fn delete_table(&mut self) {
        let mut to = Attributes::default();
        to.text(TABLE_NAME, &self.table);
        self.push(DELTABLE, 0, &to);
    }

    /// Takes all rules out of the table's chains, which stay.
    pub fn delete_rules(&mut self) {
        let mut to = Attributes::default();
        to.text(1, &self.table);
        self.push(DELRULE, 0, &to);
    }

    /// Makes a chain: one that packets come to on their own has a base and a policy (true: what reaches its
    /// end continues).
    pub fn chain(&mut self, name: &str, base: Option<Base>, accepts: bool) {
        let mut to = Attributes::default();
        to.text(1, &self.table).text(3, name);
        if let Some(base) = base {
            let mut hook = Attributes::default();
            hook.payload(1, &words::hook(base.hook).to_be_bytes()).payload(2, &base.priority.to_be_bytes());
            to.marked_nest(4, &hook).payload(5, &u32::from(accepts).to_be_bytes()).text(7, base.kind.name());
        }
        self.push(NEWCHAIN, NLM_F_CREATE, &to);
    }

    /// Puts a rule at the end of a chain.
    pub fn rule(&mut self, chain: &str, expressions: &Expressions) {
        let mut to = Attributes::default();
        to.text(1, &self.table).text(2, chain).marked_nest(4, expressions.list());
        self.push(NEWRULE, NLM_F_CREATE | NLM_F_APPEND, &to);
    }

    /// How many messages it has between its begin and its end.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Does it ask for nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The whole batch, begin and end included. The last message but one requests the acknowledgement: not
    /// every kernel acknowledges an end.
    #[must_use]
    pub fn into_messages(mut self) -> Vec<NetlinkMessage> {
        if let Some(last) = self.messages.last_mut() {
            last.flags |= NLM_F_ACK;
        }
        let frame = |kind| NetlinkMessage { kind, flags: NLM_F_REQUEST, body: family_head(0, NFTABLES) };
        self.messages.insert(0, frame(BATCH_BEGIN));
        self.messages.push(frame(BATCH_END));
        self.messages
    }
}

/// What programs keep beside a table, with nft's comment in it.
fn note(comment: &str) -> Vec<u8> {
    let mut text: Vec<u8> = comment.bytes().take(LONGEST_COMMENT - 1).collect();
    text.push(0);
    let mut bytes = vec![COMMENT, text.len() as u8];
    bytes.extend(text);
    bytes
}

/// The comment in what was kept beside a table.
pub fn comment(bytes: &[u8]) -> Option<String> {
    let text = bytes.strip_prefix(&[COMMENT])?.get(1..)?;
    Some(String::from_utf8_lossy(text.split(|byte| *byte == 0).next()?).into_owned())
}

/// The question which tables there are; the answers have the attributes of [`Batch::make_table`].
pub fn tables_question() -> (u16, Vec<u8>) {
    (NFTABLES << 8 | GETTABLE, family_head(INET, 0))
}

/// The question which rules a table has.
pub fn rules_question(table: &str) -> (u16, Vec<u8>) {
    let mut to = Attributes::default();
    to.text(1, table);
    let mut body = family_head(INET, 0);
    body.extend(to.bytes());
    (NFTABLES << 8 | GETRULE, body)
}
