//! How a script has wired its machines: the cables between them, bridges and addresses, and what else it
//! configured.

use std::net::IpAddr;

use crate::machine::Machine;
use crate::namespaces::Namespaces;

/// The end of a cable: the machine's place in [`Wiring::machines`], and the device.
pub type WireEnd = (usize, String);

/// The machines of a script, as they stood before it took them away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// The machines; of those that it made again under one name the last.
    pub machines: Vec<WiredMachine>,
    /// The cables (veth) between them.
    pub cables: Vec<[WireEnd; 2]>,
}

/// A machine, or a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredMachine {
    /// The namespace; `None`: the one that the script begins in.
    pub name: Option<String>,
    /// Its devices.
    pub devices: Vec<WiredDevice>,
    /// The commands that were carried out on it, each with the tool.
    pub commands: Vec<Vec<String>>,
}

/// A device of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredDevice {
    /// Its name.
    pub name: String,
    /// Its addresses with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The largest packet, bytes.
    pub mtu: u32,
    /// The bridge that it is a port of.
    pub bridge: Option<String>,
}

impl WiredMachine {
    fn of(name: Option<&str>, machine: &Machine) -> WiredMachine {
        let gateway = &machine.gateway;
        let ports: Vec<(&str, &str)> = machine.host.ports().collect();
        let device = |id| {
            let name = gateway.name(id).to_owned();
            let bridge = ports.iter().find(|(port, _)| *port == name).map(|(_, bridge)| (*bridge).to_owned());
            let addresses = gateway.addresses(id).to_vec();
            WiredDevice { addresses, mtu: gateway.spec(id).mtu, bridge, name }
        };
        WiredMachine {
            name: name.map(str::to_owned),
            devices: gateway.devices().map(device).collect(),
            commands: machine.carried.iter().map(|carried| carried.words.clone()).collect(),
        }
    }

    /// The device of a name.
    pub fn device(&self, name: &str) -> Option<&WiredDevice> {
        self.devices.iter().find(|device| device.name == name)
    }
}

impl Namespaces<'_> {
    /// How the machines are wired.
    pub fn wiring(&self) -> Wiring {
        let (first, others) = self.machines();
        let is_last = |at: usize| !others[at + 1..].iter().any(|other| other.name == others[at].name);
        // By their numbers here their places there.
        let mut places = vec![Some(0)];
        let mut machines = vec![WiredMachine::of(None, first)];
        for (at, other) in others.iter().enumerate() {
            places.push(is_last(at).then_some(machines.len()));
            if is_last(at) {
                machines.push(WiredMachine::of(Some(&other.name), &other.machine));
            }
        }
        let end = |(machine, device): &WireEnd| {
            let place = places.get(*machine).copied().flatten()?;
            machines[place].device(device).map(|_| (place, device.clone()))
        };
        let cables = self.laid().filter_map(|[a, b]| Some([end(a)?, end(b)?])).collect();
        Wiring { machines, cables }
    }
}
