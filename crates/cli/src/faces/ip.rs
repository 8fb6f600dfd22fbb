//! ip and ifconfig, as far as they say something of a device's queue.

use super::{Face, refused, unknown};
use crate::capture::{Call, Reply, harmless};
use tidegate_gateway::DeviceSpec;
use tidegate_lang::ip::{self, IpCommand, ShownLink};
use tidegate_policy::Op;

/// `ip` with its words.
pub(super) fn answer(face: &mut Face<'_>, call: &Call) -> Reply {
    match ip::parse(&call.args, &face.machine.env()) {
        Err(refusal) => refused(face, "ip", refusal),
        Ok(IpCommand::Apply(ops)) => ops.into_iter().find_map(|op| apply(face, op)).unwrap_or_default(),
        Ok(IpCommand::AddLink { name, .. }) => {
            if face.machine.gateway.device(&name).is_some() && !face.machine.grows {
                return Reply::error(2, "RTNETLINK answers: File exists\n");
            }
            face.machine.gateway.add_device(&name, DeviceSpec::default());
            Reply::ok()
        }
        // The model keeps what hung on it: nothing can reach it any more.
        Ok(IpCommand::DeleteLink(_)) => Reply::ok(),
        Ok(IpCommand::ShowLinks(only)) => Reply::text(ip::show_links(&links(face, only.as_deref()))),
        Ok(IpCommand::Version) => Reply::text(ip::VERSION),
    }
}

/// `ifconfig DEV txqueuelen N`; other forms change nothing here.
pub(super) fn ifconfig(face: &mut Face<'_>, call: &Call) -> Reply {
    let Some(at) = call.args.iter().position(|word| word == "txqueuelen") else {
        return harmless(call).unwrap_or_else(|| unknown(&call.tool));
    };
    let packets = call.args.get(at + 1).and_then(|word| word.parse().ok());
    match (call.args.first(), packets) {
        (Some(dev), Some(packets)) => apply(face, Op::TxQueueLen { dev: dev.clone(), packets }).unwrap_or_default(),
        _ => Reply::error(1, "ifconfig: txqueuelen wants a device before it and a number after it\n"),
    }
}

fn apply(face: &mut Face<'_>, op: Op) -> Option<Reply> {
    face.apply(op).err().map(|error| Reply::error(2, format!("{error}\n")))
}

fn links(face: &mut Face<'_>, only: Option<&str>) -> Vec<ShownLink> {
    let (now, gateway) = (face.machine.now, &mut face.machine.gateway);
    let ids: Vec<_> = gateway.devices().collect();
    let link = |(n, id): (usize, &tidegate_gateway::DeviceId)| ShownLink {
        index: n as u32 + 1,
        name: gateway.name(*id).to_owned(),
        mtu: gateway.spec(*id).mtu,
        txqueuelen: gateway.spec(*id).tx_queue_len,
        qdisc: gateway.qdiscs(now, *id).first().map_or("pfifo_fast".to_owned(), |q| q.kind.name().to_owned()),
    };
    ids.iter().enumerate().map(link).filter(|l| only.is_none_or(|name| name == l.name)).collect()
}
