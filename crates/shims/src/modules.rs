//! modprobe, insmod, rmmod and lsmod (kmod 30), answered.

use crate::call::{Effect, FileChange, Reply};
use crate::host;
use crate::shim::ToolShim;
use tidegate_policy::{LinkDriver, LinkOp, Op};

/// The most ifb devices that a module parameter may ask for.
const MAX_IFBS: u32 = 64;
/// Where the kernel whose answers are followed keeps its modules.
const PLACE: &str = "/lib/modules/6.1.0";
/// What the names of the modules begin with that such a kernel has.
const KNOWN: [&str; 38] = [
    "sch_",
    "cls_",
    "act_",
    "em_",
    "xt_",
    "ipt_",
    "ip6t_",
    "nf_",
    "nft_",
    "nfnetlink",
    "ip_",
    "ip6_",
    "iptable_",
    "ip6table_",
    "x_tables",
    "ebt",
    "arp",
    "tcp_",
    "ifb",
    "dummy",
    "veth",
    "bridge",
    "br_netfilter",
    "8021q",
    "tun",
    "tap",
    "ppp",
    "pppo",
    "ipip",
    "sit",
    "gre",
    "tunnel",
    "wireguard",
    "bonding",
    "macvlan",
    "e1000",
    "r8169",
    "crc",
];

/// One of the four tools with its words.
pub(super) fn answer(shim: &mut ToolShim<'_>, tool: &str, words: &[String]) -> Reply {
    let (options, names): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| word.starts_with('-'));
    let has = |short: char, long: &str| {
        options.iter().any(|option| *option == long || !option.starts_with("--") && option.contains(short))
    };
    let Some(name) = names.first().filter(|_| tool != "lsmod") else {
        return match tool {
            "lsmod" => list(shim),
            _ if has('V', "--version") => Reply::text("kmod version 30\n"),
            "modprobe" if has('c', "--showconfig") => Reply::ok(),
            "modprobe" => Reply::error(1, "modprobe: ERROR: missing parameters. See -h.\n"),
            "rmmod" => Reply::error(1, "rmmod: ERROR: missing module name.\n"),
            _ => Reply::error(1, "insmod: ERROR: missing filename.\n"),
        };
    };
    let file = name.rsplit('/').next().unwrap_or(name);
    let module = file.split('.').next().unwrap_or(file).replace('-', "_");
    let known = KNOWN.iter().any(|known| module.starts_with(known));
    let quiet = has('q', "--quiet");
    let dry = has('n', "--dry-run");
    match tool {
        "modprobe" if has('r', "--remove") => match known {
            true => remove(shim, &module, tool, words),
            false if quiet => Reply::error(1, ""),
            false => Reply::error(1, format!("modprobe: FATAL: Module {name} not found.\n")),
        },
        "rmmod" => remove(shim, &module, tool, words),
        "modprobe" if !known && quiet => Reply::error(1, ""),
        "modprobe" if !known => {
            Reply::error(1, format!("modprobe: FATAL: Module {name} not found in directory {PLACE}\n"))
        }
        "insmod" if !known => Reply::error(
            1,
            format!("insmod: ERROR: could not load module {name}: No such file or directory\n"),
        ),
        "insmod" if shim.machine.host.modules.contains(&module) => {
            Reply::error(1, format!("insmod: ERROR: could not insert module {name}: File exists\n"))
        }
        _ if dry => Reply::ok(),
        // `modprobe -a` loads them all; otherwise what follows are parameters.
        _ if has('a', "--all") => {
            names.iter().for_each(|name| load(shim, &name.replace('-', "_"), &[]));
            shim.did(tool, words);
            Reply::ok()
        }
        _ => {
            load(shim, &module, &names[1..]);
            shim.did(tool, words);
            Reply::ok()
        }
    }
}

/// Loads a module; loading it again changes nothing.
fn load(shim: &mut ToolShim<'_>, module: &str, parameters: &[&String]) {
    if !shim.machine.host.modules.insert(module.to_owned()) {
        return;
    }
    let parameter =
        |name: &str| parameters.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let hysteresis = parameter("htb_hysteresis").filter(|_| module == "sch_htb");
    if let Some(value) = hysteresis {
        shim.machine.gateway.switch(|switches| switches.htb_hysteresis = value != "0");
    }
    for (path, text) in host::module_files(module) {
        let text = match hysteresis {
            Some(value) if path.ends_with("htb_hysteresis") => format!("{value}\n"),
            _ => text,
        };
        shim.effects
            .push(Effect::File(FileChange::Write { path: path.to_string_lossy().into_owned(), text }));
    }
    if module == "ifb" {
        let count = parameter("numifbs").and_then(|count| count.parse().ok());
        for number in 0..count.unwrap_or(2).min(MAX_IFBS) {
            // One that is there already stays.
            let _ = shim.apply(Op::Link(LinkOp::Add { name: format!("ifb{number}"), kind: LinkDriver::Ifb }));
        }
    }
}

fn remove(shim: &mut ToolShim<'_>, module: &str, tool: &str, words: &[String]) -> Reply {
    if !shim.machine.host.modules.remove(module) {
        return match tool {
            "rmmod" => Reply::error(1, format!("rmmod: ERROR: Module {module} is not currently loaded\n")),
            _ => Reply::ok(),
        };
    }
    shim.effects.push(Effect::File(FileChange::Remove { path: format!("/sys/module/{module}") }));
    if module == "ifb" {
        let links = shim.machine.host.links.iter().filter(|(_, link)| link.kind == LinkDriver::Ifb);
        for name in links.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            let _ = shim.apply(Op::Link(LinkOp::Delete { name }));
        }
    }
    shim.did(tool, words);
    Reply::ok()
}

fn list(shim: &ToolShim<'_>) -> Reply {
    let mut out = String::from("Module                  Size  Used by\n");
    for module in &shim.machine.host.modules {
        out.push_str(&format!("{module:<19} {:>8}  0\n", 16384));
    }
    Reply::text(out)
}
