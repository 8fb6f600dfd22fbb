//! The machine as scripts see it without calling a tool: the files of `/sys`, and what is written to them.

use super::host::{self, NET};
use super::shim::ToolShim;
use crate::call::{Effect, FileChange, LinkChange};
use std::net::IpAddr;
use std::path::PathBuf;
use tidegate_gateway::{DeviceSpec, GatewayContext};
use tidegate_policy::{LinkDriver, LinkOp, Op, TcError, TunnelMode};

/// The network of the first device, which leads out: RFC 5737's first documentation network, the gateway at
/// its first address.
const OUTSIDE: [u8; 4] = [192, 0, 2, 2];
const PROVIDER: [u8; 4] = [192, 0, 2, 1];

impl ToolShim<'_> {
    /// Carries out an operation.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn apply(&mut self, op: Op) -> Result<Option<String>, TcError> {
        let world = GatewayContext { now: self.machine.now, pool: self.pool, random: self.draws };
        let warning = self.machine.gateway.apply(world, &op)?;
        follow(self, &op);
        if let Op::Class(class) = &op {
            self.machine.classes_made.insert((class.dev.clone(), class.classid.minor()));
        }
        self.machine.log.push(op);
        Ok(warning)
    }
}

/// The machine before the script: its devices exist and have addresses; returns the files that describe them.
///
/// The first device that can lead out has 192.0.2.2/24 and the default route by 192.0.2.1, the others
/// 192.168.1.1/24 and so on: enough for scripts that look for the device of the default route.
pub(super) fn begin(shim: &mut ToolShim<'_>, devices: &[String]) -> Vec<(PathBuf, String)> {
    for name in devices {
        shim.machine.gateway.add_device(name, DeviceSpec::of(&LinkDriver::of_name(name)));
        shim.machine.host.assumed.insert(name.clone());
    }
    meet_all(shim);
    give_addresses(shim);
    let mut files = Vec::new();
    let host = &shim.machine.host;
    let loopback = host::LinkState {
        index: 1,
        kind: LinkDriver::Loopback,
        up: true,
        has_default: true,
        mac: [0; 6],
        master: None,
        tuned: Default::default(),
    };
    files.extend(host::files_of("lo", &loopback, &DeviceSpec::of(&LinkDriver::Loopback)));
    for (name, link) in &host.links {
        if let Some(id) = shim.machine.gateway.device(name) {
            files.extend(host::files_of(name, link, &shim.machine.gateway.spec(id)));
        }
    }
    for module in &host.modules {
        files.extend(host::module_files(module));
    }
    let found =
        files.iter().map(|(path, text)| (path.to_string_lossy().into_owned(), text.trim().to_owned()));
    shim.machine.host.files.extend(found);
    files
}

/// Takes in links that came into being by being named.
pub(super) fn meet_all(shim: &mut ToolShim<'_>) {
    let machine = &mut *shim.machine;
    for id in machine.gateway.devices() {
        machine.host.meet(machine.gateway.name(id));
    }
}

fn give_addresses(shim: &mut ToolShim<'_>) {
    let leads = |kind: &LinkDriver| {
        matches!(
            kind,
            LinkDriver::Ethernet | LinkDriver::PointToPoint | LinkDriver::Raw(_) | LinkDriver::Bridge
        )
    };
    let mut names: Vec<(bool, u32, String)> = shim
        .machine
        .host
        .links
        .iter()
        .filter(|(_, link)| leads(&link.kind))
        // A modem's device leads out, a bridge does not.
        .map(|(name, link)| (link.kind == LinkDriver::Bridge, link.index, name.clone()))
        .collect();
    names.sort();
    if let Some(modem) =
        names.iter().position(|(_, _, name)| name.starts_with("ppp") || name.starts_with("wan"))
    {
        names[..=modem].rotate_right(1);
    }
    for (number, (_, _, name)) in (0_u8..=254).zip(names) {
        let address = if number == 0 { OUTSIDE } else { [192, 168, number, 1] };
        let op = Op::Link(LinkOp::Address {
            name: name.clone(),
            add: true,
            address: IpAddr::from(address),
            prefix: 24,
        });
        let world = GatewayContext { now: shim.machine.now, pool: shim.pool, random: shim.draws };
        // One that has an address keeps it.
        let bare = shim
            .machine
            .gateway
            .device(&name)
            .is_some_and(|id| shim.machine.gateway.addresses(id).is_empty());
        if bare && shim.machine.gateway.apply(world, &op).is_ok() && number == 0 {
            shim.machine.host.assumes_default = true;
            shim.machine.host.routes.push(tidegate_syntax::ip::Route {
                to: (IpAddr::from([0, 0, 0, 0]), 0),
                via: Some(IpAddr::from(PROVIDER)),
                dev: Some(name),
                src: None,
                metric: 0,
                scope_link: false,
                kernel: false,
            });
        }
    }
}

/// What an operation that was carried out changes beside the gateway.
pub(super) fn follow(shim: &mut ToolShim<'_>, op: &Op) {
    match op {
        Op::TxQueueLen { dev, packets } => {
            write(shim, dev, "tx_queue_len", &packets.to_string());
            change(shim, LinkChange::QueueLength { name: dev.to_owned(), packets: *packets });
        }
        Op::Mtu { dev, bytes } => {
            write(shim, dev, "mtu", &bytes.to_string());
            change(shim, LinkChange::Mtu { name: dev.to_owned(), bytes: *bytes });
        }
        Op::Link(LinkOp::Add { name, kind }) => {
            appear(shim, name, kind);
            if let LinkDriver::Veth { peer } = kind {
                appear(shim, peer, &LinkDriver::Veth { peer: name.clone() });
            }
        }
        Op::Link(LinkOp::Delete { name }) => {
            shim.machine.host.forget(name);
            shim.effects.push(Effect::File(FileChange::Remove { path: format!("{NET}/{name}") }));
            shim.effects.push(Effect::Link(LinkChange::Delete(name.clone())));
        }
        Op::Link(LinkOp::Rename { name, to }) => {
            if let Some(link) = shim.machine.host.links.remove(name) {
                shim.machine.host.links.insert(to.clone(), link);
            }
            shim.machine.host.gone.insert(name.clone());
            shim.machine.host.gone.remove(to);
            for route in shim.machine.host.routes.iter_mut().filter(|route| route.dev.as_ref() == Some(name))
            {
                route.dev = Some(to.clone());
            }
            let (from, to_dir) = (format!("{NET}/{name}"), format!("{NET}/{to}"));
            shim.effects.push(Effect::File(FileChange::Rename { from, to: to_dir }));
            // The kernel renames only what is down.
            change(shim, LinkChange::SetUp { name: name.clone(), up: false });
            change(shim, LinkChange::Rename { name: name.clone(), to: to.clone() });
        }
        _ => {}
    }
}

fn appear(shim: &mut ToolShim<'_>, name: &str, kind: &LinkDriver) {
    shim.machine.host.add(name, kind.clone(), false);
    let (host, gateway) = (&shim.machine.host, &shim.machine.gateway);
    let Some((link, spec)) = host.links.get(name).zip(gateway.device(name).map(|id| gateway.spec(id))) else {
        return;
    };
    let files = host::files_of(name, link, &spec);
    let kind = match kind {
        LinkDriver::Dummy => "dummy",
        LinkDriver::Bridge => "bridge",
        LinkDriver::Tunnel(tunnel) => match tunnel.mode {
            TunnelMode::Ipip => "ipip",
            TunnelMode::Sit => "sit",
            TunnelMode::Gre => "gre",
            TunnelMode::Gretap => "gretap",
            TunnelMode::Ip6tnl => "ip6tnl",
        },
        _ => "ifb",
    };
    let request = LinkChange::Create { name: name.into(), kind: kind.into(), txqlen: spec.tx_queue_len };
    shim.effects.push(Effect::Link(request));
    for (path, text) in files {
        let path = path.to_string_lossy().into_owned();
        shim.machine.host.files.insert(path.clone(), text.trim().to_owned());
        shim.effects.push(Effect::File(FileChange::Write { path, text }));
    }
}

/// Brings a link up or down.
pub(super) fn set_up(shim: &mut ToolShim<'_>, dev: &str, up: bool) {
    meet_all(shim);
    let Some(link) = shim.machine.host.links.get_mut(dev) else { return };
    if link.up != up {
        link.up = up;
        link.has_default |= up;
        if let Some(id) = shim.machine.gateway.device(dev) {
            let world = GatewayContext { now: shim.machine.now, pool: shim.pool, random: shim.draws };
            shim.machine.gateway.set_up(world, id, up);
        }
        let kind = link.kind.clone();
        write(shim, dev, "operstate", if up { "up" } else { "down" });
        write(shim, dev, "carrier", if up { "1" } else { "0" });
        write(shim, dev, "flags", &format!("{:#x}", host::flags(&kind, up) & !0x40));
    }
    change(shim, LinkChange::SetUp { name: dev.to_owned(), up });
}

/// Writes a file of a link.
pub(super) fn write(shim: &mut ToolShim<'_>, dev: &str, file: &str, text: &str) {
    let path = format!("{NET}/{dev}/{file}");
    shim.machine.host.files.insert(path.clone(), text.to_owned());
    shim.effects.push(Effect::File(FileChange::Write { path, text: format!("{text}\n") }));
}

fn change(shim: &mut ToolShim<'_>, change: LinkChange) {
    shim.effects.push(Effect::Link(change));
}

/// The content of files that scripts write to: changes are applied to the model.
pub(super) fn apply_written_files(shim: &mut ToolShim<'_>, files: &[(String, String)]) {
    for (path, text) in files {
        let before = shim.machine.host.files.insert(path.clone(), text.clone());
        // A file that we never wrote is the kernel's own and shows nothing of the script.
        if before.as_ref().is_none_or(|before| before == text) {
            continue;
        }
        let Some((dev, file)) =
            path.strip_prefix(NET).and_then(|rest| rest.trim_start_matches('/').split_once('/'))
        else {
            if path.ends_with("/htb_hysteresis") {
                shim.machine.gateway.switch(|switches| switches.htb_hysteresis = text.trim() != "0");
            }
            continue;
        };
        let (dev, number) = (dev.to_owned(), text.parse::<u32>());
        let op = match (file, number) {
            ("tx_queue_len", Ok(packets)) => Op::TxQueueLen { dev: dev.clone(), packets },
            ("mtu", Ok(bytes)) => Op::Mtu { dev: dev.clone(), bytes },
            _ => {
                shim.machine
                    .kernel_log
                    .push(format!("{dev}: {file}: `{text}` is not a number; nothing was changed"));
                continue;
            }
        };
        let word = if file == "mtu" { "mtu" } else { "txqueuelen" };
        if shim.apply(op).is_ok() {
            let words = ["link", "set", "dev", &dev, word, text].map(String::from);
            shim.did("ip", &words);
        }
    }
    // The files show that already.
    shim.effects.clear();
}
