//! Why a basic or flower filter matches a packet or does not: what the engine noted of each condition, with
//! what the packet has there.

use super::filters::Here;
use crate::bytes::protocol_name;
use std::net::{Ipv4Addr, Ipv6Addr};
use tidegate_packet::{Addrs, Dissector, Head, dissect, fragment};
use tidegate_policy::dump::U32Hits;
use tidegate_policy::{FilterParams, FlowerField};
use tidegate_syntax::tc::conditions;

/// One sentence for each condition that was evaluated, up to the one that decided.
pub(super) fn condition_sentences(params: &FilterParams, hits: &U32Hits, here: Here<'_>) -> Vec<String> {
    let mut why = Vec::new();
    if let FilterParams::Flower(flower) = params {
        let device = flower.indev.as_ref().filter(|indev| !indev.name.is_empty());
        match device {
            Some(indev) if hits.mark == 0 => {
                return vec![format!("`indev {}` does not hold: it came in by another device", indev.name)];
            }
            Some(indev) => why.push(format!("`indev {}` holds", indev.name)),
            None => {}
        }
    }
    for (at, (condition, waiting)) in conditions(params).iter().zip(&hits.keys).enumerate() {
        let matches = *waiting > 0;
        let fact = match params {
            FilterParams::Flower(flower) => flower.keys.get(at).and_then(|key| match key.field {
                FlowerField::CtState | FlowerField::CtMark if !here.tracked => {
                    Some("nothing here looks connections up".to_owned())
                }
                _ if key.never_holds() => {
                    Some("no bit of the address is compared, and no other address".to_owned())
                }
                _ if here.rewritten => None,
                field => fact(field, here.head),
            }),
            _ => None,
        };
        let fact = fact.map_or(String::new(), |fact| format!(": {fact}"));
        why.push(format!("`{}` {}{fact}", condition.text, if matches { "holds" } else { "does not hold" }));
        // Behind `or` the first that holds decides, behind `and` the first that does not.
        if matches == condition.or {
            break;
        }
    }
    why
}

/// What a packet has where a field is compared, of those that people know by sight.
fn fact(field: FlowerField, head: &Head) -> Option<String> {
    // Flower does not look into tunnels.
    let keys = dissect(head, Dissector::Legacy);
    let addresses = || match keys.addrs {
        Addrs::V4(source, destination) => {
            Some([source, destination].map(|bytes| Ipv4Addr::from(bytes).to_string()))
        }
        Addrs::V6(source, destination) => {
            Some([source, destination].map(|bytes| Ipv6Addr::from(bytes).to_string()))
        }
        Addrs::None => None,
    };
    let hidden = || (keys.ports == (0, 0)).then(|| fragment(head.ethertype(), head.network())).flatten();
    Some(match field {
        FlowerField::SrcPort | FlowerField::DstPort if hidden().is_some() => {
            "of a fragment no port is read".to_owned()
        }
        FlowerField::IpProto => format!("the protocol is {}", protocol_name(keys.protocol)),
        FlowerField::SrcPort => format!("the source port is {}", keys.ports.0),
        FlowerField::DstPort => format!("the destination port is {}", keys.ports.1),
        FlowerField::SrcIp => format!("the source is {}", addresses()?[0]),
        FlowerField::DstIp => format!("the destination is {}", addresses()?[1]),
        _ => return None,
    })
}
