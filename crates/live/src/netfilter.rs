//! nftables of a network namespace: batches in, tables and rules out.

use crate::attribute::read;
use crate::encode::nft::{self, Batch};
use std::collections::BTreeMap;
use std::io;
use tidegate_os::talk::{Refused, Talk};

/// Octets of the part that nfnetlink's messages begin with (`nfgenmsg`).
const HEAD: usize = 4;

/// A door to nftables in the namespace it was opened in.
#[derive(Debug)]
pub struct Netfilter {
    talk: Talk,
}

impl Netfilter {
    /// Opens it.
    ///
    /// # Errors
    /// No socket can be had: the kernel has no netfilter.
    pub fn open() -> io::Result<Netfilter> {
        Ok(Netfilter { talk: Talk::open_netfilter()? })
    }

    /// Carries out a batch, as a whole or not at all.
    ///
    /// # Errors
    /// The socket's; within, what the kernel refused, and the place of that message in the batch (0 is its begin).
    pub fn carry_out(&mut self, batch: Batch) -> io::Result<Result<(), (usize, Refused)>> {
        if batch.is_empty() {
            return Ok(Ok(()));
        }
        let messages = batch.into_messages();
        self.talk.send_all(messages.iter().map(|message| (message.kind, message.flags, message.body.as_slice())))
    }

    /// The same of messages that were kept: type, flags, and what follows the head of each, the batch's begin and end included.
    ///
    /// # Errors
    /// As for [`Netfilter::carry_out`].
    pub fn carry_out_raw(&mut self, messages: &[(u16, u16, Vec<u8>)]) -> io::Result<Result<(), (usize, Refused)>> {
        self.talk.send_all(messages.iter().map(|(kind, flags, body)| (*kind, *flags, body.as_slice())))
    }

    /// The tables of the family `inet`, each with its comment.
    ///
    /// # Errors
    /// The socket's, or the kernel has no nftables.
    pub fn tables(&mut self) -> io::Result<BTreeMap<String, Option<String>>> {
        let (kind, body) = nft::tables_question();
        let told = self.talk.dump(kind, &body)?;
        let table = |body: &[u8]| {
            let found = read(body.get(HEAD..)?);
            Some((found.text(nft::TABLE_NAME)?.to_owned(), found.get(nft::TABLE_USERDATA).and_then(nft::comment)))
        };
        Ok(told.iter().filter_map(|told| table(&told.body)).collect())
    }

    /// How many rules each chain of a table has; chains without any are not among them.
    ///
    /// # Errors
    /// As for [`Netfilter::tables`].
    pub fn rules(&mut self, table: &str) -> io::Result<BTreeMap<String, usize>> {
        let (kind, body) = nft::rules_question(table);
        let mut all = BTreeMap::new();
        for told in self.talk.dump(kind, &body)? {
            let found = read(told.body.get(HEAD..).unwrap_or_default());
            if let (Some(of), Some(chain)) = (found.text(1), found.text(2))
                && of == table
            {
                *all.entry(chain.to_owned()).or_insert(0) += 1;
            }
        }
        Ok(all)
    }
}
