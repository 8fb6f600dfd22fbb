//! Echo requests and answers as bytes (RFC 792, RFC 4443).

/// Bytes in front of the data of an echo message.
pub(crate) const HEAD: usize = 8;
/// Bytes of data that identify a request and its sender.
pub(crate) const SIGNED: usize = 16;
/// The most data: with both heads it is as long as IPv4 packets may be.
pub(crate) const MOST_DATA: u16 = 65_507;

/// How the replies of one target are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    /// In the data, where there is space for it.
    pub(crate) token: u64,
    /// In the head of ICMP messages, where the kernel leaves it to us.
    pub(crate) identifier: u16,
}

/// The data of request `number`: this many bytes.
pub(crate) fn data(sign: Sign, number: u64, size: u16) -> Vec<u8> {
    let mut bytes = [sign.token.to_be_bytes(), number.to_be_bytes()].concat();
    // As ping does: bytes that count up, so that no link compresses them to nothing.
    bytes.extend((SIGNED..size.into()).map(|at| at as u8));
    bytes.truncate(size.into());
    bytes
}

/// An echo request with this data.
pub(crate) fn request(v6: bool, sign: Sign, number: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![if v6 { 128 } else { 8 }, 0, 0, 0];
    bytes.extend(sign.identifier.to_be_bytes());
    bytes.extend((number as u16).to_be_bytes());
    bytes.extend(data);
    if !v6 {
        // Over IPv6 the kernel computes it, which knows the addresses that belong to it.
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// The request that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestId {
    /// That one.
    Number(u64),
    /// One whose number ends in these sixteen bits.
    Sequence(u16),
}

/// The request that an echo message is about, from its type on: a reply, or our request as quoted. `None`:
/// none of tidegate's.
pub(crate) fn echo(bytes: &[u8], kinds: [u8; 2], sign: Sign, raw: bool) -> Option<RequestId> {
    let head = bytes.get(..HEAD)?;
    if !kinds.contains(&head[0]) || head[1] != 0 {
        return None;
    }
    // Otherwise the kernel gave it a number of its own, and sorts the answers by that.
    if raw && head[4..6] != sign.identifier.to_be_bytes() {
        return None;
    }
    match signed(&bytes[HEAD..], sign) {
        Signed::Yes(number) => Some(RequestId::Number(number)),
        Signed::TooShort => Some(RequestId::Sequence(u16::from_be_bytes([head[6], head[7]]))),
        Signed::No => None,
    }
}

/// Whether data is ours.
pub(crate) enum Signed {
    /// Of that request.
    Yes(u64),
    /// It is another's.
    No,
    /// The quote is too short to tell.
    TooShort,
}

/// Whose data this is.
pub(crate) fn signed(data: &[u8], sign: Sign) -> Signed {
    let Some(number) = data.get(8..SIGNED).and_then(|bytes| bytes.try_into().ok()) else {
        return Signed::TooShort;
    };
    if data[..8] == sign.token.to_be_bytes() { Signed::Yes(u64::from_be_bytes(number)) } else { Signed::No }
}

/// What follows the IPv4 header.
pub(crate) fn behind_ip(bytes: &[u8]) -> &[u8] {
    let length = usize::from(bytes.first().copied().unwrap_or_default() & 0x0f) * 4;
    bytes.get(length..).unwrap_or_default()
}

/// The Internet checksum (RFC 1071).
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from));
    let mut sum: u32 = words.fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    });
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// An ICMP message in words.
pub(crate) fn words(v6: bool, kind: u8, code: u8) -> String {
    let known = match (v6, kind, code) {
        (false, 3, 0) => "network unreachable",
        (false, 3, 1) | (true, 1, 3) => "host unreachable",
        (false, 3, 2) => "protocol unreachable",
        (false, 3, 3) | (true, 1, 4) => "port unreachable",
        (false, 3, 4) | (true, 2, 0) => "packet too big",
        (false, 3, 9 | 10 | 13) | (true, 1, 1) => "prohibited",
        (true, 1, 0) => "no route",
        (true, 1, 5 | 6) => "refused by its policy",
        (false, 11, 0) | (true, 3, 0) => "time exceeded in transit",
        _ => return format!("ICMP type {kind} code {code}"),
    };
    known.to_owned()
}

/// Is this ICMP message the end of a hop limit?
pub(crate) fn is_expiry(v6: bool, kind: u8, code: u8) -> bool {
    code == 0 && kind == if v6 { 3 } else { 11 }
}

/// Whether it reports a closed port.
pub(crate) fn is_closed_port(v6: bool, kind: u8, code: u8) -> bool {
    (kind, code) == if v6 { (1, 4) } else { (3, 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGN: Sign = Sign { token: 0x0102_0304_0506_0708, identifier: 0xabcd };

    #[test]
    fn a_request_has_its_checksum_and_its_answer_is_known() {
        let message = request(false, SIGN, 0x1_0002, &data(SIGN, 0x1_0002, 56));
        assert_eq!((message.len(), &message[..2], checksum(&message)), (64, &[8, 0][..], 0));
        let mut answer = message.clone();
        answer[0] = 0;
        assert_eq!(echo(&answer, [0, 8], SIGN, true), Some(RequestId::Number(0x1_0002)));
        assert_eq!(echo(&message, [0, 0], SIGN, true), None, "a request is no answer");
        let other = Sign { identifier: 1, ..SIGN };
        assert_eq!(
            (echo(&answer, [0, 8], other, true), echo(&answer, [0, 8], other, false).is_some()),
            (None, true)
        );
        assert_eq!(echo(&answer, [0, 8], Sign { token: 1, ..SIGN }, true), None);
    }

    #[test]
    fn short_requests_are_known_by_their_sequence() {
        for size in 0..SIGNED as u16 {
            let message = request(true, SIGN, 0x1_0002, &data(SIGN, 0x1_0002, size));
            assert_eq!(echo(&message, [128, 129], SIGN, true), Some(RequestId::Sequence(2)), "{size}");
        }
        assert_eq!(echo(&[0; 7], [0, 8], SIGN, false), None);
    }

    #[test]
    fn an_odd_byte_is_summed_as_if_a_zero_followed() {
        // RFC 1071's example, and one byte more.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
        assert_eq!(checksum(&[&bytes[..], &[0x10]].concat()), !0xedf2);
        assert_eq!(checksum(&[]), 0xffff);
    }

    #[test]
    fn what_follows_the_ip_header() {
        assert_eq!(behind_ip(&[&[0x46][..], &[0; 23], &[7]].concat()), &[7]);
        assert_eq!((behind_ip(&[0x45]), behind_ip(&[])), (&[][..], &[][..]));
    }
}
