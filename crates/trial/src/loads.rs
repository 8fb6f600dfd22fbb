//! The traffic of the link: the loads by their names, and what people do beside them.

use crate::policy::TrialPolicy;
use crate::settings::{TrialLoad, TrialProbe, TrialSettings};
use tidegate_packet::Nanos;
use tidegate_packet::header::proto;
use tidegate_scenario::transactions::{dns, login, page};
use tidegate_sim::{
    Bulk, DatagramTraffic, HomeTraffic, Local, Parties, PingTraffic, Transaction, TransactionTraffic,
};

/// An item of the traffic with what people call it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Short and unique within a load.
    pub(crate) id: String,
    /// For people.
    pub(crate) title: String,
    /// What an answer is; empty for a transfer.
    pub(crate) unit: &'static str,
    pub(crate) traffic: HomeTraffic,
}

impl Item {
    fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        unit: &'static str,
        traffic: HomeTraffic,
    ) -> Item {
        Item { id: id.into(), title: title.into(), unit, traffic }
    }

    pub(crate) fn parties(&mut self) -> &mut Parties {
        match &mut self.traffic {
            HomeTraffic::Bulk(bulk) => &mut bulk.parties,
            HomeTraffic::Ping(ping) => &mut ping.parties,
            HomeTraffic::Datagrams(datagrams) => &mut datagrams.parties,
            HomeTraffic::Transaction(transaction) => &mut transaction.parties,
        }
    }

    /// Whether it is an upload or a download; `None`: a transaction or a probe.
    pub(crate) fn transfer(&self) -> Option<bool> {
        match &self.traffic {
            HomeTraffic::Bulk(bulk) => Some(bulk.up),
            HomeTraffic::Datagrams(datagrams) if self.unit.is_empty() => Some(datagrams.up),
            _ => None,
        }
    }
}

/// A load: what fills the link.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
    /// Its uploads are the gateway's own, from this TCP port.
    pub(crate) served_from: Option<u16>,
}

/// The busy computer, the people's computer, and a third one.
const BUSY: Local = Local::Host(2);
const PEOPLE: Local = Local::Host(3);
const OTHER: Local = Local::Host(6);

/// Ports that a busy computer's uploads go to: web storage first, then a file-sharing peer, in turn.
const UPLOAD_PORTS: [u16; 2] = [443, 51413];
/// Ports that downloads come from.
const DOWNLOAD_PORTS: [u16; 3] = [443, 80, 443];

/// DS fields of rrul's four classes: best effort, background (CS1), video (CS5), voice (EF).
const RRUL: [(&str, u8); 4] = [("BE", 0), ("BK", 0x20), ("CS5", 0xa0), ("EF", 0xb8)];

/// The loads of a trial: those of the settings, else four, of which the uploads come from the gateway itself
/// when the policy is about a server there.
pub(crate) fn loads(options: &TrialSettings, policy: &TrialPolicy) -> Vec<Load> {
    let names: &[TrialLoad] = match options.load.as_slice() {
        [] => &[TrialLoad::Idle, TrialLoad::Up, TrialLoad::Down, TrialLoad::Both],
        names => names,
    };
    let mut loads: Vec<Load> = names.iter().map(|name| load(*name, options, policy)).collect();
    for item in loads.iter_mut().flat_map(|load| &mut load.items) {
        item.parties().v6 = options.ipv6;
    }
    loads
}

fn load(name: TrialLoad, options: &TrialSettings, policy: &TrialPolicy) -> Load {
    let id = name.id();
    let n = options.flows;
    let up = |n: u16| match policy.server_port() {
        Some(port) => served(n, port),
        None => uploads(n),
    };
    // What visitors fetch from the gateway's own server is no upload of a computer behind it.
    let ups = |n: u16| match policy.server_port() {
        Some(port) => format!("{} from the gateway's port {port}", count(n, "transfer")),
        None => count(n, "upload"),
    };
    let (title, items) = match name {
        TrialLoad::Idle | TrialLoad::Ping => ("nothing".to_owned(), vec![]),
        TrialLoad::Up => (ups(n.unwrap_or(2)), up(n.unwrap_or(2))),
        TrialLoad::Down => (count(n.unwrap_or(3), "download"), downloads(n.unwrap_or(3))),
        TrialLoad::Both => {
            let (sent, downs) = (n.unwrap_or(2), n.unwrap_or(3));
            let items = up(sent).into_iter().chain(downloads(downs)).collect();
            (format!("{} and {}", ups(sent), count(downs, "download")), items)
        }
        TrialLoad::Server => {
            let n = n.unwrap_or(2);
            (
                format!("{} from the gateway", count(n, "transfer")),
                served(n, policy.server_port().unwrap_or(80)),
            )
        }
        TrialLoad::Hosts => {
            let ours = uploads(1).into_iter().map(|item| of(OTHER, "upload of the other computer", item));
            (
                "4 uploads of one computer and 1 of another".to_owned(),
                uploads(4).into_iter().chain(ours).collect(),
            )
        }
        TrialLoad::Tcp1up => (ups(1), up(1)),
        TrialLoad::Tcp1down => ("1 download".to_owned(), downloads(1)),
        TrialLoad::TcpNup => (ups(n.unwrap_or(12)), up(n.unwrap_or(12))),
        TrialLoad::TcpNdown => (count(n.unwrap_or(12), "download"), downloads(n.unwrap_or(12))),
        TrialLoad::Rrul => {
            ("4 uploads and 4 downloads, each with its own mark (RRUL)".to_owned(), rrul(&RRUL))
        }
        TrialLoad::RrulBe => ("4 uploads and 4 downloads".to_owned(), rrul(&[("BE", 0); 4])),
        TrialLoad::UdpFlood => ("a flood of UDP".to_owned(), vec![flood(options)]),
    };
    let sends = [TrialLoad::Up, TrialLoad::Both, TrialLoad::Tcp1up, TrialLoad::TcpNup].contains(&name);
    let served_from = policy.server_port().filter(|_| sends);
    Load { id: id.to_owned(), title, items, served_from }
}

/// Transfers in one direction, of one computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfers {
    /// Away from here?
    pub up: bool,
    /// How many.
    pub count: u16,
    /// Whose, from `a`.
    pub host: char,
}

/// A load of one's own: one that has a name, or transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// As `try` knows it.
    Named(TrialLoad),
    /// One after the other.
    Transfers(Vec<Transfers>),
}

/// The last computer that a workload may name.
pub const LAST_HOST: char = 'h';

/// The load of a workload; of transfers it goes by what they are.
pub(crate) fn workload(workload: &Workload, options: &TrialSettings, policy: &TrialPolicy) -> Load {
    let mut made = match workload {
        Workload::Named(name) => load(*name, options, policy),
        Workload::Transfers(several) => {
            let mut items = Vec::new();
            let mut titles = Vec::new();
            for (number, transfers) in (0..).zip(several) {
                items.extend(of_host(number, *transfers, policy));
                let whose = if transfers.host == 'a' {
                    String::new()
                } else {
                    format!(" of host {}", transfers.host)
                };
                let what = if transfers.up { "upload" } else { "download" };
                titles.push(format!("{}{whose}", count(transfers.count, what)));
            }
            let title = if titles.is_empty() { "nothing".to_owned() } else { titles.join(", ") };
            Load { id: title.clone(), title, items, served_from: None }
        }
    };
    for item in &mut made.items {
        item.parties().v6 = options.ipv6;
    }
    made
}

/// Transfers of a computer; the `number`-th of a workload has ports of its own.
fn of_host(number: u16, transfers: Transfers, policy: &TrialPolicy) -> Vec<Item> {
    let Transfers { up, count, host } = transfers;
    let mut items = match (up, policy.server_port()) {
        (true, Some(port)) if host == 'a' => served(count, port),
        (true, _) => uploads(count),
        (false, _) => downloads(count),
    };
    let other = host as u8 - b'a';
    for item in &mut items {
        if host != 'a' {
            item.title = format!("{} of host {host}", item.title);
            item.parties().local = Local::Host(10 + other);
        }
        item.id = format!("{}-{number}", item.id);
        item.parties().local_port = item.parties().local_port.wrapping_add(100 * number);
    }
    items
}

fn count(n: u16, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Transfers do not all begin in one instant.
fn begins(i: u16) -> Nanos {
    Nanos::millis(10 * u64::from(i))
}

fn uploads(n: u16) -> Vec<Item> {
    let item = |i: u16| {
        let port = UPLOAD_PORTS[usize::from(i) % UPLOAD_PORTS.len()];
        let parties = Parties::new(BUSY, 40000 + i, port);
        let bulk = Bulk { parties, start: begins(i), ..Bulk::new(true, 0) };
        Item::new(
            format!("up-{}", i + 1),
            format!("upload {} (tcp {port})", i + 1),
            "",
            HomeTraffic::Bulk(bulk),
        )
    };
    (0..n).map(item).collect()
}

fn downloads(n: u16) -> Vec<Item> {
    let item = |i: u16| {
        let port = DOWNLOAD_PORTS[usize::from(i) % DOWNLOAD_PORTS.len()];
        let parties = Parties::new(BUSY, 45000 + i, port);
        let bulk = Bulk { parties, start: begins(i), ..Bulk::new(false, 0) };
        Item::new(
            format!("down-{}", i + 1),
            format!("download {} (tcp {port})", i + 1),
            "",
            HomeTraffic::Bulk(bulk),
        )
    };
    (0..n).map(item).collect()
}

/// One transfer, over IPv4 or IPv6.
pub(crate) fn one_transfer(up: bool, v6: bool) -> Item {
    let mut items = if up { uploads(1) } else { downloads(1) };
    items[0].parties().v6 = v6;
    items.swap_remove(0)
}

/// What a server on the gateway itself sends.
fn served(n: u16, port: u16) -> Vec<Item> {
    let item = |i: u16| {
        let parties = Parties::new(Local::Gateway, port, 40000 + i);
        let bulk = Bulk { parties, start: begins(i), ..Bulk::new(true, 0) };
        Item::new(
            format!("up-{}", i + 1),
            format!("visitor {} of port {port}", i + 1),
            "",
            HomeTraffic::Bulk(bulk),
        )
    };
    (0..n).map(item).collect()
}

fn rrul(marks: &[(&str, u8)]) -> Vec<Item> {
    let item = |up: bool, i: u16, (name, dsfield): (&str, u8)| {
        let parties = Parties { dsfield, ..Parties::new(BUSY, 40000 + i + 100 * u16::from(!up), 12865) };
        let bulk = Bulk { parties, start: begins(i), ..Bulk::new(up, 0) };
        let (word, short) = if up { ("upload", "up") } else { ("download", "down") };
        Item::new(
            format!("{short}-{}", i + 1),
            format!("{word} {} {name}", i + 1),
            "",
            HomeTraffic::Bulk(bulk),
        )
    };
    let way = |up: bool| (0..).zip(marks).map(move |(i, mark)| item(up, i, *mark));
    way(true).chain(way(false)).collect()
}

/// UDP at one and a half times the uplink's rate.
fn flood(options: &TrialSettings) -> Item {
    let datagrams = DatagramTraffic {
        parties: Parties::new(BUSY, 40000, 9),
        up: true,
        protocol: proto::UDP,
        payload: 1400,
        interval: Nanos(1442 * 8_000_000_000 / (options.up.as_bits() * 3 / 2).max(1)),
        start: Nanos(0),
    };
    Item::new("flood", "UDP flood", "", HomeTraffic::Datagrams(datagrams))
}

/// A transfer of another computer.
fn of(local: Local, title: &str, item: Item) -> Item {
    let mut item = item;
    let parties = item.parties();
    parties.local = local;
    parties.local_port += 1000;
    Item { id: format!("{}-other", item.id), title: title.to_owned(), ..item }
}

/// What people do while the link is loaded, and wait for.
pub(crate) fn probes(options: &TrialSettings) -> Vec<Item> {
    let mut probes: Vec<Item> = options.probes.iter().flat_map(|name| probe(*name, options)).collect();
    for item in &mut probes {
        item.parties().v6 = options.ipv6;
    }
    probes
}

/// Between two pings.
const PING_INTERVAL: Nanos = Nanos::millis(200);

fn probe(name: TrialProbe, options: &TrialSettings) -> Vec<Item> {
    let transaction = |port: u16, what: Transaction, second: u64| {
        let parties = Parties::new(PEOPLE, port, 0);
        HomeTraffic::Transaction(TransactionTraffic { parties, start: Nanos::millis(second), what })
    };
    match name {
        TrialProbe::Ping => {
            vec![Item::new(
                "ping",
                "ping",
                "round trip",
                HomeTraffic::Ping(PingTraffic::every(PING_INTERVAL)),
            )]
        }
        TrialProbe::Voip => call(options),
        TrialProbe::Dns => {
            vec![Item::new("dns", "DNS look-up", "until the reply", transaction(30000, dns(), 300))]
        }
        TrialProbe::Ssh => {
            let mut item =
                Item::new("ssh", "SSH login", "until the prompt", transaction(32000, login(), 1100));
            item.parties().dsfield = SSH_DSFIELD;
            vec![item]
        }
        TrialProbe::Web => {
            vec![Item::new("web", "web page", "until complete", transaction(34000, page(), 2300))]
        }
        TrialProbe::None => vec![],
    }
}

/// AF21, as OpenSSH marks interactive sessions.
const SSH_DSFIELD: u8 = 0x48;
/// EF, as telephones mark speech.
const VOICE_DSFIELD: u8 = 0xb8;

/// A call: speech both ways each 20 ms, G.711 where it takes no more than a quarter of either direction, else
/// G.729; none where even that is too much.
fn call(options: &TrialSettings) -> Vec<Item> {
    let slower = options.up.as_bits().min(options.down.as_bits());
    let codecs = [(160, "G.711"), (20, "G.729")];
    let fits = |payload: u32| u64::from(14 + 20 + 8 + 12 + payload) * 8 * 50 <= slower / 4;
    let Some((payload, codec)) = codecs.into_iter().find(|(payload, _)| fits(*payload)) else {
        return vec![];
    };
    let speech = |up: bool| {
        HomeTraffic::Datagrams(DatagramTraffic {
            parties: Parties { dsfield: VOICE_DSFIELD, ..Parties::new(PEOPLE, 16384, 16384) },
            up,
            protocol: proto::UDP,
            payload: payload + 12,
            interval: Nanos::millis(20),
            start: Nanos::millis(if up { 700 } else { 707 }),
        })
    };
    vec![
        Item::new("voip-up", format!("call upload ({codec})"), "one way", speech(true)),
        Item::new("voip-down", format!("call download ({codec})"), "one way", speech(false)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tidegate_packet::Rate;
    use tidegate_shims::Machine;

    /// The policy of a machine on which nothing is configured.
    fn bare() -> TrialPolicy {
        let configured = crate::policy::Configured {
            machine: Machine::for_script(["eth0"]),
            commands: 1,
            wan: Some("eth0".into()),
            lan: None,
            notes: Vec::new(),
            names: Default::default(),
        };
        TrialPolicy::new(configured, crate::TrialDevices::default()).expect("a policy")
    }

    /// An item is found by its id, and a connection by its ports: two that share either are one.
    #[test]
    fn the_items_of_a_load_have_ids_and_ports_of_their_own() {
        let settings = TrialSettings::new("test", Rate::bits(1_000_000), Rate::bits(10_000_000));
        let policy = bare();
        for (name, id, _) in TrialLoad::TABLE {
            let mut load = load(*name, &settings, &policy);
            assert_eq!((load.id.as_str(), load.title.is_empty()), (*id, false));
            let mut seen = BTreeSet::new();
            let mut ends = BTreeSet::new();
            for item in &mut load.items {
                assert!(seen.insert(item.id.clone()), "{id}: a second {}", item.id);
                let Parties { local, local_port, remote_port, .. } = *item.parties();
                assert!(
                    ends.insert((local.address(false), local_port, remote_port, item.transfer())),
                    "{id}: {} has another's ports",
                    item.id
                );
            }
        }
    }
    /// A load that is a row of the table and carries nothing would let every expectation `while` it hold.
    #[test]
    fn every_load_carries_something_over_each_of_its_transfers() {
        let load: Vec<TrialLoad> = TrialLoad::TABLE.iter().map(|(name, ..)| *name).collect();
        let settings = TrialSettings {
            load: load.clone(),
            duration: Nanos::secs(2),
            probes: Vec::new(),
            ..TrialSettings::new("test", Rate::bits(2_000_000), Rate::bits(10_000_000))
        };
        let policy = bare();
        let mut trial = crate::Trial::new(&settings, &policy);
        trial.explore();
        trial.simulate(&|| ());
        let document = trial.document();
        for name in load {
            let runs: Vec<_> =
                document.runs.iter().filter(|run| run.load == name.id() && !run.witnesses).collect();
            assert_eq!(runs.len(), 2, "{}: without the policy and with it", name.id());
            for run in runs {
                let idle: Vec<&str> =
                    run.flows.iter().filter(|flow| flow.bytes == 0).map(|flow| flow.title.as_str()).collect();
                assert_eq!(idle, Vec::<&str>::new(), "{}", name.id());
                let idle = matches!(name, TrialLoad::Idle | TrialLoad::Ping);
                assert_eq!(run.flows.is_empty(), idle, "{}", name.id());
            }
        }
    }
}
