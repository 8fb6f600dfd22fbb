//! The programs in tc's hooks that take packets off their way, and put them back.
//!
//! A captured packet goes to a TAP device of tidegate's with [`ROOM`] bytes before it for what its bytes do
//! not contain: mark and priority. A packet that comes back to ingress is sent by another device of
//! tidegate's, whose program lets it arrive at its original device with a sign on it, so that it is not
//! captured twice.

use std::io;

use tidegate_sys::bpf::{BpfProgram, Instruction as I, Reg};

/// Bytes before a captured frame: mark, priority, nothing, [`OURS`].
pub(super) const ROOM: usize = 16;
/// The last bytes of that header. A tag that the TAP device inserts comes after the twelfth byte, as in any
/// frame; this does not begin as a tag does.
pub(super) const OURS: u32 = u32::from_ne_bytes(*b"\0tdg");
/// The offset of [`OURS`].
pub(super) const OURS_AT: usize = 12;
/// `skb->tc_index` of what was put back to ingress.
const SIGN: i32 = 0x7464;

// Fields of `__sk_buff`.
const MARK: i16 = 8;
const PRIORITY: i16 = 32;
const TC_INDEX: i16 = 44;
// Helpers of the kernel.
const STORE_BYTES: i32 = 9;
const REDIRECT: i32 = 23;
const CHANGE_HEAD: i32 = 43;
/// `BPF_F_INGRESS`
const ARRIVES: i32 = 1;
/// The next program decides, if there is one.
const NEXT: i32 = -1;
/// `TC_ACT_SHOT`
const LOST: i32 = 2;

const R0: Reg = Reg(0);
const R1: Reg = Reg(1);
const R2: Reg = Reg(2);
const R3: Reg = Reg(3);
const R4: Reg = Reg(4);
const R5: Reg = Reg(5);
/// The packet (`struct __sk_buff`), saved from R1.
const SKB: Reg = Reg(6);
const STACK: Reg = Reg(10);

/// Leads what passes to the TAP device `tap`. A packet that cannot be given room goes its way untouched.
///
/// # Errors
/// The kernel does not take it.
pub(super) fn take(tap: u32, egress: bool) -> io::Result<BpfProgram> {
    let room = ROOM as i32;
    let below = -(ROOM as i16);
    let mut program = vec![I::copy(SKB, R1)];
    if !egress {
        program.extend([
            I::load(R2, SKB, TC_INDEX),
            I::skip_unless(R2, SIGN, 4),
            I::set(R2, 0),
            I::store(SKB, TC_INDEX, R2),
            I::set(R0, NEXT),
            I::end(),
        ]);
    }
    program.extend([
        I::load(R2, SKB, MARK),
        I::store(STACK, below, R2),
        I::load(R2, SKB, PRIORITY),
        I::store(STACK, below + 4, R2),
        I::store_value(STACK, below + 8, 0),
        I::store_value(STACK, below + OURS_AT as i16, OURS as i32),
        I::copy(R1, SKB),
        I::set(R2, room),
        I::set(R3, 0),
        I::call(CHANGE_HEAD),
        I::skip_unless(R0, 0, 12),
        I::copy(R1, SKB),
        I::set(R2, 0),
        I::copy(R3, STACK),
        I::add(R3, i32::from(below)),
        I::set(R4, room),
        I::set(R5, 0),
        I::call(STORE_BYTES),
        I::skip_unless(R0, 0, 6),
        I::set(R1, tap as i32),
        I::set(R2, 0),
        I::call(REDIRECT),
        I::end(),
        // There was no space before it: it continues as it is.
        I::set(R0, NEXT),
        I::end(),
        // There was, but nothing could be written there: such a packet could not be read.
        I::set(R0, LOST),
        I::end(),
    ]);
    BpfProgram::load(&program)
}

/// Lets what is sent arrive at `device`, signed.
///
/// # Errors
/// The kernel does not take it.
pub(super) fn put_back(device: u32) -> io::Result<BpfProgram> {
    BpfProgram::load(&[
        I::set(R2, SIGN),
        I::store(R1, TC_INDEX, R2),
        I::set(R1, device as i32),
        I::set(R2, ARRIVES),
        I::call(REDIRECT),
        I::end(),
    ])
}
