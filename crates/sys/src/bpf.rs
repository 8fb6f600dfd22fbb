//! Small BPF programs for tc's hooks: assembled from instructions, loaded, and attached such that they are
//! removed with the process that attached them.
//!
//! What is attached to a hook jumps through a [`Jump`] table, which the kernel empties at once when its last
//! descriptor is closed: what is left then lets everything pass. A *link* of a program (Linux 6.6) goes with
//! its descriptor too, but the kernel takes its time for each.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_long, c_uint};
use rustix::io::Errno;

const MAP_CREATE: c_int = 0;
const MAP_UPDATE: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const MAP_TYPE_PROG_ARRAY: u32 = 3;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// Bytes of `bpf_attr` that we ever set, and more: zeroes are the defaults of newer fields.
const ATTRIBUTES: usize = 128;
/// Space for the verifier's log.
const WORDS: usize = 1 << 16;

/// A register of the machine. R0 holds results, R1 to R5 arguments, R6 to R9 survive calls, R10 is the end of
/// the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg(pub u8);

/// One instruction: eight bytes, as the kernel takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction([u8; 8]);

impl Instruction {
    fn of(code: u8, to: Reg, from: u8, offset: i16, value: i32) -> Instruction {
        let ([o0, o1], [v0, v1, v2, v3]) = (offset.to_ne_bytes(), value.to_ne_bytes());
        // Two bit fields of C: which half comes first depends on the byte order.
        let registers = if cfg!(target_endian = "little") { to.0 | from << 4 } else { to.0 << 4 | from };
        Instruction([code, registers, o0, o1, v0, v1, v2, v3])
    }

    /// `to = from`
    #[must_use]
    pub fn copy(to: Reg, from: Reg) -> Instruction {
        Instruction::of(0xbf, to, from.0, 0, 0)
    }

    /// `to = value`
    #[must_use]
    pub fn set(to: Reg, value: i32) -> Instruction {
        Instruction::of(0xb7, to, 0, 0, value)
    }

    /// `to += value`
    #[must_use]
    pub fn add(to: Reg, value: i32) -> Instruction {
        Instruction::of(0x07, to, 0, 0, value)
    }

    /// `to &= value`
    #[must_use]
    pub fn and(to: Reg, value: i32) -> Instruction {
        Instruction::of(0x57, to, 0, 0, value)
    }

    /// `to = 32 bits at from + offset`
    #[must_use]
    pub fn load(to: Reg, from: Reg, offset: i16) -> Instruction {
        Instruction::of(0x61, to, from.0, offset, 0)
    }

    /// `32 bits at to + offset = from`
    #[must_use]
    pub fn store(to: Reg, offset: i16, from: Reg) -> Instruction {
        Instruction::of(0x63, to, from.0, offset, 0)
    }

    /// `32 bits at to + offset = value`
    #[must_use]
    pub fn store_value(to: Reg, offset: i16, value: i32) -> Instruction {
        Instruction::of(0x62, to, 0, offset, value)
    }

    /// Continues `over` instructions further if `reg != value`.
    #[must_use]
    pub fn skip_unless(reg: Reg, value: i32, over: i16) -> Instruction {
        Instruction::of(0x55, reg, 0, over, value)
    }

    /// Calls one of the kernel's helpers, by number.
    #[must_use]
    pub fn call(helper: i32) -> Instruction {
        Instruction::of(0x85, Reg(0), 0, 0, helper)
    }

    /// Ends with R0 as the result.
    #[must_use]
    pub fn end() -> Instruction {
        Instruction::of(0x95, Reg(0), 0, 0, 0)
    }

    /// `to =` the table; two instructions.
    #[must_use]
    pub fn table(to: Reg, table: &Jump) -> [Instruction; 2] {
        [Instruction::of(0x18, to, 1, 0, table.0.as_raw_fd()), Instruction::of(0, Reg(0), 0, 0, 0)]
    }
}

/// Attributes of a call (`bpf_attr`), put at their offsets. They borrow what they point to.
struct Attributes<'a>([u8; ATTRIBUTES], PhantomData<&'a mut [u8]>);

impl<'a> Attributes<'a> {
    fn new() -> Attributes<'a> {
        Attributes([0; ATTRIBUTES], PhantomData)
    }

    fn word(mut self, at: usize, value: u32) -> Attributes<'a> {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// The address of what the kernel reads.
    fn reads<T>(self, at: usize, of: &'a [T]) -> Attributes<'a> {
        self.address(at, of.as_ptr().addr())
    }

    /// The address of what the kernel writes.
    fn writes(self, at: usize, to: &'a mut [u8]) -> Attributes<'a> {
        // The kernel writes through this address: it must be exposed as that of a mutable borrow.
        self.address(at, to.as_mut_ptr().expose_provenance())
    }

    /// Addresses take 64 bits on every machine (`__aligned_u64`).
    fn address(mut self, at: usize, address: usize) -> Attributes<'a> {
        self.0[at..at + 8].copy_from_slice(&(address as u64).to_ne_bytes());
        self
    }

    /// # Safety
    /// Addresses among the attributes must be of what is long enough for the command, and given with `writes`
    /// where it writes.
    unsafe fn call(&self, command: c_int) -> io::Result<c_int> {
        let (attributes, length) = (self.0.as_ptr(), ATTRIBUTES as c_uint);
        // SAFETY: the attributes are 128 bytes of tidegate's, which the kernel reads; what they point to is
        // the caller's promise.
        let result: c_long = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, length) };
        match c_int::try_from(result) {
            Ok(number) if number >= 0 => Ok(number),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// # Safety
    /// As for `call`; and the command must be one that returns a new descriptor.
    unsafe fn open(&self, command: c_int) -> io::Result<OwnedFd> {
        // SAFETY: the caller's promise.
        let fd = unsafe { self.call(command) }?;
        // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// A program that tc's hooks can run.
#[derive(Debug)]
pub struct BpfProgram(OwnedFd);

impl BpfProgram {
    /// Loads a program.
    ///
    /// # Errors
    /// The kernel has no BPF, does not let us, or its verifier does not like the program; then with the
    /// verifier's words.
    pub fn load(instructions: &[Instruction]) -> io::Result<BpfProgram> {
        // The verifier writes its whole log when asked to, which is only worth having once it has refused.
        match load(instructions, &mut []) {
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::INVAL | Errno::ACCESS)) => {
                let mut words = vec![0; WORDS];
                load(instructions, &mut words).map_err(|error| {
                    let end = words.iter().position(|byte| *byte == 0).unwrap_or(WORDS);
                    io::Error::new(
                        error.kind(),
                        format!("{error}: {}", String::from_utf8_lossy(&words[..end]).trim()),
                    )
                })
            }
            loaded => loaded,
        }
    }

    /// Runs it for every packet that a device sends (`egress`), or receives, until the link is dropped, or
    /// its owner dies.
    ///
    /// # Errors
    /// `InvalidInput` before Linux 6.6; what the kernel reports.
    pub fn attach(&self, device: u32, egress: bool) -> io::Result<BpfLink> {
        let hook = if egress { TCX_EGRESS } else { TCX_INGRESS };
        let program = raw(&self.0);
        let attributes = Attributes::new().word(0, program).word(4, device).word(8, hook);
        // SAFETY: no addresses among them, and this command answers with a descriptor.
        unsafe { attributes.open(LINK_CREATE) }.map(|owned_fd| BpfLink { _held: owned_fd })
    }
}

impl AsFd for BpfProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn load(instructions: &[Instruction], words: &mut [u8]) -> io::Result<BpfProgram> {
    let license = *b"MIT OR Apache-2.0\0";
    let count = u32::try_from(instructions.len()).map_err(io::Error::other)?;
    let mut attributes = Attributes::new().word(0, PROG_TYPE_SCHED_CLS).word(4, count);
    attributes = attributes.reads(8, instructions).reads(16, &license);
    if !words.is_empty() {
        let size = u32::try_from(words.len()).map_err(io::Error::other)?;
        attributes = attributes.word(24, 1).word(28, size).writes(32, words);
    }
    // SAFETY: the instructions are `count` times eight bytes, the license ends with a zero, and `words`,
    // which the verifier writes to, is borrowed mutably with its length given.
    unsafe { attributes.open(PROG_LOAD) }.map(BpfProgram)
}

fn raw(fd: &OwnedFd) -> u32 {
    // A descriptor that is open is not negative.
    fd.as_raw_fd().unsigned_abs()
}

/// A program at its hook.
#[derive(Debug)]
pub struct BpfLink {
    _held: OwnedFd,
}

/// A table of programs for tail calls; empty again when this is dropped, or its owner dies.
#[derive(Debug)]
pub struct Jump(OwnedFd);

impl Jump {
    /// An empty table with so many places: a tail call into it continues behind the call.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn new(places: u32) -> io::Result<Jump> {
        let attributes =
            Attributes::new().word(0, MAP_TYPE_PROG_ARRAY).word(4, 4).word(8, 4).word(12, places);
        // SAFETY: no addresses among them, and this command answers with a descriptor.
        unsafe { attributes.open(MAP_CREATE) }.map(Jump)
    }

    /// When this process is killed, the table is closed before `after` is. The kernel takes the descriptors
    /// of a dead process in the order of their numbers, but puts off what there is to do for each, and does
    /// what was put off last first.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn close_before(&mut self, after: &impl AsFd) -> io::Result<()> {
        let (ours, theirs) = (self.0.as_raw_fd(), after.as_fd().as_raw_fd());
        if ours < theirs {
            self.0 = rustix::io::fcntl_dupfd_cloexec(&self.0, theirs + 1)?;
        }
        Ok(())
    }

    /// From now on jumps to this place lead to `program`.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn set(&self, place: u32, program: &BpfProgram) -> io::Result<()> {
        let (key, value) = ([place], [raw(&program.0)]);
        let attributes = Attributes::new().word(0, raw(&self.0)).reads(8, &key).reads(16, &value);
        // SAFETY: key and value are of four bytes each, as the table was made, and are only read.
        unsafe { attributes.call(MAP_UPDATE) }.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_as_the_kernel_takes_them() {
        assert_eq!(Instruction::set(Reg(0), -1).0, [0xb7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        let (registers, [o0, o1]) =
            if cfg!(target_endian = "little") { (0x62, [8, 0]) } else { (0x26, [0, 8]) };
        assert_eq!(Instruction::load(Reg(2), Reg(6), 8).0, [0x61, registers, o0, o1, 0, 0, 0, 0]);
        assert_eq!(Instruction::skip_unless(Reg(0), 0, 3).0[2..4], 3_i16.to_ne_bytes());
    }

    #[test]
    fn an_invalid_program_is_refused_with_the_verifiers_log() {
        match BpfProgram::load(&[Instruction::end()]) {
            Err(error) if error.to_string().contains("R0 !read_ok") => {}
            Err(error) => println!("left out: no BPF programs here ({error})"),
            Ok(_) => panic!("a program without a result was taken"),
        }
    }
}
