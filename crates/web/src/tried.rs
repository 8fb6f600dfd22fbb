//! A policy tried, checked and explained.

use crate::loaded::load;
use crate::refusal::Refusal;
use crate::request::{ExplainRequest, PolicyRequest, RequestLimits, TryRequest};
use std::path::Path;
use tidegate_inspect::Packet;
use tidegate_inspect::explained::{Explained, ExplainedPacket};
use tidegate_loader::checked::CheckError;
use tidegate_loader::{LoadedPolicy, short};
use tidegate_measure::trial::TrialDocument;
use tidegate_packet::{Nanos, Rate};
use tidegate_scenario::presets::{LinePreset, VaryingLine};
use tidegate_scenario::quantities;
use tidegate_syntax::TcVersion;
use tidegate_trial::{
    Configured, ModemBuffer, Trial, TrialCommand, TrialDevices, TrialLine, TrialLoad, TrialPolicy,
    TrialProbe, TrialSettings,
};

/// `tidegate check --json`.
pub(crate) fn check(request: &PolicyRequest) -> Result<String, Refusal> {
    let loaded = load(request, true)?;
    let checked = loaded.checked(request.dev.as_deref()).map_err(|error| match error {
        CheckError::NothingFound { why, .. } => Refusal::of_troubles(why, &loaded),
        other => Refusal::of_troubles(other.to_string(), &loaded),
    })?;
    Ok(tidegate_inspect::checked::to_json(&checked))
}

/// `tidegate explain --json`.
pub(crate) fn explain(request: &ExplainRequest) -> Result<String, Refusal> {
    let packet = Packet::parse(&request.packet).map_err(|wrong| {
        Refusal::with(
            wrong.to_string(),
            "for example: udp 192.168.1.7:5060 > 203.0.113.9:5060 dscp EF len 200",
        )
    })?;
    let loaded = load(&request.policy, false)?;
    if let Some(nothing) = loaded.nothing_found() {
        return Err(Refusal::of_troubles(nothing, &loaded));
    }
    let packets = vec![ExplainedPacket { heading: String::new(), packet }];
    let explained = Explained::of(loaded.reading(), None, packets, request.reply).map_err(Refusal::new)?;
    Ok(explained.to_json())
}

/// `tidegate try --json`.
pub(crate) fn attempt(request: &TryRequest) -> Result<String, Refusal> {
    let settings = settings(request)?;
    bounded(&settings)?;
    let policy = policy(request)?;
    let mut trial = Trial::new(&settings, &policy);
    trial.explore();
    trial.simulate(&|| ());
    let document: TrialDocument = trial.document();
    Ok(tidegate_analysis::trial::to_json(&document))
}

/// The policy as a trial takes it.
fn policy(request: &TryRequest) -> Result<TrialPolicy, Refusal> {
    let of = &request.policy;
    let loaded = load(of, false)?;
    if let Some(nothing) = loaded.nothing_found() {
        return Err(Refusal::of_troubles(nothing, &loaded));
    }
    if let Err(why) = loaded.must_have_worked(request.keep_going) {
        // A page has no options to name.
        return Err(Refusal::of_troubles(why.split(" (--").next().unwrap_or_default(), &loaded));
    }
    let devices = TrialDevices { wan: of.dev.as_deref(), over: None, lan: request.lan.as_deref() };
    if let Some(dev) = &of.dev {
        loaded.must_concern(dev).map_err(|error| Refusal::new(error.to_string()))?;
    }
    let (commands, of_kernel) = (loaded.commands(), loaded.not_known_of_kernel());
    let LoadedPolicy { machine, outcomes, wan, lan, names, .. } = loaded;
    let notes = outcomes.iter().flat_map(|outcome| &outcome.notes).cloned().chain(of_kernel).collect();
    let configured = Configured { machine, commands, wan, lan, notes, names };
    let policy = TrialPolicy::new(configured, devices).map_err(|error| Refusal::new(error.to_string()))?;
    if request.lan.as_ref() == Some(&policy.wan) {
        let why = format!("{} leads to the modem, and cannot lead to the LAN, too", policy.wan);
        return Err(Refusal::new(why));
    }
    Ok(policy)
}

/// The settings that the command line would have.
fn settings(request: &TryRequest) -> Result<TrialSettings, Refusal> {
    let rate = |text: &Option<String>| text.as_deref().map(quantities::rate).transpose();
    let (up, down) = (rate(&request.up).map_err(Refusal::new)?, rate(&request.down).map_err(Refusal::new)?);
    let seed = request.policy.seed.unwrap_or(1);
    let (up, down, line) = match &request.preset {
        Some(name) => {
            let (up, down, line) = varying(name, seed)?;
            (up, down, Some(line))
        }
        None => {
            let (up, down) = rates(request, (up, down))?;
            (up, down, None)
        }
    };
    let (buffer, down_buffer) = TrialSettings::usual_buffers(line.as_ref());
    let buffer_of = |text: &Option<String>| text.as_deref().map(ModemBuffer::parse).transpose();
    let span = |text: &Option<String>, usual: Nanos, read: fn(&str) -> Result<Nanos, String>| {
        text.as_deref().map_or(Ok(usual), read).map_err(Refusal::new)
    };
    let named = |name: &String| TrialLoad::named(name).ok_or_else(|| no_such("load", name));
    let probe = |name: &String| TrialProbe::named(name).ok_or_else(|| no_such("probe", name));
    let mut settings = TrialSettings {
        line,
        rtt: span(&request.rtt, Nanos::millis(30), quantities::span)?,
        buffer: buffer_of(&request.buffer).map_err(Refusal::new)?.unwrap_or(buffer),
        down_buffer: buffer_of(&request.down_buffer).map_err(Refusal::new)?.or(down_buffer),
        duration: span(&request.duration, Nanos::secs(60), quantities::measured)?,
        load: request.load.iter().map(named).collect::<Result<_, _>>()?,
        flows: request.flows,
        probes: match &request.probes {
            Some(names) => names.iter().map(probe).collect::<Result<_, _>>()?,
            None => TrialProbe::ALL.to_vec(),
        },
        ipv6: request.ipv6,
        seed,
        ..TrialSettings::new(request.policy.name.as_str(), up, down)
    };
    let command = TrialCommand {
        policy: Path::new(&request.policy.name),
        also: &[],
        dev: request.policy.dev.as_deref(),
        over: None,
        lan: request.lan.as_deref(),
        kernel: Default::default(),
        tc: TcVersion::default(),
        timeout: None,
        script: "",
        outputs: &[],
        flags: if request.keep_going { &["keep-going"] } else { &[] },
    };
    settings.again = command.words(&settings);
    Ok(settings)
}

fn no_such(what: &str, name: &str) -> Refusal {
    Refusal::new(format!("there is no {what} `{}`", tidegate_text::line(name)))
}

/// The rates of a line that is always the same: the request's, or a short policy's.
fn rates(request: &TryRequest, (up, down): (Option<Rate>, Option<Rate>)) -> Result<(Rate, Rate), Refusal> {
    let (of_up, of_down) = match (up, down) {
        (Some(_), Some(_)) => (None, None),
        // Where there are mistakes, they are better said with their places.
        _ => short::rates_of(Path::new(&request.policy.name), &request.policy.policy)
            .map_err(|why| load(&request.policy, false).err().unwrap_or_else(|| Refusal::new(why)))?,
    };
    match (up.or(of_up), down.or(of_down)) {
        (Some(up), Some(down)) => Ok((up, down)),
        _ => Err(Refusal::with("the link's rates are missing", "set the upload and the download rate")),
    }
}

/// A line that varies, by its preset's name.
fn varying(name: &str, seed: u64) -> Result<(Rate, Rate, TrialLine), Refusal> {
    let preset = LinePreset::named(name).ok_or_else(|| no_such("line", name))?;
    let VaryingLine { up, down } = preset.line(seed);
    let (up_rate, down_rate) = (up.mean_rate().map(Rate::bits), down.mean_rate().map(Rate::bits));
    let (Some(up_rate), Some(down_rate)) = (up_rate, down_rate) else {
        return Err(Refusal::new("the preset has no rates"));
    };
    let line = TrialLine {
        name: format!("the preset {}, seed {seed}", preset.name),
        options: format!("--preset {}", preset.name),
        up: Some(up),
        down: Some(down),
        buffers: Some(preset.buffers.map(ModemBuffer::Time)),
    };
    Ok((up_rate, down_rate, line))
}

/// Refuses what a page would wait too long for.
fn bounded(settings: &TrialSettings) -> Result<(), Refusal> {
    // Each load is simulated without and with the policy.
    let runs = 2 * if settings.load.is_empty() { 4 } else { settings.load.len() as u128 };
    let rate = u128::from(settings.up.as_bits()) + u128::from(settings.down.as_bits());
    let bits = rate * u128::from(settings.duration.0) * runs / 1_000_000_000;
    if bits > u128::from(RequestLimits::BITS) {
        return Err(Refusal::with(
            format!(
                "that is {} gigabits to carry, more than {} in a page",
                bits >> 30,
                RequestLimits::BITS >> 30
            ),
            "lower the rates, shorten the time or take fewer loads; `tidegate try` has no such limit",
        ));
    }
    if settings.flows.is_some_and(|flows| flows > RequestLimits::FLOWS) {
        return Err(Refusal::new(format!("{} transfers are the most in a page", RequestLimits::FLOWS)));
    }
    Ok(())
}
