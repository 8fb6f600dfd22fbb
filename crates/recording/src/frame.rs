//! A row of the schedule, as the frame that the recording's injector made of it.

use crate::because::{Because, Parsed};
use std::net::IpAddr;
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{FwMark, Head, Meta};

/// The addresses of the injector's frames.
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A packet that arrives.
pub struct RecordedArrival {
    /// What queues and filters read of it.
    pub meta: Meta,
    /// The packet's headers.
    pub head: Head,
    /// What people call its flow.
    pub flow: String,
}

impl RecordedArrival {
    pub(crate) fn parse(columns: &[&str], line: &str) -> Parsed<RecordedArrival> {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| {
            columns.iter().position(|c| *c == name).and_then(|at| fields.get(at)).map_or("", |f| f.trim())
        };
        let number = |name: &str| -> Parsed<u32> {
            match field(name) {
                "" => Ok(0),
                text => text.parse().because(|| format!("{name} `{text}`")),
            }
        };
        let (id, size) = (number("id")?, number("size")?);
        let dsfield = number("dsfield")? as u8;
        let protocol = protocol(field("proto"))?;
        let transport = match field("payload") {
            "" => transport(
                protocol,
                number("sport")? as u16,
                number("dport")? as u16,
                field("flags"),
                number("seq")?,
                number("ack")?,
                id,
            ),
            hex => hex_bytes(hex)?,
        };
        let address =
            |name: &str| field(name).parse::<IpAddr>().because(|| format!("{name} `{}`", field(name)));
        let network_len = size.saturating_sub(Head::ETHERNET as u32).min(65_535) as u16;
        let (kind, mut packet) = match (address("src")?, address("dst")?) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let mut p = vec![0x45, dsfield];
                p.extend(network_len.to_be_bytes());
                p.extend((id as u16).to_be_bytes());
                p.extend([0x40, 0, 64, protocol, 0, 0]);
                p.extend(src.octets());
                p.extend(dst.octets());
                (ethertype::IPV4, p)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let mut p = vec![0x60 | dsfield >> 4, dsfield << 4, 0, 0];
                p.extend(network_len.saturating_sub(40).to_be_bytes());
                p.extend([protocol, 64]);
                p.extend(src.octets());
                p.extend(dst.octets());
                (ethertype::IPV6, p)
            }
            _ => return Err("src and dst are of different families".to_owned()),
        };
        let begin = packet.len();
        let headers = begin + transport.len();
        packet.extend(transport);
        packet.resize(usize::from(network_len), 0);
        if protocol == proto::UDP && field("payload").is_empty() && packet.len() >= headers {
            let len = (packet.len() - begin) as u16;
            packet[begin + 4..begin + 6].copy_from_slice(&len.to_be_bytes());
        }
        // The injector repeats the identification at the very end of each frame that has space for it and
        // whose bytes are not given.
        let end = packet.len().checked_sub(4).filter(|at| *at >= headers && field("payload").is_empty());
        if let Some(at) = end {
            packet[at..].copy_from_slice(&id.to_be_bytes());
        }
        let mut head = Head::from_network(kind, &packet);
        head.set_addresses(DESTINATION, SOURCE);
        if matches!(protocol, proto::TCP | proto::UDP | proto::ICMP | proto::ICMPV6)
            && field("payload").is_empty()
        {
            head.fill_sums();
        } else {
            // Bytes that are given stay as they are, and so do those of protocols that the injector does not
            // know.
            head.set_summed();
            head.sum_header();
        }
        let mut meta = Meta::of(&head, size);
        // Given bytes may have a wrong checksum; who looks at those of rewritten packets looks at these.
        meta.set_rewritten(!head.has_right_transport());
        meta.mark = FwMark(number("mark")?);
        meta.priority = priority(field("prio"))?;
        meta.ident = id;
        let flow = match field("flow") {
            "" => format!("{} {}:{}", field("proto"), field("src"), field("sport")),
            name => name.to_owned(),
        };
        Ok(RecordedArrival { meta, head, flow })
    }
}

fn protocol(text: &str) -> Parsed<u8> {
    Ok(match text {
        "tcp" => proto::TCP,
        "udp" => proto::UDP,
        "icmp" => proto::ICMP,
        "icmp6" | "icmpv6" => proto::ICMPV6,
        number => number.parse().because(|| format!("proto `{number}`"))?,
    })
}

fn transport(protocol: u8, sport: u16, dport: u16, flags: &str, seq: u32, ack: u32, id: u32) -> Vec<u8> {
    let mut t = Vec::new();
    match protocol {
        proto::TCP => {
            t.extend(sport.to_be_bytes());
            t.extend(dport.to_be_bytes());
            t.extend(seq.to_be_bytes());
            t.extend(ack.to_be_bytes());
            t.extend([0x50, tcp_flags(flags), 0xff, 0xff, 0, 0, 0, 0]);
        }
        proto::UDP => {
            t.extend(sport.to_be_bytes());
            t.extend(dport.to_be_bytes());
            t.extend([0; 4]);
        }
        // An echo request: its identifier is in the port's column.
        proto::ICMP | proto::ICMPV6 => {
            t.extend([if protocol == proto::ICMP { 8 } else { 128 }, 0, 0, 0]);
            t.extend(sport.to_be_bytes());
            t.extend((id as u16).to_be_bytes());
        }
        _ => {}
    }
    t
}

fn tcp_flags(text: &str) -> u8 {
    // Without flags the injector sends an acknowledgement.
    if text.is_empty() {
        return 0x10;
    }
    text.chars().fold(0, |flags, c| {
        flags
            | match c {
                'F' => 0x01,
                'S' => 0x02,
                'R' => 0x04,
                'P' => 0x08,
                'A' => 0x10,
                'U' => 0x20,
                'E' => 0x40,
                'C' => 0x80,
                _ => 0,
            }
    })
}

/// A small number, or a class id.
fn priority(text: &str) -> Parsed<u32> {
    match text.split_once(':') {
        Some((major, minor)) => {
            let half = |t: &str| match t {
                "" => Ok(0),
                digits => u32::from_str_radix(digits, 16).map_err(|error| error.to_string()),
            };
            Ok(half(major)? << 16 | half(minor)?)
        }
        None if text.is_empty() => Ok(0),
        None => text.parse().because(|| format!("prio `{text}`")),
    }
}

fn hex_bytes(hex: &str) -> Parsed<Vec<u8>> {
    if !hex.is_ascii() || hex.len() % 2 == 1 {
        return Err(format!("payload `{hex}` is not pairs of hexadecimal digits"));
    }
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).because(|| format!("payload `{hex}`")))
        .collect()
}
