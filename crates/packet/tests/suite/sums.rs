//! Checksums (RFC 1071, RFC 1624) and fields of headers that are written.

use tidegate_packet::header::ethertype::{IPV4, IPV6};
use tidegate_packet::header::proto::{ICMP, ICMPV6, IGMP, TCP, UDP};
use tidegate_packet::{Head, checksum};

/// The ones' complement sum of bytes; what a right checksum completes to 0xffff (or 0, which is the same
/// number).
fn sum(bytes: &[u8]) -> u32 {
    let sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum >> 16) + (sum & 0xffff)
}

/// A packet with a payload of this many bytes behind 8 of a header, which count up.
fn packet(v6: bool, protocol: u8, payload: usize) -> Vec<u8> {
    let header = if protocol == TCP { 20 } else { 8 };
    let len = (header + payload) as u16;
    let mut bytes = if v6 {
        let [high, low] = len.to_be_bytes();
        let mut front = vec![0x60, 0, 0, 0, high, low, protocol, 64];
        front.extend([[0xfd, 1].repeat(8), [0xfe, 2].repeat(8)].concat());
        front
    } else {
        let [high, low] = (len + 20).to_be_bytes();
        vec![0x45, 0, high, low, 1, 2, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 9, 0, 2]
    };
    let front = bytes.len();
    bytes.extend((0..header + payload).map(|at| at as u8));
    match protocol {
        // Offset of the checksum.
        TCP => bytes[front + 16..front + 18].fill(0),
        UDP => {
            bytes[front + 4..front + 6].copy_from_slice(&len.to_be_bytes());
            bytes[front + 6..front + 8].fill(0);
        }
        _ => bytes[front + 2..front + 4].fill(0),
    }
    bytes
}

/// The sum over the whole of what a transport's checksum covers.
fn covered(v6: bool, protocol: u8, bytes: &[u8]) -> u32 {
    let front = if v6 { 40 } else { 20 };
    let len = ((bytes.len() - front) as u16).to_be_bytes();
    let pseudo = match (v6, protocol) {
        (_, ICMP | IGMP) => Vec::new(),
        (false, _) => [&bytes[12..20], &[0, protocol], &len].concat(),
        (true, _) => [&bytes[8..40], &[0, protocol], &len].concat(),
    };
    sum(&[&pseudo[..], &bytes[front..]].concat())
}

#[test]
fn checksums_are_written_once_and_right() {
    // 200 bytes of payload: what is behind those kept counts all the same.
    for payload in [0, 1, 12, 85, 86, 87, 200, 201] {
        for (v6, protocol) in [
            (false, TCP),
            (false, UDP),
            (false, ICMP),
            (false, IGMP),
            (true, TCP),
            (true, UDP),
            (true, ICMPV6),
        ] {
            let mut bytes = packet(v6, protocol, payload);
            let mut head = Head::from_network(if v6 { IPV6 } else { IPV4 }, &bytes);
            assert!(!head.is_summed());
            head.fill_sums();
            assert!(head.is_summed() && head.has_right_header() && head.has_right_transport());
            let kept = head.network().len();
            bytes[..kept].copy_from_slice(head.network());
            let output = format!("IPv6 {v6}, protocol {protocol}, payload {payload}");
            assert_eq!(covered(v6, protocol, &bytes), 0xffff, "{output}");
            if !v6 {
                assert_eq!(sum(&bytes[..20]), 0xffff, "{output}");
            }
            // One byte that is wrong is seen, in the header or behind it.
            let at = head.transport().expect("there is one").at;
            for wrong in [at, 12] {
                if wrong == 12 && matches!(protocol, ICMP | IGMP) {
                    continue;
                }
                let mut other = head.clone();
                other.network_mut()[wrong] ^= 0x10;
                assert!(!other.has_right_transport(), "{output}, byte {wrong}");
                assert_eq!(other.has_right_header(), v6 || wrong != 12, "{output}");
            }
            let mut again = head.clone();
            again.network_mut()[at] ^= 1;
            again.fill_sums();
            assert!(!again.has_right_transport(), "they are written already");
        }
    }
}

/// UDP: 0 means that there is no checksum, and a computed 0 is written as all ones (RFC 768). TCP has no such
/// rule.
#[test]
fn no_checksum_and_a_checksum_of_zero() {
    for (protocol, written) in [(UDP, 0xffff_u16), (TCP, 0)] {
        let mut bytes = packet(false, protocol, 4);
        let end = bytes.len();
        bytes[end - 2..].fill(0);
        // What completes the rest to all ones.
        let place = if protocol == TCP { 36 } else { 26 };
        let rest = covered(false, protocol, &bytes) as u16;
        bytes[end - 2..].copy_from_slice(&(!rest).to_be_bytes());
        let mut head = Head::from_network(IPV4, &bytes);
        head.fill_sums();
        assert_eq!(head.network()[place..place + 2], written.to_be_bytes(), "{protocol}");
        // Either form of nothing is right for TCP; a UDP checksum of 0 is left out.
        for form in [[0, 0], [0xff, 0xff]] {
            head.network_mut()[place..place + 2].copy_from_slice(&form);
            assert!(head.has_right_transport(), "{protocol} {form:?}");
        }
        head.network_mut()[place..place + 2].copy_from_slice(&[0, 1]);
        assert!(!head.has_right_transport());
    }
    let mut head = Head::from_network(IPV4, &packet(false, UDP, 4));
    head.set_summed();
    assert!(head.has_right_transport(), "it was left out");
}

#[test]
fn what_follows_the_network_header() {
    let rewritten = |kind, bytes: &[u8]| {
        Head::from_network(kind, bytes).transport().map(|it| (it.protocol, it.at, it.len))
    };
    assert_eq!(rewritten(IPV4, &packet(false, UDP, 4)), Some((UDP, 20, 12)));
    assert_eq!(rewritten(IPV6, &packet(true, TCP, 4)), Some((TCP, 40, 24)));
    let mut fragment = packet(false, UDP, 4);
    fragment[6..8].copy_from_slice(&[0x20, 0]);
    assert_eq!(rewritten(IPV4, &fragment), Some((UDP, 20, 12)), "the first has the header");
    fragment[6..8].copy_from_slice(&[0, 1]);
    assert_eq!(rewritten(IPV4, &fragment), None);
    assert_eq!((rewritten(0x0806, &fragment), rewritten(IPV4, &[0x45; 3])), (None, None));
}

#[test]
fn a_sound_header_tells_its_length() {
    let mut head = Head::from_network(IPV4, &packet(false, UDP, 12));
    assert_eq!(head.sound_header(100), None, "its checksum is not written");
    head.fill_sums();
    assert_eq!([40, 41, 39, 0].map(|len| head.sound_header(len)), [Some(40), Some(40), None, None]);
    let mut other = head.clone();
    other.network_mut()[0] = 0x55;
    other.sum_header();
    assert_eq!(other.sound_header(100), None);
    let mut small = head.clone();
    small.network_mut()[2..4].copy_from_slice(&[0, 19]);
    small.sum_header();
    assert_eq!(small.sound_header(100), None);
}

/// RFC 1624: what is written into a packet takes the checksums along that cover it, and a wrong one stays
/// wrong.
#[test]
fn written_bytes_keep_checksums_right() {
    for (v6, protocol) in
        [(false, TCP), (false, UDP), (false, ICMP), (true, TCP), (true, UDP), (true, ICMPV6)]
    {
        let mut head = Head::from_network(if v6 { IPV6 } else { IPV4 }, &packet(v6, protocol, 12));
        head.fill_sums();
        let (addresses, front) = if v6 { (8, 40) } else { (12, 20) };
        for (at, new) in [
            (addresses, &[9, 8, 7, 6][..]),
            (front, &[1, 1]),
            (front + 9, &[5]),
            (1, &[0x20]),
            (addresses + 3, &[4, 3]),
        ] {
            let mut bytes = head.network().to_vec();
            checksum::rewrite(&mut bytes, at, new);
            assert_eq!(bytes[at..at + new.len()], *new);
            let output = format!("IPv6 {v6}, protocol {protocol}, byte {at}");
            assert_eq!(covered(v6, protocol, &bytes), 0xffff, "{output}");
            if !v6 {
                assert_eq!(sum(&bytes[..20]), 0xffff, "{output}");
            }
        }
        let len = head.network().len();
        let mut bytes = head.network().to_vec();
        checksum::rewrite(&mut bytes, len - 1, &[1, 2]);
        assert_eq!(bytes, head.network(), "what does not fit is not written");
        checksum::rewrite(&mut bytes, 0, &[0x66; 36]);
        assert_eq!(bytes, head.network(), "nor what is too long");
    }
    // A later fragment has no transport's checksum, and UDP may have none at all.
    let mut fragment = packet(false, UDP, 12);
    fragment[7] = 1;
    let before = fragment[26..28].to_vec();
    checksum::rewrite(&mut fragment, 12, &[9, 9, 9, 9]);
    assert_eq!(fragment[26..28], before[..]);
    let mut none = packet(false, UDP, 12);
    checksum::rewrite(&mut none, 20, &[9, 9]);
    assert_eq!(none[26..28], [0, 0]);
}

/// A caller that rewrites bytes itself names the checksums that cover them.
#[test]
fn a_head_updates_the_named_checksums() {
    for protocol in [TCP, UDP] {
        let mut head = Head::from_network(IPV4, &packet(false, protocol, 12));
        let transport = head.transport();
        head.replace(12, &[9, 9, 9, 9], true, transport);
        assert_eq!(head.network()[10..16], [0, 0, 9, 9, 9, 9], "there is none yet");
        head.fill_sums();
        head.replace(12, &[1, 2, 3, 4], true, transport);
        head.replace(20, &[7, 7], false, transport);
        assert!(head.has_right_header() && head.has_right_transport(), "{protocol}");
        head.replace(12, &[1, 2, 3, 5], false, transport);
        assert!(!head.has_right_header() && head.has_right_transport());
        head.replace(8, &[1, protocol], true, None);
        assert!(!head.has_right_header(), "as wrong as before");
        let before = head.network().to_vec();
        head.replace(before.len() - 1, &[1, 2], true, transport);
        assert_eq!(head.network(), before);
    }
}

#[test]
fn the_ds_field_of_either_family() {
    for value in [0x00, 0xb8, 0x03, 0xff, 0x5a] {
        let mut six = Head::from_network(IPV6, &[0x6a, 0xa5, 0x43, 0x21, 0, 0, 17, 64]);
        six.set_dsfield(value);
        assert_eq!(six.network()[..4], [0x60 | value >> 4, value << 4 | 5, 0x43, 0x21], "{value:#x}");
        assert_eq!((six.dsfield(), six.frame_dsfield()), (value, value));
        for summed in [false, true] {
            let mut four = Head::from_network(IPV4, &packet(false, UDP, 4));
            if summed {
                four.fill_sums();
            }
            let before = four.network()[10..12].to_vec();
            four.set_dsfield(value);
            assert_eq!((four.dsfield(), four.has_right_header()), (value, summed));
            assert_eq!(four.network()[10..12] == before[..], !summed || value == 0);
        }
    }
    let mut other = Head::from_network(0x0806, &[7; 28]);
    other.set_dsfield(0xff);
    assert_eq!((other.dsfield(), other.network()), (0, &[7; 28][..]));
}

#[test]
fn frames_have_a_link_header() {
    let mut frame = vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd];
    frame.extend(packet(true, UDP, 4));
    let head = Head::from_frame(&frame);
    assert_eq!((head.ethertype(), head.frame(), head.is_summed()), (IPV6, &frame[..], true));
    assert_eq!(
        [-14, -1, 0, 6, 100].map(|at| head.byte_at(at)),
        [Some(1), Some(0xdd), Some(0x60), Some(UDP), None]
    );
    assert_eq!((head.byte_at(-15), Head::from_frame(&frame[..5]).frame().len()), (None, 14));
    let mut head = Head::from_network(IPV4, &packet(false, UDP, 4));
    head.set_addresses([1; 6], [2; 6]);
    assert_eq!(head.frame()[..14], [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0]);
    head.frame_mut()[12..14].copy_from_slice(&[0x86, 0xdd]);
    assert_eq!((head.ethertype(), head.frame_ethertype()), (IPV4, IPV6));
    let mut taken = head.clone();
    taken.take_up_ethertype();
    assert_eq!(taken.ethertype(), IPV6);
    // On arrival: the EtherType of the frame counts again, and bytes behind the IP length are cut.
    head.arrive(24);
    assert_eq!((head.frame_ethertype(), head.network().len()), (IPV4, 24));
    head.arrive(30);
    assert_eq!(head.network().len(), 24);
    head.arrive(24);
    assert_eq!(head.network().len(), 24);
    head.flip(14, 0);
    head.flip(14, 9);
    assert_eq!(head.network()[0], 0x46);
    head.flip(99, 1);
}

/// Tags are written into the frame as it leaves, the outermost first; what is too long is cut.
#[test]
fn tags_on_the_wire() {
    let bytes = packet(false, UDP, 200);
    let mut head = Head::from_network(IPV4, &bytes);
    assert!(head.push_tag(0x8100, 7) && head.push_tag(0x88a8, 9));
    assert_eq!(head.tags(), [(0x88a8, 9), (0x8100, 7)]);
    let wire = head.on_wire();
    assert_eq!(wire.frame()[12..24], [0x88, 0xa8, 0, 9, 0x81, 0, 0, 7, 8, 0, 0x45, 0]);
    assert_eq!((wire.tags().len(), wire.frame().len(), &wire.frame()[22..]), (0, 128, &bytes[..106]));
    head.pop_tag();
    assert_eq!(head.tags(), [(0x8100, 7)]);
    let mut short = Head::from_network(IPV4, &bytes[..30]);
    assert!(short.push_tag(0x8100, 7));
    assert_eq!(
        (short.on_wire().frame().len(), &short.on_wire().frame()[16..]),
        (48, &[&[8, 0], &bytes[..30]].concat()[..])
    );
    short.pop_tag();
    short.pop_tag();
    assert!(short.tags().is_empty());
}
