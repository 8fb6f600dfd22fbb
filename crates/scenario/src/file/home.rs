//! `[home]`: a home and its link, in one table.
//!
//! hosts - LAN - gateway - cable - modem = uplink = isp - Internet - server

use super::beside::Beside;
use super::lines::{buffer, direction, framing, seed};
use super::network::Network;
use crate::model::{BufferSize, LinkDirection, LinkEnd, ScenarioLink};
use crate::presets::{LinePreset, VaryingLine};
use crate::tables::{Diagnostic, Keys, TableValue, number, rate, size, some_span, text, texts};
use tidegate_packet::Nanos;

/// Adds the nodes a, b, gateway, modem, isp, server and their links.
pub(crate) fn read(
    value: TableValue<'_>,
    network: &mut Network,
    beside: &Beside<'_>,
) -> Result<(), Diagnostic> {
    let mut keys = Keys::of(value)?;
    let varies = keys.get("preset").map(|name| preset(name, &mut keys)).transpose()?;
    let fixed = |keys: &mut Keys<'_>, key: &'static str, missing: &str| match &varies {
        // What varies has a mean.
        Some((_, line)) if key == "up" => Ok(line.up.mean_rate().unwrap_or(1)),
        Some((_, line)) => Ok(line.down.mean_rate().unwrap_or(1)),
        None => rate(keys.need(key, missing)?),
    };
    let up = fixed(&mut keys, "up", "missing upload rate: `up = \"768kbit\"`, or a `preset`")?;
    let down = fixed(&mut keys, "down", "missing download rate: `down = \"4mbit\"`, or a `preset`")?;
    let rtt = keys.read("rtt", some_span)?.unwrap_or(Nanos::millis(20));
    let ring = keys.read("ring", |value| number(value, 1, 65_536))?.map(|frames| frames as u32);
    let bql = keys.read("bql", size)?.map(|bytes| bytes.clamp(1, u64::from(u32::MAX)) as u32);
    let framing = keys.read("framing", framing)?;
    let hosts = keys.read("hosts", texts)?.unwrap_or_else(|| vec!["a", "b"]);
    let lan = keys.read("lan", text)?.unwrap_or("eth1");
    // A number alone is bytes.
    let buffer = |value| size(value).map(BufferSize::Bytes).or_else(|_| buffer(value));
    let usual = match &varies {
        Some((preset, _)) => preset.buffers.map(BufferSize::Time),
        None => [BufferSize::Bytes(24_000), BufferSize::Bytes((down / 32).max(64_000))],
    };
    let up_buffer = keys.read("buffer", buffer)?.unwrap_or(usual[0]);
    let down_buffer = keys.read("down-buffer", buffer)?.unwrap_or(usual[1]);
    let shaped = |rate: u64, buffer, trace| LinkDirection {
        rate: Some(rate),
        buffer: Some(buffer),
        framing,
        trace,
        ..LinkDirection::default()
    };
    let traces = varies.map(|(_, line)| [line.up, line.down].map(Some)).unwrap_or_default();
    let [up_trace, down_trace] = traces;
    let upwards = direction(&mut keys, "up-line", &shaped(up, up_buffer, up_trace), beside)?;
    let downwards = direction(&mut keys, "down-line", &shaped(down, down_buffer, down_trace), beside)?;
    // Of a line that varies the wires must carry the peaks.
    let peak =
        [&upwards, &downwards].into_iter().filter_map(|line| line.trace.as_ref()?.highest_rate()).max();
    let wires = tidegate_sim::wire(up.max(down).max(peak.unwrap_or(0)));
    let cable_rate = keys.read("cable", rate)?.unwrap_or(wires);
    let (wan, beneath) = wan(&mut keys)?;
    let place = keys.place();
    keys.finish()?;

    for name in ["lan", "cable", "dsl", "internet"] {
        if network.cables.iter().any(|cable| cable.name == name) {
            return Err(Diagnostic::new(
                place,
                format!("`[home]` has a link `{name}` of its own"),
                "give yours another name",
            ));
        }
    }
    let wire = |rate: Option<u64>| LinkDirection { rate, ..LinkDirection::default() };
    let mut lay = |name: &str, ends: &[String], up: LinkDirection, down: LinkDirection| {
        let ends: Result<Vec<LinkEnd>, Diagnostic> =
            ends.iter().map(|end| network.end(end, place.clone(), name)).collect();
        network.cables.push(ScenarioLink { name: name.into(), ends: ends?, mtu: None, up, down });
        Ok::<(), Diagnostic>(())
    };
    let mut lan_ends: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    lan_ends.push(format!("gateway:{lan}"));
    lay("lan", &lan_ends, wire(Some(wires)), wire(Some(wires)))?;
    let card = LinkDirection { ring, bql, ..wire(Some(cable_rate)) };
    let outside = beneath.as_deref().unwrap_or(wan.as_str());
    lay("cable", &[format!("gateway:{outside}"), "modem".into()], card, wire(Some(cable_rate)))?;
    lay("dsl", &["modem".into(), "isp".into()], upwards, downwards)?;
    let far = LinkDirection { delay: Some(Nanos(rtt.0 / 2)), ..LinkDirection::default() };
    lay("internet", &["isp".into(), "server".into()], far.clone(), far)?;
    network.far = network.find("server");

    if let Some(lower) = beneath {
        let gateway = network.node("gateway");
        let at = network.device(gateway, &wan);
        network.nodes[gateway].machine.devices[at].on = Some(lower);
    }
    addresses(network, &hosts);
    Ok(())
}

/// A line that varies, by name.
fn preset(
    value: TableValue<'_>,
    keys: &mut Keys<'_>,
) -> Result<(&'static LinePreset, VaryingLine), Diagnostic> {
    let seed = seed(keys)?;
    let name = text(value)?;
    let preset = LinePreset::named(name).ok_or_else(|| {
        Diagnostic::new(
            value.span(),
            format!("there is no preset `{name}`"),
            format!("write one of {}", LinePreset::names()),
        )
    })?;
    for key in ["up", "down"] {
        if let Some(value) = keys.get(key) {
            let why = format!("`{key}` beside `preset`, which has rates of its own");
            return Err(Diagnostic::new(value.span(), why, "leave one of them out"));
        }
    }
    Ok((preset, preset.line(seed)))
}

/// `wan = "eth0"`, or `over = "ppp0 on eth2"`: the device of the policy, and the one it is stacked on.
fn wan(keys: &mut Keys<'_>) -> Result<(String, Option<String>), Diagnostic> {
    let wan = keys.read("wan", text)?.map(str::to_owned);
    let Some(value) = keys.get("over") else { return Ok((wan.unwrap_or_else(|| "eth0".into()), None)) };
    let words: Vec<&str> = text(value)?.split_whitespace().collect();
    match words.as_slice() {
        [upper, "on", lower] if upper != lower && wan.as_deref().is_none_or(|wan| wan == *upper) => {
            Ok(((*upper).to_owned(), Some((*lower).to_owned())))
        }
        _ => Err(Diagnostic::new(
            value.span(),
            "which device is stacked on which?",
            "write `over = \"ppp0 on eth2\"`, without `wan`",
        )),
    }
}

/// 192.168.1.2 and so on for the hosts, 198.51.100.7 for the server: what scripts are written for.
fn addresses(network: &mut Network, hosts: &[&str]) {
    for (number, name) in (2_u8..=254).zip(hosts) {
        let at = network.node(name);
        network.nodes[at].address = Some([192, 168, 1, number].into());
    }
    let server = network.node("server");
    network.nodes[server].address = Some([198, 51, 100, 7].into());
}
