//! What is wrong with how devices are set up.

use super::facts::{DeviceFacts, DoctorFinding, Facts, Inwards, Severity, milliseconds_of, rate_in_words};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The most bytes that a sender hands over as one packet, unless the device has a lower limit.
const SEGMENTS: u64 = 65_536;
/// A burst shorter than this is no matter, ms.
const SHORT_BURST_MS: f64 = 2.0;
/// A driver's queue that holds no more than this is no matter, ms.
const SHORT_DRIVER_MS: f64 = 5.0;
/// Shaped to less than this share of what the link carries, the driver's queue stays empty.
const LINK_SHARE: f64 = 0.95;
/// Features by which a sender hands over many segments as one packet.
const SENT_AS_ONE: [&str; 3] = ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation"];

/// Findings about one device.
pub(super) fn of(facts: &Facts, device: &DeviceFacts) -> Vec<DoctorFinding> {
    [
        sent_as_one(facts, device),
        received_as_one(facts, device),
        by_hardware(device),
        no_byte_limits(facts, device),
        double(facts, device),
        double_at_once(device),
        frames_beneath(facts, device),
        bridge(device),
        download(facts, device),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Findings about all of them.
pub(super) fn of_all(facts: &Facts) -> Vec<DoctorFinding> {
    let flow_tables = facts.flow_tables.iter().flat_map(|table| flow_table(facts, table));
    flow_tables.chain(shaper_on_wrong_device(facts)).chain(not_shaped(facts)).collect()
}

/// Senders hand over up to 64 KiB as one packet, which leaves as one.
fn sent_as_one(facts: &Facts, device: &DeviceFacts) -> Option<DoctorFinding> {
    let rate = device.rate_bps()?;
    let shaper = device.shaper.as_ref()?;
    let on: Vec<&str> = SENT_AS_ONE.into_iter().filter(|feature| device.has(feature)).collect();
    let ms = milliseconds_of(SEGMENTS, rate);
    if on.is_empty() || facts.is_redirect_target(&device.name) || shaper.splits || ms < SHORT_BURST_MS {
        return None;
    }
    let name = &device.name;
    Some(DoctorFinding {
        id: "offload-burst",
        severity: if ms >= 10.0 { Severity::Warning } else { Severity::Note },
        device: name.clone(),
        what: format!(
            "{name} takes up to 64 KiB from a sender as one packet ({}): at {} that is a burst of {ms:.1} \
            ms before anybody else's packet",
            on.join(", "),
            rate_in_words(rate as f64)
        ),
        remedy: "have packets split before they are queued (cake splits them itself); forwarded packets are \
        joined by the device that receives them: gro off there"
            .to_string(),
        commands: [format!("ethtool -K {name} tso off gso off")].into(),
    })
}

/// The card joins what it receives; what is forwarded is one packet in the queue.
fn received_as_one(facts: &Facts, device: &DeviceFacts) -> Option<DoctorFinding> {
    let name = &device.name;
    if device.has("rx-lro") {
        return Some(DoctorFinding {
            id: "lro",
            severity: Severity::Warning,
            device: name.clone(),
            what: format!(
                "{name} joins received packets for good (LRO): what is forwarded is no longer what was \
                sent, and counts as one packet"
            ),
            remedy: "turn it off wherever packets are forwarded".to_string(),
            commands: [format!("ethtool -K {name} lro off")].into(),
        });
    }
    let Inwards::Led(to) = &device.inwards else { return None };
    let led = facts.device(to)?;
    let (rate, shaper) = (led.rate_bps()?, led.shaper.as_ref()?);
    let ms = milliseconds_of(SEGMENTS, rate);
    (device.has("rx-gro") && !shaper.splits && ms >= SHORT_BURST_MS).then(|| DoctorFinding {
        id: "offload-burst",
        severity: if ms >= 10.0 { Severity::Warning } else { Severity::Note },
        device: name.clone(),
        what: format!(
            "{name} joins received packets up to 64 KiB (GRO) before they are queued on {to}: at {} that is \
            a burst of {ms:.1} ms",
            rate_in_words(rate as f64)
        ),
        remedy: "have them come as they were sent".to_string(),
        commands: [format!("ethtool -K {name} gro off")].into(),
    })
}

/// Hardware that carries out filters does so before any class sees the packet.
fn by_hardware(device: &DeviceFacts) -> Option<DoctorFinding> {
    (device.shaper.is_some() && device.has("hw-tc-offload")).then(|| DoctorFinding {
        id: "hardware-filters",
        severity: Severity::Warning,
        device: device.name.clone(),
        what: format!(
            "{} may carry out tc's filters in hardware: what is forwarded so passes no class",
            device.name
        ),
        remedy: "turn it off while the kernel shapes".to_string(),
        commands: [format!("ethtool -K {} hw-tc-offload off", device.name)].into(),
    })
}

/// A driver without limits queues on its own where the link is what limits.
fn no_byte_limits(facts: &Facts, device: &DeviceFacts) -> Option<DoctorFinding> {
    let speed = device.speed_bps.filter(|speed| *speed > 0 && device.is_hardware)?;
    let carries = facts.outwards().iter().any(|out| out.name == device.name) || device.shaper.is_some();
    let is_limited = device.rate_bps().is_some_and(|rate| (rate as f64) < speed as f64 * LINK_SHARE);
    if !carries || is_limited {
        return None;
    }
    let name = &device.name;
    let why = format!(
        "shape to a little less than {}, so that the driver's queue stays empty",
        rate_in_words(speed as f64)
    );
    match &device.byte_limits {
        None => Some(DoctorFinding {
            id: "no-bql",
            severity: Severity::Warning,
            device: name.clone(),
            what: format!(
                "the driver of {name} does not limit its own queue (no BQL): whatever it holds waits in no \
                order of yours"
            ),
            remedy: why,
            commands: [format!("ethtool -g {name}"), format!("ethtool -G {name} tx 64")].into(),
        }),
        Some(limits) => {
            let most = limits.iter().copied().max().unwrap_or(0);
            let ms = milliseconds_of(most, speed);
            (ms > SHORT_DRIVER_MS).then(|| DoctorFinding {
                id: "bql-large",
                severity: Severity::Warning,
                device: name.clone(),
                what: format!(
                    "the driver of {name} may hold {most} bytes ({ms:.1} ms at {}) behind every qdisc",
                    rate_in_words(speed as f64)
                ),
                remedy: why,
                commands: [format!(
                    "for q in /sys/class/net/{name}/queues/tx-*; do echo 30000 > \
                    $q/byte_queue_limits/limit_max; done"
                )]
                .into(),
            })
        }
    }
}

/// Two shapers, one after the other.
fn double(facts: &Facts, device: &DeviceFacts) -> Option<DoctorFinding> {
    let upper = device.rate_bps()?;
    let below =
        device.below.iter().filter_map(|name| facts.device(name)).find(|below| below.rate_bps().is_some())?;
    let lower = below.rate_bps()?;
    let [first, second] = [&device.name, &below.name];
    let idle = if lower <= upper { first } else { second };
    Some(DoctorFinding {
        id: "double-shaping",
        severity: Severity::Warning,
        device: first.clone(),
        what: format!(
            "what leaves by {first} is shaped to {} and then again by {second} beneath it to {}: only the \
            lower of them orders packets, and each adds its queue",
            rate_in_words(upper as f64),
            rate_in_words(lower as f64)
        ),
        remedy: format!("keep one; the higher rate is that of {idle}"),
        commands: [format!("tc qdisc del dev {idle} root")].into(),
    })
}

/// Shaped by us, and by the kernel at the same device.
fn double_at_once(device: &DeviceFacts) -> Option<DoctorFinding> {
    let (upper, lower) = (device.rate_bps()?, device.shaper.as_ref()?.beneath_bps?);
    let name = &device.name;
    Some(DoctorFinding {
        id: "double-shaping",
        severity: Severity::Warning,
        device: name.clone(),
        what: format!(
            "what leaves by {name} is shaped by tidegate's daemon to {} and then by the kernel's qdisc to \
            {}: only the lower rate orders packets, and each adds its queue",
            rate_in_words(upper as f64),
            rate_in_words(lower as f64)
        ),
        remedy: "keep one".to_string(),
        commands: [format!("tc qdisc del dev {name} root")].into(),
    })
}

/// On what carries PPPoE, filters for IP see none.
fn frames_beneath(facts: &Facts, device: &DeviceFacts) -> Option<DoctorFinding> {
    device.shaper.as_ref().filter(|shaper| shaper.classes.len() > 1)?;
    let above =
        facts.outwards().into_iter().find(|above| above.is_ppp && above.below.contains(&device.name))?;
    let (name, above) = (&device.name, &above.name);
    Some(DoctorFinding {
        id: "frames-of-ppp",
        severity: Severity::Bad,
        device: name.clone(),
        what: format!(
            "{name} carries {above}'s packets inside PPPoE frames: filters for IP on {name} match none of \
            them, so all are in the default class"
        ),
        remedy: format!("put the policy on {above}"),
        commands: [format!("tidegate apply POLICY --dev {above}")].into(),
    })
}

/// The queue of a bridge sees only what this computer itself sends over it.
fn bridge(device: &DeviceFacts) -> Option<DoctorFinding> {
    let (master, name) = (device.master.as_ref()?, &device.name);
    device.shaper.as_ref()?;
    matches!(device.inwards, Inwards::Led(_) | Inwards::Handled).then(|| DoctorFinding {
        id: "bridge-member",
        severity: Severity::Note,
        device: name.clone(),
        what: format!(
            "{name} is a member of {master}: its filters see frames before {master} and netfilter \
        do, so marks of iptables are not set there yet"
        ),
        remedy: format!("classify by addresses and ports on {name}, or put the policy on {master}"),
        commands: Vec::new(),
    })
}

/// Shaped outwards, not inwards.
fn download(facts: &Facts, device: &DeviceFacts) -> Option<DoctorFinding> {
    let rate = device.rate_bps()?;
    let is_outwards = facts.outwards().iter().any(|out| out.name == device.name);
    let is_elsewhere = facts.devices.iter().any(|other| {
        other.name != device.name
            && other.rate_bps().is_some()
            && !facts.outwards().iter().any(|out| out.name == other.name)
    });
    if !is_outwards || device.inwards != Inwards::Plain || is_elsewhere {
        return None;
    }
    let name = &device.name;
    let came = facts.rate(device.received);
    Some(DoctorFinding {
        id: "download-unshaped",
        severity: Severity::Warning,
        device: name.clone(),
        what: format!(
            "what leaves by {name} is shaped to {}, what arrives there ({} now) is not: a download fills \
            the provider's queue",
            rate_in_words(rate as f64),
            rate_in_words(came)
        ),
        remedy: "redirect what arrives to an ifb that shapes it to a little less than the line's rate"
            .to_string(),
        commands: [
            "ip link add ifb0 type ifb".to_string(),
            "ip link set ifb0 up".to_string(),
            format!("tc qdisc add dev {name} ingress"),
            format!("tc filter add dev {name} ingress matchall action mirred egress redirect dev ifb0"),
            "tc qdisc add dev ifb0 root cake bandwidth RATE ingress".to_string(),
        ]
        .into(),
    })
}

/// nft hands known connections from device to device, past what is between.
fn flow_table(facts: &Facts, table: &super::facts::FlowTableFacts) -> Option<DoctorFinding> {
    let shaped = |name: &&String| {
        facts.device(name).is_some_and(|device| device.shaper.is_some() || device.inwards != Inwards::Plain)
    };
    let device = table.devices.iter().find(shaped)?;
    let (severity, what) = match table.is_hardware {
        true => (
            Severity::Bad,
            format!(
                "the flow table {} lets the hardware forward known connections of {device}: no qdisc sees them",
                table.name
            ),
        ),
        false => (
            Severity::Warning,
            format!(
                "the flow table {} forwards known connections of {device} past the chains of iptables and \
                nft: marks and classes set there are missing after the first packets",
                table.name
            ),
        ),
    };
    let (family, name) = table.name.rsplit_once(' ').unwrap_or(("inet filter", &table.name));
    Some(DoctorFinding {
        id: "flow-offload",
        severity,
        device: device.clone(),
        what,
        remedy: "remove the rules `flow add`, or classify by fields of the packet".to_string(),
        commands: [format!("nft delete flowtable {family} {name}")].into(),
    })
}

/// Nothing holds packets to a rate anywhere.
fn not_shaped(facts: &Facts) -> Option<DoctorFinding> {
    if facts.devices.iter().any(|device| device.rate_bps().is_some()) {
        return None;
    }
    let out = facts.outwards().first().map(|device| device.name.clone())?;
    // A daemon that hangs may hold every packet.
    if facts.broken.iter().any(|policy| policy.devices.contains(&out)) {
        return None;
    }
    Some(DoctorFinding {
        id: "not-shaped",
        severity: Severity::Warning,
        what: format!(
            "nothing is shaped here: packets leave by {out} as fast as it takes them, and wait wherever the \
            line is slower"
        ),
        remedy: "try a policy on a simulated line, then put it there".to_string(),
        commands: ["tidegate try POLICY".to_string(), format!("tidegate apply POLICY --dev {out}")].into(),
        device: out,
    })
}

/// The shaped device is not the one that packets leave by.
fn shaper_on_wrong_device(facts: &Facts) -> Option<DoctorFinding> {
    let out = facts.outwards();
    let taken = out.first()?;
    if out.iter().any(|device| device.shaper.is_some()) {
        return None;
    }
    let shaped = facts
        .devices
        .iter()
        .find(|device| device.rate_bps().is_some() && !facts.is_redirect_target(&device.name))?;
    if shaped.sent > taken.sent / 10 {
        return None;
    }
    let (name, taken_name) = (&shaped.name, &taken.name);
    Some(DoctorFinding {
        id: "wrong-device",
        severity: Severity::Bad,
        device: name.clone(),
        what: format!(
            "{name} is shaped, but packets leave by {taken_name} (default route): {} there and {} by {name}",
            rate_in_words(facts.rate(taken.sent)),
            rate_in_words(facts.rate(shaped.sent))
        ),
        remedy: format!("put the policy on {taken_name}"),
        commands: [format!("tidegate down {name}"), format!("tidegate apply POLICY --dev {taken_name}")]
            .into(),
    })
}
