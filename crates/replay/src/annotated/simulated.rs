//! The packets that leave a machine's devices, while a run of a scenario continues: in virtual time or by the
//! real clock.

use super::pcapng_writer::{Entry, PcapSink, PcapngWriter, fate, queue, wait};
use crate::captured::ExternalError;
use tidegate_packet::{Handle, Head, QueueLocation, Time};
use tidegate_scenario::lay::{LaidOut, START};
use tidegate_scenario::model::{NodeRole, Scenario};
use tidegate_scenario::run::RunObserver;
use tidegate_sim::{LinkId, SojournRecord};

/// A machine's device, by the scenario's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedDevice {
    /// The machine's name.
    pub machine: String,
    /// The device's name.
    pub device: String,
}

/// Opens a file once a run begins.
type Open = Box<dyn FnMut() -> Result<Box<dyn PcapSink>, ExternalError>>;

/// The packets of one run, written as they leave.
pub struct SimulatedPackets {
    wanted: Option<WatchedDevice>,
    open: Open,
    under_way: Option<UnderWay>,
}

/// The file that they are written to, once the run has begun.
struct UnderWay {
    writer: PcapngWriter,
    links: Vec<Watched>,
    count: u64,
}

/// A device that is watched.
struct Watched {
    link: LinkId,
    name: String,
    link_header: u32,
}

impl SimulatedPackets {
    /// Of one device, or of all that machines have. The file is opened when the run begins.
    pub fn new(
        wanted: Option<WatchedDevice>,
        open: impl FnMut() -> Result<Box<dyn PcapSink>, ExternalError> + 'static,
    ) -> SimulatedPackets {
        SimulatedPackets { wanted, open: Box::new(open), under_way: None }
    }
}

impl RunObserver for SimulatedPackets {
    /// Begins to observe a run.
    ///
    /// # Errors
    /// There is no such device, or the file cannot be written.
    fn begin(&mut self, scenario: &Scenario, laid: &mut LaidOut) -> Result<(), ExternalError> {
        let mut writer = PcapngWriter::new((self.open)()?, &scenario.title);
        let links = watched(self.wanted.as_ref(), scenario, laid);
        if links.is_empty() {
            let machines = scenario.nodes.iter().filter(|node| node.role == NodeRole::Machine);
            let machines: Vec<&str> = machines.map(|node| node.name.as_str()).collect();
            return Err(format!(
                "no machine has the device whose packets --pcapng asks for; machines are {}",
                machines.join(", ")
            )
            .into());
        }
        for watched in &links {
            laid.world.net.observe(watched.link);
            writer.interface(
                &watched.name,
                "packets that waited there, when their sending began or they were lost",
            );
        }
        self.under_way = Some(UnderWay { writer, links, count: 0 });
        Ok(())
    }

    fn advanced(&mut self, laid: &mut LaidOut, now: Time) -> Result<(), ExternalError> {
        self.under_way.as_mut().map_or(Ok(()), |under_way| under_way.write(laid, now))
    }
}

impl UnderWay {
    /// Writes what happened until now.
    fn write(&mut self, laid: &mut LaidOut, now: Time) -> Result<(), ExternalError> {
        let UnderWay { writer: diary, links, count } = self;
        for sojourn in laid.world.net.take_sojourns() {
            let Some((at, watched)) = links.iter().enumerate().find(|(_, one)| one.link == sojourn.link)
            else {
                continue;
            };
            *count += 1;
            diary.note(Entry {
                number: *count,
                at: sojourn.ended,
                interface: at as u32,
                queue: queue(sojourn.queue),
                sojourn: &sojourn,
                link_header: watched.link_header,
                direction: None,
                comment: comment(&watched.name, &sojourn),
            });
        }
        diary.write(now, (START, 0))
    }
}

/// The devices requested, with their links.
fn watched(wanted: Option<&WatchedDevice>, scenario: &Scenario, laid: &mut LaidOut) -> Vec<Watched> {
    let mut links = Vec::new();
    for (number, devices) in laid.devices.iter().enumerate() {
        let machine = &scenario.nodes[laid.nodes[number]].name;
        for (place, (device, id)) in devices.iter().enumerate() {
            let meant = wanted.is_none_or(|one| one.machine == *machine && one.device == *device);
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
fn comment(name: &str, sojourn: &SojournRecord) -> String {
    let place = match sojourn.queue {
        QueueLocation { on: Handle::NONE, .. } => "before any queue".to_owned(),
        QueueLocation { on: Handle::ROOT, qdisc: Handle::NONE, .. } => "root".to_owned(),
        QueueLocation { on, .. } if on != Handle::ROOT && on.minor() != 0 => on.to_string(),
        QueueLocation { qdisc, .. } => qdisc.to_string(),
    };
    let flow = sojourn.queue.queue.map_or(String::new(), |queue| format!(", flow {queue}"));
    format!(
        "{name} {place}{flow}: waited {}, {}",
        wait(sojourn.ended.since(sojourn.came).0),
        fate(sojourn, true)
    )
}
