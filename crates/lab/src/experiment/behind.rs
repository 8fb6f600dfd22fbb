//! A laid-out network with real hosts, for programs that run behind it as long as they like.

use super::error::{Context as _, Error, Result, missing};
use super::hosts::{self, Hosts, machines};
use super::scheduling::SchedulingOptions;
use crate::load::{LoadClock, PingLoad, PingPlan, ProgramLoad, ProgramPlan};
use crate::{Driver, Edges, LabHost, LatenessHistogram};
use std::io;
use std::net::IpAddr;
use std::time::Instant;
use tidegate_packet::{Nanos, Time};
use tidegate_scenario::lay::{self, LaidOut, START};
use tidegate_scenario::model::Scenario;
use tidegate_scenario::run::RunObserver;
use tidegate_sys::scheduling::SchedulingGuard;
use tidegate_sys::tun::Tun;

/// How long a program that has ended may go unnoticed.
const NOTICE: Nanos = Nanos::millis(20);

/// Real hosts at the edges of a network, in which programs run. Its clock begins with [`RealNetwork::run`].
pub struct RealNetwork<'s> {
    scenario: &'s Scenario,
    /// The network, for reading its figures.
    pub laid: LaidOut,
    hosts: Hosts,
    tuns: Vec<Tun>,
    driver: Driver,
    clock: LoadClock,
    scheduling: SchedulingOptions,
    _turn: SchedulingGuard,
}

impl<'s> RealNetwork<'s> {
    /// Makes the hosts of a scenario around a network of it that is laid out. `attached`: hosts that are
    /// namespaces of others, by name, with the device there ([`tidegate_sys::attach`]).
    ///
    /// # Errors
    /// A host cannot be made, or the machine does not give what `effort` requests.
    pub fn new(
        scenario: &'s Scenario,
        mut laid: LaidOut,
        scheduling: SchedulingOptions,
        attached: Vec<(&str, Tun)>,
    ) -> Result<RealNetwork<'s>> {
        let attached = attached.into_iter().map(|(name, tun)| Ok((node(scenario, name)?, tun)));
        let attached = attached.collect::<Result<_>>()?;
        let (hosts, parties, tuns) = Hosts::new(scenario, &mut laid, None, attached)?;
        let turn = scheduling.begin()?;
        let driver = Driver::new(parties, &machines(scenario, &mut laid));
        let clock = LoadClock::new(Instant::now(), scheduling.realtime);
        Ok(RealNetwork { scenario, laid, hosts, tuns, driver, clock, scheduling, _turn: turn })
    }

    /// The host of a name, to start programs on.
    ///
    /// # Errors
    /// The scenario has none.
    pub fn host(&self, name: &str) -> Result<&LabHost> {
        self.hosts.of(node(self.scenario, name)?).ok_or_else(missing("the host is not there"))
    }

    /// Sends pings from one host to another until the network ends, one every so often.
    ///
    /// # Errors
    /// There is no such host, or it may not ping.
    pub fn pings(&mut self, from: &str, to: &str, every: Nanos) -> Result<PingLoad> {
        let to = lay::address(self.scenario, &mut self.laid, node(self.scenario, to)?, None);
        let plan = PingPlan { to, data: 56, every: every.0, start: 0, stop: u64::MAX, dsfield: 0 };
        Ok(PingLoad::begin(&self.clock, self.host(from)?, plan)?)
    }

    /// Starts a shell's command on a host, which ends with the network.
    ///
    /// # Errors
    /// There is no such host, or it cannot be started.
    pub fn background(&self, host: &str, command: &str) -> Result<ProgramLoad> {
        let plan = ProgramPlan { line: command.to_owned(), start: 0, stop: u64::MAX };
        Ok(ProgramLoad::begin(&self.clock, self.host(host)?, plan)?)
    }

    /// Lets packets flow until `ended` has something: how a program ended. Every so often `each` may read
    /// what the network did until then.
    ///
    /// # Errors
    /// A device is gone, or `ended`, the observer or `each` failed ([`Error::Observer`]).
    pub fn run<T>(
        &mut self,
        ended: &mut dyn FnMut() -> io::Result<Option<T>>,
        mut observer: Option<&mut dyn RunObserver>,
        (every, each): (Nanos, &mut ReadStep<'_>),
    ) -> Result<T> {
        let mut edges = Edges::new(std::mem::take(&mut self.tuns), START, self.scheduling.busy);
        let (mut now, mut step) = (START, START + every);
        let status = loop {
            now += NOTICE;
            self.driver.run(&mut self.laid.world, &mut edges, now).context("the device is gone")?;
            if let Some(observer) = &mut observer {
                observer.advanced(&mut self.laid, now).map_err(Error::Observer)?;
            }
            if now >= step {
                step += every;
                each(&mut self.laid, now).map_err(Error::Observer)?;
            }
            if let Some(status) = ended()? {
                break status;
            }
        };
        if let Some(observer) = &mut observer {
            observer.advanced(&mut self.laid, Time::NEVER).map_err(Error::Observer)?;
        }
        Ok(status)
    }

    /// Ends what runs in the background.
    pub fn end(&self) {
        self.clock.end();
    }

    /// An address that packets went to and that no host here has.
    pub fn unknown_address(&self) -> Option<IpAddr> {
        self.driver.unknown_address
    }

    /// How late packets were.
    pub fn lateness(&self) -> &LatenessHistogram {
        &self.driver.lateness
    }
}

/// The node of a name.
fn node(scenario: &Scenario, name: &str) -> Result<usize> {
    scenario.nodes.iter().position(|node| node.name == name).ok_or_else(missing("the host is not there"))
}

/// The address of a host of a network, and the bytes of its largest packet, for a namespace that is to be it.
///
/// # Errors
/// There is no such host.
pub fn host_place(scenario: &Scenario, laid: &mut LaidOut, name: &str) -> Result<(IpAddr, u32)> {
    let node = node(scenario, name)?;
    let address = lay::address(scenario, laid, node, None);
    Ok((address, hosts::spec(scenario, node, address).mtu))
}

/// What reads a network every so often.
pub type ReadStep<'r> =
    dyn FnMut(&mut LaidOut, Time) -> std::result::Result<(), tidegate_scenario::run::Outside> + 'r;
