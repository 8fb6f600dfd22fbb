//! nftables of a network namespace: batches in, tables and rules out.

use crate::encode::nft::{self, Batch};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::io;
use tidegate_netlink_wire::attribute::read;
use tidegate_sys::netlink_socket::{KernelRefusal, NetlinkSocket};

/// NFT_MSG_GETFLOWTABLE, of nftables' subsystem.
const GET_FLOW_TABLES: u16 = 10 << 8 | 23;
const FLOW_TABLE_OF: u16 = 1;
const FLOW_TABLE_NAME: u16 = 2;
const FLOW_TABLE_HOOK: u16 = 3;
const HOOK_DEVICES: u16 = 3;
const FLOW_TABLE_FLAGS: u16 = 7;
/// NFTA_RULE_HANDLE.
const RULE_NUMBER: u16 = 3;
const BY_HARDWARE: u32 = 1;
/// Bytes of the part that nfnetlink's messages begin with (`nfgenmsg`).
const HEAD: usize = 4;

/// A netlink socket to nftables in the namespace it was opened in.
#[derive(Debug)]
pub struct Netfilter {
    talk: NetlinkSocket,
}

impl Netfilter {
    /// Opens a netfilter socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No socket can be had: the kernel has no netfilter.
    pub fn open() -> io::Result<Netfilter> {
        Ok(Netfilter { talk: NetlinkSocket::open_netfilter()? })
    }

    /// Carries out a batch, as a whole or not at all.
    ///
    /// # Errors
    /// The socket's; within, what the kernel refused, and the place of that message in the batch (0 is its
    /// begin).
    pub fn carry_out(&mut self, batch: Batch) -> io::Result<Result<(), (usize, KernelRefusal)>> {
        if batch.is_empty() {
            return Ok(Ok(()));
        }
        let messages = batch.into_messages();
        self.talk
            .send_all(messages.iter().map(|message| (message.kind, message.flags, message.body.as_slice())))
    }

    /// Sends messages that were stored: type, flags, and what follows the header of each, the batch's begin
    /// and end included.
    ///
    /// # Errors
    /// As for [`Netfilter::carry_out`].
    pub fn carry_out_raw(
        &mut self,
        messages: &[(u16, u16, Vec<u8>)],
    ) -> io::Result<Result<(), (usize, KernelRefusal)>> {
        self.talk.send_all(messages.iter().map(|(kind, flags, body)| (*kind, *flags, body.as_slice())))
    }

    /// The tables of the family `inet`, each with its comment.
    ///
    /// # Errors
    /// The socket's, or the kernel has no nftables.
    pub fn tables(&mut self) -> io::Result<BTreeMap<String, Option<String>>> {
        let (kind, body) = nft::tables_question();
        let reported = self.talk.dump(kind, &body)?;
        let table = |body: &[u8]| {
            let found = read(body.get(HEAD..)?);
            Some((
                found.text(nft::TABLE_NAME)?.to_owned(),
                found.get(nft::TABLE_USERDATA).and_then(nft::comment),
            ))
        };
        Ok(reported.iter().filter_map(|reported| table(&reported.body)).collect())
    }

    /// The flow tables of all families: ways past the chains for known connections.
    ///
    /// # Errors
    /// The socket's, or the kernel has none.
    pub fn flow_tables(&mut self) -> io::Result<Vec<FlowTable>> {
        let reported = self.talk.dump(GET_FLOW_TABLES, &[0; HEAD])?;
        Ok(reported.iter().filter_map(|reported| flow_table(&reported.body)).collect())
    }

    /// The rules of a table by the numbers that the kernel gave them, chain by chain. A rule that is replaced
    /// gets another number, so a caller that keeps these sees whether another program changed the table.
    ///
    /// # Errors
    /// As for [`Netfilter::tables`].
    pub fn rule_numbers(&mut self, table: &str) -> io::Result<BTreeMap<String, Vec<u64>>> {
        let (kind, body) = nft::rules_question(table);
        let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for reported in self.talk.dump(kind, &body)? {
            let found = read(reported.body.get(HEAD..).unwrap_or_default());
            let number =
                found.get(RULE_NUMBER).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
            if let (Some(of), Some(chain)) = (found.text(1), found.text(2))
                && of == table
            {
                all.entry(chain.to_owned()).or_default().push(number);
            }
        }
        Ok(all)
    }

    /// How many rules each chain of a table has; chains without any are not among them.
    ///
    /// # Errors
    /// As for [`Netfilter::tables`].
    pub fn rules(&mut self, table: &str) -> io::Result<BTreeMap<String, usize>> {
        let (kind, body) = nft::rules_question(table);
        let mut all = BTreeMap::new();
        for reported in self.talk.dump(kind, &body)? {
            let found = read(reported.body.get(HEAD..).unwrap_or_default());
            if let (Some(of), Some(chain)) = (found.text(1), found.text(2))
                && of == table
            {
                *all.entry(chain.to_owned()).or_insert(0) += 1;
            }
        }
        Ok(all)
    }
}

/// A way past the chains for known connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowTable {
    /// Its family and table, and its name, as nft writes them: `inet filter fast`.
    pub name: String,
    /// The devices between which it leads.
    pub devices: Vec<String>,
    /// Does the hardware do it on its own?
    pub is_hardware: bool,
}

fn flow_table(body: &[u8]) -> Option<FlowTable> {
    let family = match body.first()? {
        1 => "inet",
        2 => "ip",
        10 => "ip6",
        _ => "netdev",
    };
    let found = read(body.get(HEAD..)?);
    let hook = found.nest(FLOW_TABLE_HOOK);
    let hooked = hook.nest(HOOK_DEVICES);
    let device = |bytes: &[u8]| {
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    // What nftables numbers has the most significant byte first.
    let flags =
        found.get(FLOW_TABLE_FLAGS).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
    Some(FlowTable {
        name: format!("{family} {} {}", found.text(FLOW_TABLE_OF)?, found.text(FLOW_TABLE_NAME)?),
        devices: hooked.all().map(|(_, bytes)| device(bytes)).collect(),
        is_hardware: flags & BY_HARDWARE != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use tidegate_netlink_wire::attribute::Attributes;

    #[test]
    fn a_flow_table_as_the_kernel_tells_it() {
        let mut devices = Attributes::default();
        devices.text(1, "eth0").text(1, "eth1");
        let mut hook = Attributes::default();
        hook.payload(1, &0_u32.to_be_bytes()).nest(HOOK_DEVICES, &devices);
        let mut table = Attributes::default();
        table.text(FLOW_TABLE_OF, "filter").text(FLOW_TABLE_NAME, "fast").nest(FLOW_TABLE_HOOK, &hook);
        table.payload(FLOW_TABLE_FLAGS, &1_u32.to_be_bytes());
        let body = [&[1, 0, 0, 0][..], table.bytes()].concat();
        let devices = vec!["eth0".to_owned(), "eth1".to_owned()];
        let expected = FlowTable { name: "inet filter fast".to_owned(), devices, is_hardware: true };
        assert_eq!(flow_table(&body), Some(expected));
        assert_eq!(flow_table(&[1, 0]), None);
    }
}
