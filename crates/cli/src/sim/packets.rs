//! The packets that leave a machine's devices, written for Wireshark while a run goes on: in virtual time or by the real clock.

use crate::pcapng::{Diary, Entry, fate, queue, wait};
use anyhow::bail;
use std::path::PathBuf;
use tidegate_packet::{Handle, Head, Stand, Time};
use tidegate_scenario::lay::{LaidOut, START};
use tidegate_scenario::model::{NodeRole, Scenario};
use tidegate_scenario::run::{Outside, RunObserver};
use tidegate_sim::{LinkId, Stay};

/// What is to be written: a file, and of which device; without one of all.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    path: PathBuf,
    device: Option<(String, String)>,
}

impl Wanted {
    /// `FILE`, or `FILE:MACHINE/DEVICE`.
    pub(super) fn parse(text: &str) -> Wanted {
        let (path, device) = match text.rsplit_once(':') {
            Some((path, device)) if device.contains('/') && !path.is_empty() && !device.starts_with('/') => {
                (path, device.split_once('/'))
            }
            _ => (text, None),
        };
        let device = device.map(|(machine, device)| (machine.to_owned(), device.to_owned()));
        Wanted { path: path.into(), device }
    }
}

/// A run's packets, being written.
pub(super) struct Packets {
    wanted: Wanted,
    open: Option<Open>,
}

/// The file that they are written to, once the run has begun.
struct Open {
    diary: Diary,
    links: Vec<Watched>,
    count: u64,
}

/// A device that is watched.
struct Watched {
    link: LinkId,
    name: String,
    link_header: u32,
}

impl Packets {
    /// Of a run that is to begin.
    pub(super) fn new(wanted: &Wanted) -> Packets {
        Packets { wanted: wanted.clone(), open: None }
    }
}

impl RunObserver for Packets {
    /// Begins to observe a run.
    ///
    /// # Errors
    /// There is no such device, or the file cannot be written.
    fn begin(&mut self, scenario: &Scenario, laid: &mut LaidOut) -> Result<(), Outside> {
        self.open = Some(Open::observe(&self.wanted, scenario, laid)?);
        Ok(())
    }

    fn advanced(&mut self, laid: &mut LaidOut, now: Time) -> Result<(), Outside> {
        match &mut self.open {
            Some(open) => Ok(open.write(laid, now)?),
            None => Ok(()),
        }
    }
}

impl Open {
    fn observe(wanted: &Wanted, scenario: &Scenario, laid: &mut LaidOut) -> anyhow::Result<Open> {
        let mut diary = Diary::create(&wanted.path, &scenario.title)?;
        let links = watched(wanted, scenario, laid);
        if links.is_empty() {
            let machines: Vec<&str> = scenario
                .nodes
                .iter()
                .filter(|node| node.role == NodeRole::Machine)
                .map(|node| node.name.as_str())
                .collect();
            bail!("no machine has the device whose packets --pcapng asks for; machines are {}", machines.join(", "));
        }
        for watched in &links {
            laid.world.net.observe(watched.link);
            diary.interface(&watched.name, "packets that waited there, when their sending began or they were lost");
        }
        Ok(Open { diary, links, count: 0 })
    }

    /// Writes what happened until now.
    fn write(&mut self, laid: &mut LaidOut, now: Time) -> anyhow::Result<()> {
        let Open { diary, links, count } = self;
        for stay in laid.world.net.take_stays() {
            let Some((at, watched)) = links.iter().enumerate().find(|(_, one)| one.link == stay.link) else { continue };
            *count += 1;
            diary.note(Entry {
                number: *count,
                at: stay.ended,
                interface: at as u32,
                queue: queue(stay.stand),
                stay: &stay,
                link_header: watched.link_header,
                direction: None,
                comment: comment(&watched.name, &stay),
            });
        }
        diary.write(now, (START, 0))
    }
}

/// The devices asked for, with their links.
fn watched(wanted: &Wanted, scenario: &Scenario, laid: &mut LaidOut) -> Vec<Watched> {
    let mut links = Vec::new();
    for (number, devices) in laid.devices.iter().enumerate() {
        let machine = &scenario.nodes[laid.nodes[number]].name;
        for (place, (device, id)) in devices.iter().enumerate() {
            let meant = wanted.device.as_ref().is_none_or(|(of, name)| of == machine && name == device);
            let net = &mut laid.world.net;
            let Some(port) = net.machine.port(number, place).filter(|_| meant) else { continue };
            let Some(link) = net.link_of_port(port) else { continue };
            let spec = net.machine.get(number).map(|machine| machine.gateway.spec(*id));
            let link_header = spec.map_or(Head::ETHERNET as u32, |spec| spec.link_header);
            links.push(Watched { link, name: format!("{machine}:{device}"), link_header });
        }
    }
    links
}

/// `gateway:eth1 1:20, flow 17: waited 12.4 ms, sent`.
fn comment(name: &str, stay: &Stay) -> String {
    let place = match stay.stand {
        Stand { on: Handle::NONE, .. } => "before any queue".to_owned(),
        Stand { on: Handle::ROOT, qdisc: Handle::NONE, .. } => "root".to_owned(),
        Stand { on, .. } if on != Handle::ROOT && on.minor() != 0 => on.to_string(),
        Stand { qdisc, .. } => qdisc.to_string(),
    };
    let flow = stay.stand.queue.map_or(String::new(), |queue| format!(", flow {queue}"));
    format!("{name} {place}{flow}: waited {}, {}", wait(stay.ended.since(stay.came).0), fate(stay, true))
}

/// A file holds the packets of one run.
///
/// # Errors
/// There are several.
pub(super) fn one_run(wanted: bool, runs: usize) -> anyhow::Result<()> {
    if wanted && runs > 1 {
        bail!("--pcapng is for one run and there are {runs}; choose one with --policy, --load and --repeats 1");
    }
    Ok(())
}
