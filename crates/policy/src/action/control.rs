//! Decisions about packets.

use core::fmt;

/// What happens to a packet after an action (`TC_ACT_*` of `linux/pkt_cls.h`; tc-actions(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// The packet continues its way (`pass`, `ok`).
    #[default]
    Pass,
    /// The packet is dropped (`drop`, `shot`).
    Drop,
    /// The filter counts as not matching (`continue`).
    Continue,
    /// Classification starts again from the first filter (`reclassify`).
    Reclassify,
    /// The filter's next action follows; after the last, the packet continues (`pipe`).
    Pipe,
    /// The packet was taken away (`stolen`).
    Stolen,
    /// The packet is left to a hardware handler; in software there is none (`trap`).
    Trap,
    /// The filter's actions are carried out again, without so many of the first (`jump`).
    Jump(u32),
    /// Continues with the filters of this chain (`goto chain`).
    Goto(u32),
    /// One that the kernel has a number and tc no word for; police takes numbers.
    Number(i32),
}

impl Control {
    /// The last number of a plain decision; greater ones are jumps or lead to a chain.
    pub const LAST: i32 = 8;
    /// What is queued elsewhere: it is gone from here as what was stolen.
    pub const QUEUED: i32 = 5;

    /// The decision with this number of the kernel (`TC_ACT_*` of linux/pkt_cls.h): -1 to 8 are plain; the
    /// upper four bits mark a jump (1) or a chain (2).
    pub const fn of_number(number: i32) -> Control {
        const REST: u32 = 0x0fff_ffff;
        match (number as u32 >> 28, number) {
            (_, -1) => Control::Continue,
            (_, 0) => Control::Pass,
            (_, 1) => Control::Reclassify,
            (_, 2) => Control::Drop,
            (_, 3) => Control::Pipe,
            (_, 4) => Control::Stolen,
            (_, Control::LAST) => Control::Trap,
            (1, _) => Control::Jump(number as u32 & REST),
            (2, _) => Control::Goto(number as u32 & REST),
            _ => Control::Number(number),
        }
    }

    /// The kernel's number of it (`TC_ACT_*`): what [`Control::of_number`] reads.
    pub const fn number(self) -> i32 {
        match self {
            Control::Continue => -1,
            Control::Pass => 0,
            Control::Reclassify => 1,
            Control::Drop => 2,
            Control::Pipe => 3,
            Control::Stolen => 4,
            Control::Trap => Control::LAST,
            Control::Jump(count) => (1 << 28 | count) as i32,
            Control::Goto(chain) => (2 << 28 | chain) as i32,
            Control::Number(number) => number,
        }
    }

    /// Its name in tc; `number` of one without.
    pub const fn name(self) -> &'static str {
        match self {
            Control::Pass => "pass",
            Control::Drop => "drop",
            Control::Continue => "continue",
            Control::Reclassify => "reclassify",
            Control::Pipe => "pipe",
            Control::Stolen => "stolen",
            Control::Trap => "trap",
            Control::Jump(_) => "jump",
            Control::Goto(_) => "goto",
            Control::Number(_) => "number",
        }
    }
}

/// As tc writes it: `drop`, `goto chain 5`, `jump 2`.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Control::Goto(chain) => write!(f, "goto chain {chain}"),
            Control::Jump(count) => write!(f, "jump {count}"),
            other => f.write_str(other.name()),
        }
    }
}
