//! ip, answered.

mod routes;

use crate::batch;
use crate::call::Reply;
use crate::shim::{ToolShim, refused};
use crate::world;
use tidegate_policy::{Errno, LinkDriver, LinkOp, Op, TcError};
use tidegate_syntax::ip::{self, IpCommand, IpFlags, LinkSelector, LinkSet, ShownAddress, ShownLink};
use tidegate_syntax::{Device, Env};

/// The device by which a machine reaches itself.
const LO: &str = "lo";

/// `ip` with these words; `stdin` is a batch.
pub(super) fn answer(shim: &mut ToolShim<'_>, words: &[String], stdin: Option<&[u8]>) -> Reply {
    let words = &shim.machine.devices_meant(words);
    grow(shim, words);
    world::meet_all(shim);
    match ip::parse(words, &env(shim)) {
        Err(refusal) => refused(shim, "ip", refusal),
        Ok(parsed) => match parsed.command {
            IpCommand::Batch { force } => run_batch(shim, stdin.unwrap_or_default(), parsed.flags, force),
            command => {
                let plain: Vec<String> =
                    words.iter().skip_while(|word| word.starts_with('-')).cloned().collect();
                one(shim, command, parsed.flags, if parsed.flags.family.is_some() { words } else { &plain })
            }
        },
    }
}

/// A device that is changed is created if need be; one that is only shown is not.
fn grow(shim: &mut ToolShim<'_>, words: &[String]) {
    let changes = words.iter().any(|word| matches!(word.as_str(), "set" | "add" | "replace" | "change"));
    let object = words.iter().find(|word| !word.starts_with('-')).map(String::as_str).unwrap_or_default();
    let makes = ["link", "l", "li", "lin", "tunnel", "tun", "tuntap"].contains(&object)
        && words.iter().any(|word| matches!(word.as_str(), "add" | "a" | "ad" | "new"));
    if makes {
        // The new link is not there before; the one beneath it is.
        for pair in words.windows(2).skip(1).filter(|pair| pair[0] == "link") {
            shim.machine.grow_one(&pair[1]);
        }
    } else if changes {
        shim.machine.grow(words);
        if let Some(at) = words.iter().position(|word| word == "set") {
            for name in words.iter().skip(at + 1).take(1).filter(|name| *name != "dev") {
                shim.machine.grow_one(&name.clone());
            }
        }
    }
}

/// What ip knows: `lo` is always there.
fn env(shim: &ToolShim<'_>) -> Env {
    let mut env = shim.machine.env();
    let is_missing = shim.machine.gateway.device(LO).is_none();
    env.devices.iter_mut().filter(|_| is_missing).for_each(|devices| {
        devices.push(Device { name: LO.to_owned(), ..Device::default() });
    });
    env
}

/// One command; `words` are what to write for it again.
fn one(shim: &mut ToolShim<'_>, command: IpCommand, flags: IpFlags, words: &[String]) -> Reply {
    let done = match command {
        IpCommand::Set(set) => self::set(shim, &set),
        // The kernel takes no such name.
        IpCommand::AddLink { name, .. } if name.contains(':') => {
            Err(Reply::error(2, "RTNETLINK answers: Invalid argument\n"))
        }
        IpCommand::AddLink { name, kind, set } => {
            make_room(shim, &name);
            if let LinkDriver::Veth { peer } = &kind {
                make_room(shim, peer);
            }
            let op = Op::Link(LinkOp::Add { name, kind });
            shim.apply(op).map_err(|error| refusal(&error)).and_then(|_| self::set(shim, &set))
        }
        IpCommand::DeleteLink(name) => delete(shim, &name),
        IpCommand::Address { add, replace, dev, address, prefix } => {
            match shim.apply(Op::Link(LinkOp::Address { name: dev, add, address, prefix })) {
                Err(error) if error.errno == Errno::Exist && replace => Ok(()),
                Err(error) if error.errno == Errno::Exist && address.is_ipv4() => {
                    Err(Reply::error(2, "Error: ipv4: Address already assigned.\n"))
                }
                Err(error) if error.errno == Errno::AddrNotAvail && address.is_ipv4() => {
                    Err(Reply::error(2, "Error: ipv4: Address not found.\n"))
                }
                other => other.map(|_| ()).map_err(|error| refusal(&error)),
            }
        }
        IpCommand::FlushAddresses(dev) => flush(shim, &dev, flags.family),
        IpCommand::Route { verb, route } => routes::change(shim, verb, route),
        IpCommand::FlushRoutes => {
            shim.machine.host.routes.clear();
            Ok(())
        }
        shown => return show(shim, shown, flags),
    };
    match done {
        Ok(()) => {
            shim.did("ip", words);
            Reply::ok()
        }
        Err(reply) => reply,
    }
}

/// A link that exists only because a command named it is replaced by the one that is made by this name: it
/// did not exist after all.
pub(super) fn make_room(shim: &mut ToolShim<'_>, name: &str) {
    if shim.machine.grows
        && shim.machine.host.assumed.remove(name)
        && shim.machine.gateway.device(name).is_some()
    {
        let _ = shim.apply(Op::Link(LinkOp::Delete { name: name.to_owned() }));
    }
}

fn refusal(error: &TcError) -> Reply {
    Reply::error(2, format!("{error}\n"))
}

fn set(shim: &mut ToolShim<'_>, set: &LinkSet) -> Result<(), Reply> {
    let mut dev = set.dev.clone();
    let mut ops = Vec::new();
    ops.extend(set.mtu.map(|bytes| Op::Mtu { dev: dev.clone(), bytes }));
    ops.extend(set.txqueues.map(|count| Op::Link(LinkOp::TxQueues { name: dev.clone(), count })));
    for op in ops {
        shim.apply(op).map_err(|error| refusal(&error))?;
    }
    // It has its new name before it comes up (asked: `name e0 up` of a device that is down).
    if let Some(to) = &set.name {
        world::meet_all(shim);
        // Since a working device is not expected to have another name.
        if shim.machine.host.links.get(&dev).is_some_and(|link| link.up) {
            return Err(Reply::error(2, "RTNETLINK answers: Device or resource busy\n"));
        }
        let op = Op::Link(LinkOp::Rename { name: dev, to: to.clone() });
        shim.apply(op).map_err(|error| refusal(&error))?;
        dev = to.clone();
    }
    // Linux brings the device up first, with the queue that it had (recorded: queue-of-one-command).
    if let Some(up) = set.up {
        world::set_up(shim, &dev, up);
    }
    if let Some(packets) = set.txqueuelen {
        shim.apply(Op::TxQueueLen { dev: dev.clone(), packets }).map_err(|error| refusal(&error))?;
    }
    world::meet_all(shim);
    if let Some(link) = shim.machine.host.links.get_mut(&dev) {
        if let Some(master) = &set.master {
            link.master = Some(master.clone()).filter(|master| !master.is_empty());
        }
        if let Some(address) = &set.address {
            let raw: Option<Vec<u8>> =
                address.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
            let mac = raw.and_then(|raw| <[u8; 6]>::try_from(raw).ok());
            link.mac = mac.ok_or_else(|| Reply::error(1, format!("\"{address}\" is invalid lladdr.\n")))?;
            world::write(shim, &dev, "address", address);
        }
    }
    Ok(())
}

fn delete(shim: &mut ToolShim<'_>, name: &str) -> Result<(), Reply> {
    let kind = shim.machine.host.links.get(name).map(|link| link.kind.clone());
    if matches!(kind, Some(LinkDriver::Ethernet | LinkDriver::Loopback)) {
        return Err(Reply::error(2, "RTNETLINK answers: Operation not supported\n"));
    }
    shim.apply(Op::Link(LinkOp::Delete { name: name.into() })).map_err(|error| refusal(&error))?;
    match kind {
        // A cable goes with both its ends.
        Some(LinkDriver::Veth { peer }) => {
            let _ = shim.apply(Op::Link(LinkOp::Delete { name: peer }));
        }
        _ => {
            for link in
                shim.machine.host.links.values_mut().filter(|link| link.master.as_deref() == Some(name))
            {
                link.master = None;
            }
        }
    }
    Ok(())
}

fn flush(shim: &mut ToolShim<'_>, dev: &str, ipv6: Option<bool>) -> Result<(), Reply> {
    let addresses = shim.machine.gateway.device(dev).map(|id| shim.machine.gateway.addresses(id).to_vec());
    let mut addresses = addresses.unwrap_or_default();
    addresses.retain(|(address, _)| ipv6.is_none_or(|ipv6| ipv6 == address.is_ipv6()));
    for (address, prefix) in addresses {
        let op = Op::Link(LinkOp::Address { name: dev.into(), add: false, address, prefix });
        shim.apply(op).map_err(|error| refusal(&error))?;
    }
    Ok(())
}

fn show(shim: &mut ToolShim<'_>, command: IpCommand, flags: IpFlags) -> Reply {
    match command {
        IpCommand::ShowLinks(which) => Reply::text(listing(&links(shim, &which), &flags, false)),
        IpCommand::ShowAddresses(which) => Reply::text(listing(&links(shim, &which), &flags, true)),
        IpCommand::ShowTunnels(name) => routes::tunnels(shim, name.as_deref()),
        IpCommand::ShowRoutes { scope_link, to, dev } => {
            routes::show(shim, to, (dev.as_deref(), scope_link), &flags)
        }
        IpCommand::GetRoute(address) => routes::get(shim, address, &flags),
        IpCommand::ShowRules => Reply::text(match flags.family {
            Some(true) => "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n",
            _ => "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n",
        }),
        IpCommand::Version => Reply::text(ip::VERSION),
        IpCommand::Help(text) => Reply::error(255, text),
        IpCommand::Batch { .. } => Reply::error(1, "ip: a batch cannot call a batch\n"),
        _ => Reply::ok(),
    }
}

fn listing(links: &[ShownLink], flags: &IpFlags, addresses: bool) -> String {
    if flags.json { ip::link_json(links, flags, addresses) } else { ip::link_text(links, flags, addresses) }
}

/// The links of the machine by their number, `lo` first.
pub(super) fn links(shim: &mut ToolShim<'_>, which: &LinkSelector) -> Vec<ShownLink> {
    let (now, machine) = (shim.machine.now, &mut *shim.machine);
    // Where a policy is for it, it is a device as others.
    let mut shown: Vec<ShownLink> = machine.gateway.device(LO).is_none().then(loopback).into_iter().collect();
    for (name, link) in &machine.host.links {
        let Some(id) = machine.gateway.device(name) else { continue };
        let (spec, qdiscs) = (machine.gateway.spec(id), machine.gateway.qdiscs(now, id));
        let root = qdiscs.first();
        let own = if name == LO { loopback().addresses } else { Vec::new() };
        let addresses = machine.gateway.addresses(id).iter();
        shown.push(ShownLink {
            index: link.index,
            name: name.clone(),
            kind: link.kind.clone(),
            up: link.up,
            mtu: spec.mtu,
            txqueuelen: spec.tx_queue_len,
            qdisc: match root {
                // What it was given shows whether it is up or not, its default one from its first time up.
                _ if !link.has_default && root.is_none_or(|root| root.handle.is_none()) => "noop".to_owned(),
                Some(root) => root.kind.name().to_owned(),
                None => "noqueue".to_owned(),
            },
            mac: link.mac,
            master: link.master.clone(),
            addresses: own
                .into_iter()
                .chain(addresses.map(|(address, prefix)| ShownAddress { address: *address, prefix: *prefix }))
                .collect(),
            sent: root.map_or((0, 0), |root| (root.stats.bytes, root.stats.packets)),
        });
    }
    shown.sort_by_key(|link| link.index);
    shown.retain(|link| {
        which.dev.as_ref().is_none_or(|name| *name == link.name)
            && (!which.up || link.up)
            && which.kind.as_ref().is_none_or(|kind| link.is_of(kind))
            && which.master.as_ref().is_none_or(|master| link.master.as_ref() == Some(master))
    });
    shown
}

fn loopback() -> ShownLink {
    let address =
        |address: &str, prefix| address.parse().ok().map(|address| ShownAddress { address, prefix });
    ShownLink {
        index: 1,
        name: LO.into(),
        kind: LinkDriver::Loopback,
        up: true,
        mtu: 65_536,
        txqueuelen: 1000,
        qdisc: "noqueue".into(),
        mac: [0; 6],
        master: None,
        addresses: [address("127.0.0.1", 8), address("::1", 128)].into_iter().flatten().collect(),
        sent: (0, 0),
    }
}

fn run_batch(shim: &mut ToolShim<'_>, text: &[u8], mut flags: IpFlags, force: bool) -> Reply {
    batch::run(shim, "ip", ("-", text), force, |shim, line| {
        let args = shim.machine.devices_meant(&line.args);
        grow(shim, &args);
        world::meet_all(shim);
        let reply = match ip::parse_line(&args, &mut flags, &env(shim)) {
            Ok(command) => one(shim, command, flags, &args),
            Err(refusal) => refused(shim, "ip", refusal),
        };
        (reply, false)
    })
}
