//! The shaper whose rates are controlled: the commands that make it, and those that change it.

use tidegate_control::{PerDirection, RateDirection};
use tidegate_gateway::{DeviceId, DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Pool, RandomSource, Time};
use tidegate_policy::{LinkDriver, Op};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{TcCommand, parse};

/// Which qdisc holds the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShaperKind {
    /// `cake bandwidth RATE`.
    #[default]
    Cake,
    /// `htb` with one class, and fq_codel below it.
    Htb,
    /// `tbf`, and fq_codel below it.
    Tbf,
}

impl ShaperKind {
    /// All, by their names.
    pub const NAMED: [(&'static str, ShaperKind); 3] =
        [("cake", ShaperKind::Cake), ("htb", ShaperKind::Htb), ("tbf", ShaperKind::Tbf)];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ShaperKind::Cake => "cake",
            ShaperKind::Htb => "htb",
            ShaperKind::Tbf => "tbf",
        }
    }

    /// The commands that make it on a device.
    fn make(self, dev: &str, rate: u64) -> Vec<String> {
        let ingress = if dev == DOWN { " ingress" } else { "" };
        let codel = "fq_codel";
        match self {
            ShaperKind::Cake => vec![format!("qdisc add dev {dev} root cake bandwidth {rate}bit{ingress}")],
            ShaperKind::Htb => vec![
                format!("qdisc add dev {dev} root handle 1: htb default 10"),
                format!("class add dev {dev} parent 1: classid 1:10 htb rate {rate}bit"),
                format!("qdisc add dev {dev} parent 1:10 {codel}"),
            ],
            ShaperKind::Tbf => vec![
                format!("qdisc add dev {dev} root handle 1: tbf rate {rate}bit burst 4542b limit 10mb"),
                format!("qdisc add dev {dev} parent 1:1 {codel}"),
            ],
        }
    }

    /// The command that changes its rate.
    fn change(self, dev: &str, rate: u64) -> String {
        match self {
            ShaperKind::Cake => format!("qdisc change dev {dev} root cake bandwidth {rate}bit"),
            ShaperKind::Htb => format!("class change dev {dev} parent 1: classid 1:10 htb rate {rate}bit"),
            ShaperKind::Tbf => {
                format!("qdisc change dev {dev} root handle 1: tbf rate {rate}bit burst 4542b limit 10mb")
            }
        }
    }
}

/// The device before the modem, whose shaper holds uploads.
const UP: &str = "eth0";
/// What arrives from the modem is redirected to this one, whose shaper holds downloads.
const DOWN: &str = "ifb0";

/// A gateway with a shaper in each direction.
pub(crate) struct ShapedGateway {
    pub(crate) gateway: Gateway,
    pub(crate) devices: PerDirection<DeviceId>,
}

/// A machine with both shapers at these rates, bit/s.
///
/// # Errors
/// A command that is refused, in tc's words.
pub(crate) fn gateway(
    kind: ShaperKind,
    rates: PerDirection<u64>,
    pool: &mut Pool,
    random: &mut dyn RandomSource,
) -> Result<ShapedGateway, String> {
    let mut gateway = Gateway::new();
    let up = gateway.add_device(UP, DeviceSpec::default());
    let down = gateway.add_device(DOWN, DeviceSpec::of(&LinkDriver::Ifb));
    let mut lines = kind.make(UP, rates.up);
    lines.extend(kind.make(DOWN, rates.down));
    lines.push(format!("qdisc add dev {UP} handle ffff: ingress"));
    lines.push(format!(
        "filter add dev {UP} parent ffff: protocol all matchall action mirred egress redirect dev {DOWN}"
    ));
    for line in lines {
        let op = operation(&line)?;
        let context = GatewayContext { now: Time(0), pool: &mut *pool, random: &mut *random };
        gateway.apply(context, &op).map_err(|error| format!("tc {line}: {error}"))?;
    }
    Ok(ShapedGateway { gateway, devices: PerDirection { up, down } })
}

/// The operation that changes a rate, as `tc` would ask the kernel for it.
///
/// # Errors
/// A rate that tc does not take.
pub(crate) fn change(kind: ShaperKind, direction: RateDirection, rate: u64) -> Result<Op, String> {
    let dev = match direction {
        RateDirection::Up => UP,
        RateDirection::Down => DOWN,
    };
    operation(&kind.change(dev, rate))
}

fn operation(line: &str) -> Result<Op, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let env = Env { devices: None, ..Env::default() };
    match parse(&words, &env).map(|read| read.command) {
        Ok(TcCommand::Apply(op)) => Ok(op),
        Ok(_) => Err(format!("tc {line}: it changes nothing")),
        Err(refusal) => Err(format!("tc {line}: {}", refusal.stderr.trim_end())),
    }
}
