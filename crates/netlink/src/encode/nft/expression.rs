//! What a rule is made of: small steps that load into a register, change it, compare it, and decide.
//!
//! One register of 16 bytes is enough for all that rules of traffic control ask: each step begins by loading
//! it.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::Attributes;

const ELEMENT: u16 = 1;
const VALUE: u16 = 1;
const VERDICT: u16 = 2;
/// The register that verdicts are in, and the one everything else is in.
const DECISION: u32 = 0;
const REGISTER: u32 = 1;

/// What is known about a packet beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NftMeta {
    /// Bytes from the network header on.
    Length = 0,
    /// EtherType, in the order of the network.
    Protocol = 1,
    /// `skb->priority`: a class.
    Priority = 2,
    /// The packet's mark (`meta mark`).
    Mark = 3,
    /// The name of the device it came in by, 16 bytes.
    InName = 6,
    /// The name of the device it leaves by, 16 bytes.
    OutName = 7,
    /// The protocol of netfilter: 2 for IPv4, 10 for IPv6.
    Family = 15,
    /// The transport's protocol.
    Transport = 16,
}

/// What is known about a packet's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NftCt {
    /// A set of states, as bits.
    State = 0,
    /// The connection's mark (`ct mark`).
    Mark = 3,
    /// Packets it has carried, 64 bits.
    Packets = 14,
    /// Bytes, 64 bits.
    Bytes = 15,
    /// Bytes per packet, 64 bits.
    Average = 16,
}

/// How what was loaded is compared with a value. Values that are more or less are in the order of the
/// network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NftCmp {
    /// Equal (`NFT_CMP_EQ`).
    Is = 0,
    /// Not equal.
    IsNot = 1,
    /// At most.
    AtMost = 3,
    /// At least.
    AtLeast = 5,
}

/// Bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// From which header on.
    pub base: NftHeader,
    /// How far behind its beginning, bytes.
    pub offset: u32,
    /// How many bytes.
    pub length: u32,
}

/// A header that bytes are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NftHeader {
    /// IP's.
    Network = 1,
    /// TCP's, UDP's and so on.
    Transport = 2,
}

/// Where packets wait for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NftQueue {
    /// The first queue's number,
    pub first: u16,
    /// and how many there are.
    pub count: u16,
    /// Packets continue while no program reads the queue.
    pub bypass: bool,
    /// Which of several queues is chosen by the processor, not by the flow.
    pub by_processor: bool,
}

/// How a rule ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NftVerdict {
    /// It leaves the hook's chain.
    Accept,
    /// It is dropped.
    Drop,
    /// Back to the chain that redirected here.
    Return,
    /// Through another chain, and back.
    Jump(String),
    /// Through another chain, and not back.
    Goto(String),
}

/// The steps of a rule, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expressions(Attributes);

fn be(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A value, as attributes of it.
fn value(bytes: &[u8]) -> Attributes {
    let mut to = Attributes::default();
    to.payload(VALUE, bytes);
    to
}

impl Expressions {
    pub(super) fn list(&self) -> &Attributes {
        &self.0
    }

    fn step(
        &mut self,
        name: &str,
        numbers: &[(u16, u32)],
        more: impl FnOnce(&mut Attributes),
    ) -> &mut Expressions {
        let (mut data, mut element) = (Attributes::default(), Attributes::default());
        for (number, word) in numbers {
            data.payload(*number, &be(*word));
        }
        more(&mut data);
        element.text(1, name).marked_nest(2, &data);
        self.0.marked_nest(ELEMENT, &element);
        self
    }

    /// Loads what is known about the packet.
    pub fn load_meta(&mut self, key: NftMeta) -> &mut Expressions {
        self.step("meta", &[(1, REGISTER), (2, key as u32)], |_| {})
    }

    /// Sets it from the register.
    pub fn set_meta(&mut self, key: NftMeta) -> &mut Expressions {
        self.step("meta", &[(2, key as u32), (3, REGISTER)], |_| {})
    }

    /// Loads what is known about the connection; of the sum of both directions, or of one of them (false: as
    /// it began).
    pub fn load_ct(&mut self, key: NftCt, reply: Option<bool>) -> &mut Expressions {
        self.step("ct", &[(1, REGISTER), (2, key as u32)], |data| {
            if let Some(reply) = reply {
                data.u8(3, u8::from(reply));
            }
        })
    }

    /// Sets the connection's from the register.
    pub fn set_ct(&mut self, key: NftCt) -> &mut Expressions {
        self.step("ct", &[(2, key as u32), (4, REGISTER)], |_| {})
    }

    /// Loads bytes of the packet.
    pub fn load(&mut self, from: Payload) -> &mut Expressions {
        let Payload { base, offset, length } = from;
        self.step("payload", &[(1, REGISTER), (2, base as u32), (3, offset), (4, length)], |_| {})
    }

    /// Writes the register into the packet; `checksum`: where the header has a sum that must go with it.
    pub fn store(&mut self, to: Payload, checksum: Option<u32>) -> &mut Expressions {
        let Payload { base, offset, length } = to;
        let mut numbers = vec![(2, base as u32), (3, offset), (4, length), (5, REGISTER)];
        numbers.extend([(6, u32::from(checksum.is_some())), (7, checksum.unwrap_or(0)), (8, 0)]);
        self.step("payload", &numbers, |_| {})
    }

    /// Continues only if the register begins with these bytes (or compares so with them).
    pub fn compare(&mut self, how: NftCmp, with: &[u8]) -> &mut Expressions {
        self.step("cmp", &[(1, REGISTER), (2, how as u32)], |data| {
            data.marked_nest(3, &value(with));
        })
    }

    /// Continues only if the register is (or is not) from one value to another, both in the order of the
    /// network.
    pub fn range(&mut self, inside: bool, from: &[u8], to: &[u8]) -> &mut Expressions {
        self.step("range", &[(1, REGISTER), (2, u32::from(!inside))], |data| {
            data.marked_nest(3, &value(from)).marked_nest(4, &value(to));
        })
    }

    /// `register = (register & mask) ^ flip`.
    pub fn bits(&mut self, mask: &[u8], flip: &[u8]) -> &mut Expressions {
        self.step("bitwise", &[(1, REGISTER), (2, REGISTER), (3, mask.len() as u32)], |data| {
            data.marked_nest(4, &value(mask)).marked_nest(5, &value(flip));
        })
    }

    /// Turns numbers from this machine's order into the network's.
    pub fn in_network_order(&mut self, bytes: u32) -> &mut Expressions {
        const TO_NETWORK: u32 = 1;
        self.step(
            "byteorder",
            &[(1, REGISTER), (2, REGISTER), (3, TO_NETWORK), (4, bytes), (5, bytes)],
            |_| {},
        )
    }

    /// Puts bytes into the register.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Expressions {
        self.step("immediate", &[(1, REGISTER)], |data| {
            data.marked_nest(2, &value(bytes));
        })
    }

    /// Continues only if the register is (or is not) in a set of the same batch.
    pub fn lookup(&mut self, set: &str, id: u32, inside: bool) -> &mut Expressions {
        self.step("lookup", &[(2, REGISTER)], |data| {
            data.text(1, set).payload(4, &be(id)).payload(5, &be(u32::from(!inside)));
        })
    }

    /// Counts packets and bytes.
    pub fn counter(&mut self) -> &mut Expressions {
        self.step("counter", &[], |data| {
            data.u64(1, 0).u64(2, 0);
        })
    }

    /// Switches connection tracking off for the packet.
    pub fn notrack(&mut self) -> &mut Expressions {
        self.step("notrack", &[], |_| {})
    }

    /// Ends the rule.
    pub fn verdict(&mut self, verdict: &NftVerdict) -> &mut Expressions {
        let (code, chain) = match verdict {
            NftVerdict::Accept => (1, None),
            NftVerdict::Drop => (0, None),
            NftVerdict::Return => (-5_i32, None),
            NftVerdict::Jump(chain) => (-3, Some(chain)),
            NftVerdict::Goto(chain) => (-4, Some(chain)),
        };
        let mut what = Attributes::default();
        what.payload(1, &code.to_be_bytes());
        if let Some(chain) = chain {
            what.text(2, chain);
        }
        let mut decision = Attributes::default();
        decision.marked_nest(VERDICT, &what);
        self.step("immediate", &[(1, DECISION)], |data| {
            data.marked_nest(2, &decision);
        })
    }

    /// Packets wait for a program, by nftables' own expression (`CONFIG_NFT_QUEUE`).
    pub fn queue(&mut self, queue: NftQueue) -> &mut Expressions {
        self.step("queue", &[], |data| {
            let flags = u16::from(queue.bypass) | u16::from(queue.by_processor) << 1;
            let half = |number: u16| number.to_be_bytes();
            data.payload(1, &half(queue.first)).payload(2, &half(queue.count)).payload(3, &half(flags));
        })
    }

    /// Queues by iptables' target (`CONFIG_NFT_COMPAT`), which kernels without that expression have.
    pub fn queue_target(&mut self, queue: NftQueue) -> &mut Expressions {
        let flags = u16::from(queue.bypass) | u16::from(queue.by_processor) << 1;
        let bytes: Vec<u8> =
            [queue.first, queue.count, flags].iter().flat_map(|half| half.to_ne_bytes()).collect();
        self.target("NFQUEUE", 3, &bytes)
    }

    /// A target of iptables, with its structure.
    pub fn target(&mut self, name: &str, revision: u32, bytes: &[u8]) -> &mut Expressions {
        // Such structures end on a multiple of eight bytes.
        let mut whole = bytes.to_vec();
        whole.resize(whole.len().next_multiple_of(8), 0);
        self.step("target", &[], |data| {
            data.text(1, name).payload(2, &be(revision)).payload(3, &whole);
        })
    }
}

/// A device's name as it is compared; the first half of a name that ends in `+` or `*`.
pub(super) fn device(name: &str) -> Vec<u8> {
    if let Some(begin) = name.strip_suffix('+') {
        return begin.as_bytes().to_vec();
    }
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(16, 0);
    bytes
}

impl Expressions {
    /// Continues only for packets that leave by this device (a final `+`: any ending).
    pub fn leaves_by(&mut self, name: &str) -> &mut Expressions {
        self.by_device(NftMeta::OutName, name, false)
    }

    /// Continues only for packets that came in by this device.
    pub fn came_by(&mut self, name: &str) -> &mut Expressions {
        self.by_device(NftMeta::InName, name, false)
    }

    pub(super) fn by_device(&mut self, end: NftMeta, name: &str, not: bool) -> &mut Expressions {
        let how = if not { NftCmp::IsNot } else { NftCmp::Is };
        let bytes = device(name);
        if bytes.is_empty() {
            // `+` alone matches any device: there is no condition.
            return self;
        }
        self.load_meta(end).compare(how, &bytes)
    }

    /// Continues only for packets whose mark, as far as these bits go, is this.
    pub fn marked(&mut self, mark: u32, mask: u32, not: bool) -> &mut Expressions {
        let how = if not { NftCmp::IsNot } else { NftCmp::Is };
        self.load_meta(NftMeta::Mark).masked(mask).compare(how, &mark.to_ne_bytes())
    }

    /// Keeps these bits of a number of 32 bits in this machine's order.
    pub(super) fn masked(&mut self, mask: u32) -> &mut Expressions {
        if mask == u32::MAX {
            return self;
        }
        self.bits(&mask.to_ne_bytes(), &[0; 4])
    }
}
