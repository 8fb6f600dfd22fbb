//! Flow keys and the hashes over them: what distinguishes one conversation from another.

/// Addresses of a flow, in the order of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addrs {
    /// Neither IPv4 nor IPv6.
    #[default]
    None,
    /// Source and destination.
    V4([u8; 4], [u8; 4]),
    /// Source and destination.
    V6([u8; 16], [u8; 16]),
}

/// What the dissector reads out of a packet, innermost headers first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKeys {
    /// EtherType of the innermost network header.
    pub ethertype: u16,
    /// IP protocol of the innermost header.
    pub protocol: u8,
    /// IPv6 flow label; 0 without one.
    pub flow_label: u32,
    /// GRE key, as on the wire; 0 without one.
    pub gre_key: [u8; 4],
    /// 802.1Q tag control information of the outer and inner tag, with the tag's own EtherType.
    pub vlan: [Option<(u16, u16)>; 2],
    /// Source and destination port; 0 without ports (ICMP, later fragments).
    pub ports: (u16, u16),
    /// Network addresses.
    pub addrs: Addrs,
    /// The outermost IPv6 header with a flow label; `None` without one.
    pub labelled: Option<Labelled>,
}

/// An IPv6 header with a flow label: what flows are distinguished by does not look behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The flow label.
    pub flow_label: u32,
    /// What the header says is next, be it options or a fragment.
    pub next_header: u8,
    /// The key of a GRE header before it.
    pub gre_key: [u8; 4],
    /// Its addresses.
    pub addrs: Addrs,
}

/// A key of the keyed hash (SipHash-2-4): two 64-bit words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKey(pub u64, pub u64);

impl FlowKeys {
    /// The keys as queues see them: where an IPv6 header has a flow label, that header's alone (recorded:
    /// answers-fragments/flow4-rxhash).
    pub fn at_label(&self) -> FlowKeys {
        let Some(Labelled { flow_label, next_header, gre_key, addrs }) = self.labelled else {
            return *self;
        };
        let (ethertype, protocol) = (crate::header::ethertype::IPV6, next_header);
        FlowKeys { ethertype, protocol, flow_label, gre_key, addrs, ports: (0, 0), ..*self }
    }

    /// The 32-bit flow hash under `key`: the same for both directions of a conversation, never 0.
    ///
    /// The ends are ordered first (smaller address and port as source), then the keys are hashed with
    /// SipHash-2-4 (Aumasson and Bernstein 2012) in the memory layout of Linux's flow keys. With a flow
    /// label, ports are left out (RFC 6437).
    pub fn hash(&self, key: HashKey) -> u32 {
        // The layout is eight-byte aligned, so each form ends in four bytes of padding.
        let mut bytes = [0u8; 72];
        bytes[0..2].copy_from_slice(&self.ethertype.to_be_bytes());
        bytes[2] = self.protocol;
        bytes[4..8].copy_from_slice(&self.flow_label.to_le_bytes());
        for (i, tag) in self.vlan.iter().enumerate() {
            if let Some((tci, tpid)) = tag {
                let at = 8 + 8 * i;
                bytes[at..at + 2].copy_from_slice(&tci.to_le_bytes());
                bytes[at + 2..at + 4].copy_from_slice(&tpid.to_be_bytes());
                // What the tag holds: another tag, or the network header.
                let inside = self.vlan.get(i + 1).copied().flatten().map_or(self.ethertype, |(_, tpid)| tpid);
                bytes[at + 4..at + 6].copy_from_slice(&inside.to_be_bytes());
            }
        }
        bytes[24..28].copy_from_slice(&self.gre_key);
        let ports = if self.flow_label == 0 { self.ports } else { (0, 0) };
        let (mut sport, mut dport) = (ports.0.to_be_bytes(), ports.1.to_be_bytes());
        let len = match self.addrs {
            Addrs::None => {
                order_ports(false, &mut sport, &mut dport);
                40
            }
            Addrs::V4(src, dst) => {
                // The comparison is of the words as they lie in memory on a little-endian machine.
                let swap = u32::from_le_bytes(dst) < u32::from_le_bytes(src);
                let (a, b) = if swap { (dst, src) } else { (src, dst) };
                order_ports(swap, &mut sport, &mut dport);
                bytes[36..40].copy_from_slice(&a);
                bytes[40..44].copy_from_slice(&b);
                48
            }
            Addrs::V6(src, dst) => {
                let swap = dst < src;
                let (a, b) = if swap { (dst, src) } else { (src, dst) };
                order_ports(swap, &mut sport, &mut dport);
                bytes[36..52].copy_from_slice(&a);
                bytes[52..68].copy_from_slice(&b);
                72
            }
        };
        bytes[28..30].copy_from_slice(&sport);
        bytes[30..32].copy_from_slice(&dport);
        match siphash(&bytes[..len], key) as u32 {
            0 => 1,
            hash => hash,
        }
    }
}

fn order_ports(_addresses_swapped: bool, sport: &mut [u8; 2], dport: &mut [u8; 2]) {
    if u16::from_le_bytes(*dport) < u16::from_le_bytes(*sport) {
        core::mem::swap(sport, dport);
    }
}

/// SipHash-2-4 of `data`.
pub fn siphash(data: &[u8], key: HashKey) -> u64 {
    let mut v = [
        key.0 ^ 0x736f_6d65_7073_6575,
        key.1 ^ 0x646f_7261_6e64_6f6d,
        key.0 ^ 0x6c79_6765_6e65_7261,
        key.1 ^ 0x7465_6462_7974_6573,
    ];
    let mut chunks = data.chunks_exact(8);
    for chunk in &mut chunks {
        let m = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        v[3] ^= m;
        sip_round(&mut v);
        sip_round(&mut v);
        v[0] ^= m;
    }
    let mut last = (data.len() as u64) << 56;
    for (i, &byte) in chunks.remainder().iter().enumerate() {
        last |= u64::from(byte) << (8 * i);
    }
    v[3] ^= last;
    sip_round(&mut v);
    sip_round(&mut v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for _ in 0..4 {
        sip_round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[inline]
fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

/// Bob Jenkins' hash of 32-bit words (lookup3's `hashword`, 2006, public domain), with the seed as initial
/// value.
pub fn jenkins(words: &[u32], seed: u32) -> u32 {
    let init = 0xdead_beef_u32.wrapping_add((words.len() as u32) << 2).wrapping_add(seed);
    let (mut a, mut b, mut c) = (init, init, init);
    let mut rest = words;
    while rest.len() > 3 {
        a = a.wrapping_add(rest[0]);
        b = b.wrapping_add(rest[1]);
        c = c.wrapping_add(rest[2]);
        (a, b, c) = jenkins_mix(a, b, c);
        rest = &rest[3..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(rest[0]);
    b = b.wrapping_add(rest.get(1).copied().unwrap_or(0));
    c = c.wrapping_add(rest.get(2).copied().unwrap_or(0));
    jenkins_final(a, b, c)
}

fn jenkins_mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    (a, b, c)
}

fn jenkins_final(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a real kernel hashed the same datagram with a tag of VLAN 5, and without.
    #[test]
    fn a_tag_is_hashed_with_its_content() {
        let plain = FlowKeys {
            ethertype: 0x0800,
            protocol: 17,
            ports: (1000, 2000),
            addrs: Addrs::V4([10, 0, 0, 1], [10, 9, 0, 1]),
            ..FlowKeys::default()
        };
        let tagged = FlowKeys { vlan: [Some((5, 0x8100)), None], ..plain };
        let hashes = [plain, tagged].map(|keys| keys.hash(HashKey::default()));
        assert_eq!(hashes, [4_029_525_671, 3_513_174_969]);
    }

    #[test]
    fn siphash_paper_vector() {
        let key = HashKey(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let data: [u8; 15] = core::array::from_fn(|i| i as u8);
        assert_eq!(siphash(&data, key), 0xa129_ca61_49be_45e5);
    }
}
