//! What is to be controlled, what is found, and what happens then.

use super::kept::{LeftBehind, PutBack, left_behind};
use super::remembered::RememberedLimits;
use super::shaper::{FoundShaper, LEAST_RATE};
use crate::error::{Context, Result, invalid};
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;
use tidegate_control::{
    CakeAutorate, CakeAutorateSettings, ControlReason, FixedRates, LearnedLimits, LearnedRates, LearnsLimits,
    OwnController, OwnSettings, PerDirection, PidController, PidSettings, RateController, RateDirection,
    RateLimits, SqmAutorate, SqmAutorateSettings,
};
use tidegate_daemon::RuntimeDir;
use tidegate_gym::ControllerChoice;
use tidegate_measure::numbers;
use tidegate_netlink::Kernel;

/// A line is not called silent before the time of so many probes.
const SILENT_PROBES: f64 = 5.0;

/// What is to be controlled, and how.
#[derive(Clone, Debug)]
pub struct AutorateOptions {
    /// The device whose root shapes uploads.
    pub up: String,
    /// The device whose root shapes downloads; `None`: downloads are left alone.
    pub down: Option<String>,
    /// Which controller, with the text of a configuration where it has one.
    pub controller: ControllerChoice,
    /// The lowest, base and highest rates, bit/s, where they are given.
    pub least: PerDirection<Option<u64>>,
    /// See `least`.
    pub base: PerDirection<Option<u64>>,
    /// See `least`.
    pub most: PerDirection<Option<u64>>,
    /// Hosts that are probed.
    pub targets: Vec<IpAddr>,
    /// From one probe of a host to the next.
    pub interval: Duration,
    /// Without load for so long probing pauses; `None`: never.
    pub idle: Option<Duration>,
    /// When it ends; `None`: when it is stopped.
    pub duration: Option<Duration>,
}

impl AutorateOptions {
    /// The devices whose shapers are controlled, that of uploads first.
    pub fn devices(&self) -> Vec<&str> {
        std::iter::once(&self.up).chain(&self.down).map(String::as_str).collect()
    }

    /// Which limits are found by observation: those that are not given, of a controller that has any.
    #[must_use]
    pub fn learns(&self) -> LearnsLimits {
        let none = match &self.controller {
            ControllerChoice::Fixed(_) => true,
            // A configuration has limits of its own.
            ControllerChoice::CakeAutorate(configuration) => configuration.is_some(),
            _ => false,
        };
        let has = |direction| direction == RateDirection::Up || self.down.is_some();
        let learns = |given: &PerDirection<Option<u64>>| {
            PerDirection::of(|direction| !none && has(direction) && given[direction].is_none())
        };
        LearnsLimits { least: learns(&self.least), most: learns(&self.most) }
    }

    /// From one probe to the next, of whichever host: they are spread over the interval.
    pub fn probe_step(&self) -> Duration {
        self.interval / u32::try_from(self.targets.len().max(1)).unwrap_or(u32::MAX)
    }
}

/// What was found, and what is made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoratePlan {
    /// The shapers.
    pub shapers: PerDirection<Option<FoundShaper>>,
    /// Between which rates it chooses.
    pub limits: RateLimits,
    /// The limits without what was learned, and which of them are learned.
    pub assumed: RateLimits,
    /// See `assumed`.
    pub learns: LearnsLimits,
    /// What earlier runs, or this one so far, found.
    pub learned: PerDirection<LearnedRates>,
}

impl AutoratePlan {
    /// With what was found of the limits.
    pub(super) fn new(
        options: &AutorateOptions,
        shapers: PerDirection<Option<FoundShaper>>,
        learned: &LearnedLimits,
    ) -> Result<AutoratePlan> {
        let assumed = limits(options, &shapers)?;
        let learns = options.learns();
        let limits = learned.limits(assumed, learns);
        Ok(AutoratePlan { shapers, limits, assumed, learns, learned: learned.rates() })
    }
}

/// Something happened that the caller may want to print or write down.
#[derive(Clone, Debug, PartialEq)]
pub enum AutorateEvent {
    /// A rate was set.
    Decision {
        /// Of which shaper.
        direction: RateDirection,
        /// Its device.
        dev: String,
        /// The rate, bit/s.
        rate: u64,
        /// Why.
        reason: ControlReason,
        /// The delay that it was decided by, ms.
        delay_ms: Option<f64>,
    },
    /// It begins, with what was found: the controller's first decisions follow.
    Begun(Box<AutoratePlan>),
    /// There is no load: probing pauses, at the base rates.
    Idle,
    /// There is load again: it begins again at the base rates.
    Active,
    /// No probe was answered for a while: the rates that were found hold until one is.
    Blind,
    /// A probe was answered again: it begins again.
    Seen,
    /// A shaper is not there any more: the reason. The other one has the rate that it was found with.
    Gone(String),
    /// The shapers are there, with these rates: it begins again.
    Back(PerDirection<Option<u64>>),
    /// It ended: each device with the rate that is put back, or the reason why it is not.
    Ended(Vec<PutBack>),
    /// An earlier controller had died: what it left was put back first.
    Earlier(Vec<PutBack>),
    /// Other limits were found by observation: they are in the plan.
    Limits(Box<AutoratePlan>),
    /// What was found of the limits is not used, or not remembered: the reason.
    NotRemembered(String),
}

/// Finds the shapers, and the limits for them; and the reason where what earlier runs found of the limits
/// cannot be used.
///
/// # Errors
/// A device without a shaper, limits in the wrong order, a controller that cannot run live: with what to do.
pub fn plan(options: &AutorateOptions) -> Result<(AutoratePlan, Option<String>)> {
    let (learned, why_not) = earlier(options);
    Ok((plan_with(options, &learned)?, why_not))
}

/// What earlier runs found of the limits; the reason where that cannot be used.
pub(super) fn earlier(options: &AutorateOptions) -> (LearnedLimits, Option<String>) {
    let remembered = RememberedLimits::of(&options.up).filter(|_| options.learns().any());
    match remembered.map_or(Ok(LearnedLimits::default()), |file| file.read()) {
        Ok(learned) => (learned, None),
        Err(why) => (LearnedLimits::default(), Some(why)),
    }
}

/// Finds the shapers, and the limits by what was found before.
pub(super) fn plan_with(options: &AutorateOptions, learned: &LearnedLimits) -> Result<AutoratePlan> {
    check(options)?;
    let mut kernel = Kernel::open().context("netlink")?;
    let up = FoundShaper::find(&mut kernel, &options.up)?;
    let down = match &options.down {
        Some(dev) => Some(FoundShaper::find(&mut kernel, dev)?),
        None => None,
    };
    let shapers = PerDirection { up: Some(up), down };
    for shaper in [&shapers.up, &shapers.down].into_iter().flatten() {
        if shaper.found() < LEAST_RATE {
            return invalid(format!(
                "{} of {} has {}, and no rate below {} is set: give it the rate to begin with (`tc qdisc \
                 change`, `tc class change`)",
                shaper.words(),
                shaper.dev(),
                numbers::rate(shaper.found() as f64),
                numbers::rate(LEAST_RATE as f64),
            ));
        }
    }
    let plan = AutoratePlan::new(options, shapers, learned)?;
    // What is wrong with a configuration is found before anything is changed.
    controller(&options.controller, plan.limits, options.probe_step())?;
    if options.targets.is_empty() && !matches!(options.controller, ControllerChoice::Fixed(_)) {
        return invalid(
            "no hosts to probe: name one beyond the line, best one of your own near it (--target ADDRESS, \
             several times for several); none is probed unless it is named",
        );
    }
    Ok(plan)
}

/// What earlier runs left on the devices, as a run of now would find it; nothing is changed.
///
/// # Errors
/// A run of now would be refused: another process controls a device, or what was left cannot be read.
pub fn obstacles(options: &AutorateOptions) -> Result<Vec<(String, LeftBehind)>> {
    let runtime = RuntimeDir::here()?;
    let mut all = Vec::new();
    for dev in options.devices() {
        all.extend(left_behind(&runtime, dev)?.map(|left| (dev.to_owned(), left)));
    }
    Ok(all)
}

/// Why an address cannot be that of a host beyond the line; `None`: it can.
fn no_target(address: IpAddr) -> Option<&'static str> {
    // An IPv4 address within IPv6 is one of IPv4.
    let address = address.to_canonical();
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    match address {
        _ if address.is_unspecified() => Some("is no host's address"),
        _ if address.is_loopback() => Some("is this computer, and what is sent there does not pass the line"),
        _ if address.is_multicast() => Some("is a multicast address, to which any number of hosts may reply"),
        _ if is_broadcast => Some("is the broadcast address, to which any number of hosts may reply"),
        _ => None,
    }
}

/// As [`no_target`], of an address by the addresses and networks that this computer has: what would be sent
/// there is asked of the kernel, and nothing is sent.
fn no_target_here(address: IpAddr) -> Option<&'static str> {
    /// The port of discard (RFC 863): any would do.
    const DISCARD: u16 = 9;
    let any = if address.is_ipv4() { IpAddr::from([0_u8; 4]) } else { IpAddr::from([0_u16; 8]) };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    match socket.connect((address, DISCARD)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Some("is the broadcast address of a network here, to which any number of hosts may reply")
        }
        Err(_) => None,
        Ok(()) => {
            let own = socket.local_addr().is_ok_and(|own| own.ip() == address);
            own.then_some("is this computer, and what is sent there does not pass the line")
        }
    }
}

/// What is wrong whatever is found.
pub(super) fn check(options: &AutorateOptions) -> Result<()> {
    for target in &options.targets {
        if let Some(why) = no_target(*target).or_else(|| no_target_here(target.to_canonical())) {
            return invalid(format!(
                "target {target}: it {why}: name a host beyond the line, such as a server of your own (--target)"
            ));
        }
    }
    if options.down.as_ref() == Some(&options.up) {
        return invalid(format!(
            "{} cannot shape both directions: downloads are shaped by an ifb, or by the device of the LAN",
            options.up
        ));
    }
    Ok(())
}

pub(super) fn limits(
    options: &AutorateOptions,
    shapers: &PerDirection<Option<FoundShaper>>,
) -> Result<RateLimits> {
    // Of a direction that is left alone any limits will do.
    const ALONE: u64 = 1_000_000;
    let found = PerDirection::of(|direction| shapers[direction].as_ref().map_or(ALONE, FoundShaper::found));
    let base = PerDirection::of(|direction| options.base[direction].unwrap_or(found[direction]));
    let assumed = RateLimits::assumed(base);
    let least = PerDirection::of(|direction| {
        options.least[direction].unwrap_or(assumed.least[direction].max(LEAST_RATE))
    });
    let most = PerDirection::of(|direction| options.most[direction].unwrap_or(assumed.most[direction]));
    let limits = configured(&options.controller, RateLimits { least, base, most })?;
    let RateLimits { least, base, most } = limits;
    for direction in RateDirection::BOTH.into_iter().filter(|direction| shapers[*direction].is_some()) {
        let (least, base, most) = (least[direction], base[direction], most[direction]);
        if !(LEAST_RATE <= least && least <= base && base <= most) {
            let rate = |bits: u64| numbers::rate(bits as f64);
            return invalid(format!(
                "the {}'s lowest rate ({}), base rate ({}) and highest rate ({}) must rise in this order, from \
                 {}: give them with --min, --base and --max",
                direction.word(),
                rate(least),
                rate(base),
                rate(most),
                rate(LEAST_RATE),
            ));
        }
    }
    Ok(limits)
}

/// The limits with those of a configuration of cake-autorate's, which go before others.
fn configured(choice: &ControllerChoice, limits: RateLimits) -> Result<RateLimits> {
    let ControllerChoice::CakeAutorate(Some(text)) = choice else { return Ok(limits) };
    let settings = match CakeAutorateSettings::new(limits).read(text) {
        Ok((settings, _)) => settings,
        Err(wrong) => return invalid(format!("--cake-config: {wrong}")),
    };
    let bits = |kbit: PerDirection<f64>| PerDirection::of(|direction| (kbit[direction] * 1000.0) as u64);
    Ok(RateLimits {
        least: bits(settings.min_shaper_rate_kbps),
        base: bits(settings.base_shaper_rate_kbps),
        most: bits(settings.max_shaper_rate_kbps),
    })
}

/// Makes a controller for live use.
///
/// # Errors
/// One that knows the line's capacity; a configuration that cannot be taken, with its line.
pub(super) fn controller(
    choice: &ControllerChoice,
    limits: RateLimits,
    probe_step: Duration,
) -> Result<Box<dyn RateController + Send>> {
    Ok(match choice {
        ControllerChoice::Own | ControllerChoice::OwnAiming(_) => {
            let aim = if let ControllerChoice::OwnAiming(aim) = choice { *aim } else { 1.0 };
            let usual = OwnSettings::new(limits).aiming(aim);
            // Probes that are far apart are no sign of a silent line.
            let silent = usual.silent.max(SILENT_PROBES * probe_step.as_secs_f64());
            Box::new(OwnController::new(OwnSettings { silent, ..usual }))
        }
        ControllerChoice::CakeAutorate(configuration) => {
            let mut settings = CakeAutorateSettings::new(limits);
            if let Some(text) = configuration {
                settings = match settings.read(text) {
                    Ok((settings, _)) => settings,
                    Err(wrong) => return invalid(wrong.to_string()),
                };
            }
            Box::new(CakeAutorate::new(settings))
        }
        ControllerChoice::SqmAutorate => {
            // Its random draws need not be the same each time.
            let seed = u64::from(std::process::id());
            Box::new(SqmAutorate::new(SqmAutorateSettings::new(limits, seed)))
        }
        ControllerChoice::Fixed(share) => {
            let rate = |base: u64| ((base as f64 * share) as u64).max(LEAST_RATE);
            Box::new(FixedRates::new(PerDirection { up: rate(limits.base.up), down: rate(limits.base.down) }))
        }
        ControllerChoice::Pid => Box::new(PidController::new(PidSettings::new(limits))),
        ControllerChoice::OwnLearning => {
            return invalid("`tidegate:learning`: live `tidegate` finds the limits that are not given");
        }
        ControllerChoice::Program(path) => {
            return invalid(format!(
                "`program:{path}`: programs can be tried in `tidegate gym`, not run live"
            ));
        }
        ControllerChoice::Known => {
            return invalid("the controller `known` knows the line's capacity, which is not known live");
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loopback addresses are this computer's own wherever that is asked.
    #[test]
    fn an_address_of_this_computer_is_no_target() {
        let own = no_target_here(IpAddr::from([127, 0, 0, 1]));
        assert!(own.is_some_and(|why| why.starts_with("is this computer")), "{own:?}");
    }
}
