//! Our programs in tc's hooks, removed when the process that attached them is gone.
//!
//! What is attached to a hook only jumps through a table, the [`TailCallTable`]. When its owner dies, the
//! kernel closes the table before the devices that it leads to, and empties it for all hooks at once: from
//! then on everything passes as if it had never been there.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use tidegate_sys::bpf::{BpfLink, BpfProgram, Instruction, Jump, Reg};
use tidegate_sys::netlink_socket::NetlinkSocket;
use tidegate_sys::tap::Tap;

use tidegate_netlink::encode::tc_head as head;
use tidegate_packet::Handle;
use tidegate_sys::attribute::{self, Attributes, words};
use tidegate_sys::numbers::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, RTM_DELQDISC, RTM_DELTFILTER, RTM_GETTFILTER,
    RTM_NEWQDISC, RTM_NEWTFILTER, TCA_KIND, TCA_OPTIONS,
};

/// How a program is attached into a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMethod {
    /// A link of its own (Linux 6.6): gone when its descriptor is closed.
    Link,
    /// A filter of `clsact`. It stays when we are killed, and lets everything pass; the next backend that is
    /// opened there removes it.
    Filter,
}

/// The table that all hooks of a backend jump through.
#[derive(Debug)]
pub(super) struct TailCallTable {
    table: Jump,
    way: AttachMethod,
    next: u32,
    /// Of the devices that have filters of tidegate's.
    roots: Vec<Arc<Root>>,
}

/// A program in a hook.
#[derive(Debug)]
pub(super) enum Hook {
    Link { _held: BpfLink },
    Filter { _held: Filter },
}

/// A filter of tidegate's, which goes again.
#[derive(Debug)]
pub(super) struct Filter {
    root: Arc<Root>,
    parent: Handle,
}

/// A device's clsact; it is removed after the last filter of tidegate's if we made it.
#[derive(Debug)]
struct Root {
    device: u32,
    ours: bool,
}

const RTM_GETSTATS: u16 = 94;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
/// What the program answers is what happens to the packet.
const DIRECT_ACTION: u32 = 1;
/// clsact's own handle.
const CLSACT: Handle = Handle::new(0xffff, 0);
/// The preference of our filter: behind those of others.
const PREFERENCE: u32 = 49_000;
/// Preference and protocol (all of them) of our filter.
const NUMBER: u32 = PREFERENCE << 16 | 0x0300;
/// What others see in their listings.
const NAME: &str = "tidegate";
const TAIL_CALL: i32 = 12;
/// `__sk_buff->pkt_type`
const PACKET_TYPE: i16 = 4;
/// Which statistics are requested (`IFLA_STATS_LINK_64`), and the index of `tx_dropped` in them.
const LINK_64: u32 = 1;
const TX_DROPPED: usize = 7 * 8;
/// Bytes of `if_stats_msg`.
const STATS_HEAD: usize = 12;

impl TailCallTable {
    /// An empty table for so many hooks.
    pub(super) fn new(way: AttachMethod, hooks: u32) -> io::Result<TailCallTable> {
        Ok(TailCallTable { table: Jump::new(2 * hooks)?, way, next: 0, roots: Vec::new() })
    }

    /// When we are killed, packets are redirected nowhere before this device goes.
    pub(super) fn close_before(&mut self, device: &Tap) -> io::Result<()> {
        self.table.close_before(device)
    }

    /// Runs the program for what a device sends (`egress`) or receives.
    pub(super) fn attach(&mut self, device: u32, egress: bool, program: &BpfProgram) -> io::Result<Hook> {
        let jumping = jump(&self.table, self.next)?;
        self.table.set(2 * self.next, program)?;
        self.table.set(2 * self.next + 1, program)?;
        self.next += 1;
        match self.way {
            AttachMethod::Link => {
                let link = jumping.attach(device, egress)?;
                Ok(Hook::Link { _held: link })
            }
            AttachMethod::Filter => {
                let root = self.root(device)?;
                Ok(Hook::Filter { _held: Filter::hang(root, egress, &jumping)? })
            }
        }
    }

    /// The clsact of a device, made if there is none.
    fn root(&mut self, device: u32) -> io::Result<Arc<Root>> {
        if let Some(root) = self.roots.iter().find(|root| root.device == device) {
            return Ok(Arc::clone(root));
        }
        let made = ask(&mut NetlinkSocket::open()?, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &clsact(device));
        // If there is none and none can be made, attaching the filter fails with the reason.
        let root = Arc::new(Root { device, ours: made.is_ok() });
        self.roots.push(Arc::clone(&root));
        Ok(root)
    }
}

impl Filter {
    fn hang(root: Arc<Root>, egress: bool, program: &BpfProgram) -> io::Result<Filter> {
        let mut talk = NetlinkSocket::open()?;
        let (device, parent) =
            (root.device, if egress { Handle::CLSACT_EGRESS } else { Handle::CLSACT_INGRESS });
        // One that is left of a backend whose owner was killed.
        let _ = ask(&mut talk, RTM_DELTFILTER, 0, &head(device, 0, parent, NUMBER));
        ask(&mut talk, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &bpf(device, parent, program))?;
        Ok(Filter { root, parent })
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // If the device is gone, all this is; if not, an empty table lets everything pass.
        let Ok(mut talk) = NetlinkSocket::open() else { return };
        let _ = ask(&mut talk, RTM_DELTFILTER, 0, &head(self.root.device, 0, self.parent, NUMBER));
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let Ok(mut talk) = NetlinkSocket::open() else { return };
        if self.ours && !others(&mut talk, self.device) {
            let _ = ask(&mut talk, RTM_DELQDISC, 0, &clsact(self.device));
        }
    }
}

/// Whether there are filters in a device's clsact.
fn others(talk: &mut NetlinkSocket, device: u32) -> bool {
    [Handle::CLSACT_INGRESS, Handle::CLSACT_EGRESS].into_iter().any(|parent| {
        // What cannot be listed is not taken for nothing.
        talk.dump(RTM_GETTFILTER, &head(device, 0, parent, 0)).map_or(true, |filters| !filters.is_empty())
    })
}

/// A program that jumps to a hook's own, and lets pass where nothing is to be jumped to.
fn jump(table: &Jump, to: u32) -> io::Result<BpfProgram> {
    let mut program = Instruction::table(Reg(2), table).to_vec();
    // A tail call whose target the kernel knows beforehand is written into the code, and taking it out again
    // lasts tens of milliseconds. So each program is in two places, and a bit of the packet, no matter which,
    // chooses one of them.
    program.extend([
        Instruction::load(Reg(3), Reg(1), PACKET_TYPE),
        Instruction::and(Reg(3), 1),
        Instruction::add(Reg(3), 2 * to as i32),
        Instruction::call(TAIL_CALL),
        Instruction::set(Reg(0), -1),
        Instruction::end(),
    ]);
    BpfProgram::load(&program)
}

fn ask(talk: &mut NetlinkSocket, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    talk.request(kind, NLM_F_REQUEST | NLM_F_ACK | flags, body)?.map_err(|refused| {
        io::Error::new(io::Error::from_raw_os_error(refused.errno).kind(), refused.to_string())
    })
}

fn clsact(device: u32) -> Vec<u8> {
    let mut body = head(device, CLSACT.0, Handle::INGRESS, 0);
    body.extend(Attributes::default().text(TCA_KIND, "clsact").bytes());
    body
}

fn bpf(device: u32, parent: Handle, program: &BpfProgram) -> Vec<u8> {
    let mut options = Attributes::default();
    options.u32(TCA_BPF_FD, program.as_fd().as_raw_fd().unsigned_abs()).text(TCA_BPF_NAME, NAME);
    options.u32(TCA_BPF_FLAGS, DIRECT_ACTION);
    let mut body = head(device, 1, parent, NUMBER);
    body.extend(Attributes::default().text(TCA_KIND, "bpf").nest(TCA_OPTIONS, &options).bytes());
    body
}

/// Packets that a device of tidegate's had no space for; 0 where that is unknown.
pub(super) fn dropped_before(talk: &mut NetlinkSocket, device: u32) -> u64 {
    let message = talk.get(RTM_GETSTATS, &words(&[0, device, LINK_64])).ok();
    let bytes = message.and_then(|message| {
        let found = attribute::read(message.body.get(STATS_HEAD..)?);
        found.get(LINK_64 as u16)?.get(TX_DROPPED..TX_DROPPED + 8)?.try_into().ok()
    });
    bytes.map_or(0, u64::from_ne_bytes)
}
