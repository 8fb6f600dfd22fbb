//! Our programs in tc's hooks, gone with whoever hung them there.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use tidegate_os::bpf::{Instruction, Jump, Link, Program, Reg};
use tidegate_os::talk::Talk;

use crate::attribute::{self, Attributes, words};

/// How a program is hung into a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A link of its own (Linux 6.6): gone when its descriptor is closed.
    Link,
    /// A filter of `clsact`: it jumps to the program through a table that is empty when its descriptor is closed. The filter itself stays
    /// when we are killed, and lets everything pass; whoever opens the door again there takes it away.
    Filter,
}

/// A program in a hook.
#[derive(Debug)]
pub(super) enum Hook {
    Link(Link),
    Filter(Filter),
}

/// What was made for a filter, and goes again.
#[derive(Debug)]
pub(super) struct Filter {
    table: Jump,
    device: u32,
    parent: u32,
    /// The qdisc is ours too.
    qdisc: bool,
}

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const RTM_GETTFILTER: u16 = 46;
const RTM_GETSTATS: u16 = 94;
/// A request that is acknowledged.
const ASK: u16 = 0x5;
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
/// What the program answers is what becomes of the packet.
const DIRECT_ACTION: u32 = 1;
/// Where clsact hangs.
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
/// The preference of our filter: behind those of others.
const PREFERENCE: u32 = 49_000;
/// ETH_P_ALL, as the kernel has it in the number of a filter.
const ALL: u32 = 0x0300;
/// What others see in their listings.
const NAME: &str = "tidegate";
const TAIL_CALL: i32 = 12;
/// Which statistics are asked for (`IFLA_STATS_LINK_64`), and where among them those lost in sending stand.
const LINK_64: u32 = 1;
const TX_DROPPED: usize = 7 * 8;
/// Octets of `if_stats_msg`.
const STATS_HEAD: usize = 12;

impl Hook {
    /// Runs the program for what a device sends (`egress`) or receives.
    pub(super) fn attach(way: Way, device: u32, egress: bool, program: &Program) -> io::Result<Hook> {
        match way {
            Way::Link => program.attach(device, egress).map(Hook::Link),
            Way::Filter => Filter::hang(device, egress, program).map(Hook::Filter),
        }
    }
}

impl AsFd for Hook {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Hook::Link(link) => link.as_fd(),
            Hook::Filter(filter) => filter.table.as_fd(),
        }
    }
}

impl Filter {
    fn hang(device: u32, egress: bool, program: &Program) -> io::Result<Filter> {
        let mut talk = Talk::open()?;
        let table = Jump::new()?;
        table.lead_to(program)?;
        let jumping = jump_through(&table)?;
        let qdisc = ask(&mut talk, RTM_NEWQDISC, CREATE | EXCLUSIVE, &clsact(device));
        let parent = if egress { EGRESS } else { INGRESS };
        // From here on what was made goes again when this is dropped.
        let filter = Filter { table, device, parent, qdisc: qdisc.is_ok() };
        // One that is left of a door whose owner was killed.
        let _ = ask(&mut talk, RTM_DELTFILTER, 0, &head(device, 0, parent, PREFERENCE << 16 | ALL));
        ask(&mut talk, RTM_NEWTFILTER, CREATE | EXCLUSIVE, &bpf(device, parent, &jumping))?;
        Ok(filter)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // If the device is gone, all this is; if not, an empty table lets everything pass.
        let Ok(mut talk) = Talk::open() else { return };
        let _ = ask(&mut talk, RTM_DELTFILTER, 0, &head(self.device, 0, self.parent, PREFERENCE << 16 | ALL));
        if self.qdisc && !others(&mut talk, self.device) {
            let _ = ask(&mut talk, RTM_DELQDISC, 0, &clsact(self.device));
        }
    }
}

/// Whether filters hang in a device's clsact.
fn others(talk: &mut Talk, device: u32) -> bool {
    [INGRESS, EGRESS].into_iter().any(|parent| {
        // What cannot be listed is not taken for nothing.
        talk.dump(RTM_GETTFILTER, &head(device, 0, parent, 0)).map_or(true, |filters| !filters.is_empty())
    })
}

/// A program that jumps, and lets pass where nothing is to be jumped to.
fn jump_through(table: &Jump) -> io::Result<Program> {
    let mut program = Instruction::table(Reg(2), table).to_vec();
    program.extend([
        Instruction::set(Reg(3), 0),
        Instruction::call(TAIL_CALL),
        Instruction::set(Reg(0), -1),
        Instruction::end(),
    ]);
    Program::load(&program)
}

fn ask(talk: &mut Talk, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    talk.ask(kind, ASK | flags, body)?
        .map_err(|refused| io::Error::new(io::Error::from_raw_os_error(refused.errno).kind(), refused.to_string()))
}

/// `tcmsg`
fn head(device: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    words(&[0, device, handle, parent, info])
}

fn clsact(device: u32) -> Vec<u8> {
    let mut body = head(device, CLSACT_HANDLE, CLSACT, 0);
    body.extend(Attributes::default().text(TCA_KIND, "clsact").bytes());
    body
}

fn bpf(device: u32, parent: u32, program: &Program) -> Vec<u8> {
    let mut options = Attributes::default();
    options.u32(TCA_BPF_FD, program.as_fd().as_raw_fd().unsigned_abs()).text(TCA_BPF_NAME, NAME);
    options.u32(TCA_BPF_FLAGS, DIRECT_ACTION);
    let mut body = head(device, 1, parent, PREFERENCE << 16 | ALL);
    body.extend(Attributes::default().text(TCA_KIND, "bpf").nest(TCA_OPTIONS, &options).bytes());
    body
}

/// Packets that a device of ours had no room for; 0 where nobody can say.
pub(super) fn lost_before(talk: &mut Talk, device: u32) -> u64 {
    let told = talk.get(RTM_GETSTATS, &words(&[0, device, LINK_64])).ok();
    let octets = told.and_then(|told| {
        let found = attribute::read(told.body.get(STATS_HEAD..)?);
        found.get(LINK_64 as u16)?.get(TX_DROPPED..TX_DROPPED + 8)?.try_into().ok()
    });
    octets.map_or(0, u64::from_ne_bytes)
}
