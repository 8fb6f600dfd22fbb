//! A laid-out network with real hosts, for programs that run behind it as long as they like.

use super::error::{Context as _, Error, Result, missing};
use super::hosts::{Hosts, machines};
use super::scheduling::SchedulingOptions;
use crate::load::{LoadClock, ProgramLoad, ProgramPlan};
use crate::{Driver, Edges, LabHost, LatenessHistogram};
use std::net::IpAddr;
use std::process::{Child, ExitStatus};
use std::time::Instant;
use tidegate_packet::{Nanos, Time};
use tidegate_scenario::lay::{LaidOut, START};
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
    /// Makes the hosts of a scenario around a network of it that is laid out.
    ///
    /// # Errors
    /// A host cannot be made, or the machine does not give what `effort` requests.
    pub fn new(
        scenario: &'s Scenario,
        mut laid: LaidOut,
        scheduling: SchedulingOptions,
    ) -> Result<RealNetwork<'s>> {
        let (hosts, parties, tuns) = Hosts::new(scenario, &mut laid, None)?;
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
        let node = self.scenario.nodes.iter().position(|node| node.name == name);
        node.and_then(|node| self.hosts.of(node)).ok_or_else(missing("the host is not there"))
    }

    /// Starts a shell's command on a host, which ends with the network.
    ///
    /// # Errors
    /// There is no such host, or it cannot be started.
    pub fn background(&self, host: &str, command: &str) -> Result<ProgramLoad> {
        let plan = ProgramPlan { line: command.to_owned(), start: 0, stop: u64::MAX };
        Ok(ProgramLoad::begin(&self.clock, self.host(host)?, plan)?)
    }

    /// Lets packets flow until a program has ended. Every so often `each` may read what the network did until
    /// then.
    ///
    /// # Errors
    /// A device is gone, or the observer or `each` failed ([`Error::Observer`]).
    pub fn run(
        &mut self,
        child: &mut Child,
        mut observer: Option<&mut dyn RunObserver>,
        (every, each): (Nanos, &mut ReadStep<'_>),
    ) -> Result<ExitStatus> {
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
            if let Some(status) = child.try_wait()? {
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

/// What reads a network every so often.
pub type ReadStep<'r> =
    dyn FnMut(&mut LaidOut, Time) -> std::result::Result<(), tidegate_scenario::run::Outside> + 'r;
