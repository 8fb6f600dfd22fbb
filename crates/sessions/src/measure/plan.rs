//! The tests: the probes, and the loads of the path. Names are flent's.

use crate::error::{Error, Result};
use std::time::Duration;

/// A test: loads, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What is done, in a few words.
    pub title: String,
    /// Its loads, in order.
    pub loads: Vec<LoadPlan>,
}

/// The loads that run at the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadPlan {
    /// Its name in results.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// The test of flent's that it is.
    pub test: Option<String>,
    /// How long it lasts.
    pub length: Duration,
    /// The probes.
    pub probes: Vec<ProbePlan>,
    /// TCP flows towards the server, each with its code point.
    pub up: Vec<u8>,
    /// TCP flows from the server, each with its code point.
    pub down: Vec<u8>,
    /// UDP that floods upwards, bits per second.
    pub flood: Option<f64>,
    /// Echo requests beside, if we may send any.
    pub icmp: bool,
}

/// Packets sent both ways at the same times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbePlan {
    /// Its name in results: `udp-ef`, `voip`.
    pub id: String,
    /// What it is, in a few words.
    pub title: String,
    /// The code point of its packets, 0 to 63.
    pub dscp: u8,
    /// The ECN field of its packets: 0, or 1, which is L4S's ECT(1).
    pub ecn: u8,
    /// Bytes of UDP payload.
    pub payload: u16,
    /// From one packet to the next.
    pub every: Duration,
}

/// A mark of packets, with its name in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMark {
    /// `NQB`, `L4S`, `46`.
    pub name: String,
    /// The code point, 0 to 63.
    pub dscp: u8,
    /// The ECN field: 0, or 1, which is L4S's ECT(1).
    pub ecn: u8,
}

/// What the caller of a test wants of it.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// How long each load lasts; `None`: as the test has it.
    pub length: Option<Duration>,
    /// How long the idle path is looked at before.
    pub idle: Duration,
    /// From one probe to the next.
    pub every: Duration,
    /// Flows of the tests without a fixed number.
    pub streams: u32,
    /// Marks beside each other; empty: as the test has it.
    pub marks: Vec<NamedMark>,
    /// Bits per second of `udp_flood`.
    pub flood: f64,
}

/// Classes of rrul's flows: best effort, background, video, voice.
const RRUL: [u8; 4] = [0, 8, 40, 46];
/// The payload of a probe, and of a call: 20 ms of G.711 with RTP's header.
const PROBE: u16 = 64;
const CALL: u16 = 172;
const CALL_EVERY: Duration = Duration::from_millis(20);
/// How long a load lasts: of a short test each, of one that was named.
const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(30);
/// The tests, for messages.
pub const TESTS: &str = "rrul, rrul_be, tcp_up, tcp_down, tcp_Nup, tcp_Ndown, tcp_nup, tcp_ndown, \
bidirectional, voip, udp_flood, ping";

/// The plan of a test; without a name: idle, uploads, downloads, both.
///
/// # Errors
/// There is no such test.
///
/// ```
/// use std::time::Duration;
/// use tidegate_sessions::measure::plan::{Wishes, plan};
///
/// let (idle, every) = (Duration::from_secs(5), Duration::from_millis(50));
/// let wishes = Wishes { length: None, idle, every, streams: 4, marks: Vec::new(), flood: 20e6 };
/// let rrul = plan(Some("rrul"), &wishes).unwrap();
/// assert_eq!(rrul.loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>(), ["idle", "rrul"]);
/// assert_eq!((rrul.loads[1].up.len(), rrul.loads[1].probes.len()), (4, 3));
/// assert!(plan(Some("tcp_0up"), &wishes).is_err());
/// ```
pub fn plan(name: Option<&str>, wishes: &Wishes) -> Result<Plan> {
    let best = |count: u32| vec![0; count as usize];
    let streams = wishes.streams;
    let loaded = |name: &str, title: String, up: Vec<u8>, down: Vec<u8>| LoadPlan {
        name: name.to_owned(),
        title,
        length: wishes.length.unwrap_or(SHORT),
        probes: probes(wishes, &[("udp", 0)]),
        up,
        down,
        icmp: true,
        ..LoadPlan::default()
    };
    let idle = LoadPlan { length: wishes.idle, ..loaded("idle", "idle".into(), vec![], vec![]) };
    let Some(name) = name else {
        let loads = vec![
            idle,
            loaded("up", number_of(streams, "upload"), best(streams), vec![]),
            loaded("down", number_of(streams, "download"), vec![], best(streams)),
            loaded(
                "both",
                format!("{} and {}", number_of(streams, "upload"), number_of(streams, "download")),
                best(streams),
                best(streams),
            ),
        ];
        return Ok(Plan { title: "idle, uploads, downloads, both".to_owned(), loads });
    };
    let mut load = match name {
        "rrul" => LoadPlan {
            probes: probes(wishes, &[("udp-ef", 46), ("udp-bk", 8), ("udp-be", 0)]),
            ..loaded(name, "four flows each way in four classes".into(), RRUL.into(), RRUL.into())
        },
        "rrul_be" => LoadPlan {
            probes: probes(wishes, &[("udp", 0)]),
            ..loaded(name, "four flows each way, best effort".into(), best(4), best(4))
        },
        "tcp_up" | "tcp_upload" => loaded("tcp_1up", "one upload".into(), best(1), vec![]),
        "tcp_down" | "tcp_download" => loaded("tcp_1down", "one download".into(), vec![], best(1)),
        "bidirectional" | "tcp_bidirectional" => {
            loaded("bidirectional", "one flow each way".into(), best(1), best(1))
        }
        "voip" => LoadPlan { probes: call(wishes), ..loaded(name, "a call".into(), vec![], vec![]) },
        "udp_flood" => {
            let rate = tidegate_measure::numbers::rate(wishes.flood);
            LoadPlan {
                flood: Some(wishes.flood),
                ..loaded(name, format!("UDP upwards, {rate}"), vec![], vec![])
            }
        }
        "ping" => loaded(name, "nothing but probes".into(), vec![], vec![]),
        _ => {
            let (up, count) = counted(name, streams)
                .ok_or_else(|| Error::Invalid(format!("`{name}` is not a test; there are {TESTS}")))?;
            match up {
                true => loaded(name, number_of(count, "upload"), best(count), vec![]),
                false => loaded(name, number_of(count, "download"), vec![], best(count)),
            }
        }
    };
    load.length = wishes.length.unwrap_or(LONG);
    load.test = Some(flents(&load.name).to_owned());
    let has_load = !load.up.is_empty() || !load.down.is_empty() || load.flood.is_some();
    // The effect of a load cannot be known without the idle line.
    let idle = LoadPlan { probes: load.probes.clone(), ..idle };
    let title = format!("{name}: {}", load.title);
    Ok(Plan { title, loads: if has_load { vec![idle, load] } else { vec![load] } })
}

/// `1 upload`, `4 uploads`.
fn number_of(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `tcp_4up`, `tcp_nup`: whether it goes up, and how many flows, 1 to 128.
fn counted(name: &str, streams: u32) -> Option<(bool, u32)> {
    let rest = name.strip_prefix("tcp_")?;
    let (digits, up) = match (rest.strip_suffix("up"), rest.strip_suffix("down")) {
        (Some(digits), _) => (digits, true),
        (_, Some(digits)) => (digits, false),
        _ => return None,
    };
    let count = if digits == "n" { streams } else { digits.parse().ok()? };
    (1..=128).contains(&count).then_some((up, count))
}

/// What flent calls a test that it would know under another name.
fn flents(name: &str) -> &str {
    match name {
        "tcp_1up" => "tcp_upload",
        "tcp_1down" => "tcp_download",
        "bidirectional" => "bidirectional",
        "rrul" | "rrul_be" | "voip" | "ping" => name,
        "udp_flood" => "udp_flood",
        _ if name.ends_with("up") => "tcp_nup",
        _ => "tcp_ndown",
    }
}

/// The probes of a test, or with other marks beside each other.
fn probes(wishes: &Wishes, usual: &[(&str, u8)]) -> Vec<ProbePlan> {
    let probe = |id: String, title: String, dscp: u8, ecn: u8| ProbePlan {
        id,
        title,
        dscp,
        ecn,
        payload: PROBE,
        every: wishes.every,
    };
    if wishes.marks.is_empty() {
        let title = |id: &str| id.to_uppercase().replace('-', " ");
        return usual.iter().map(|(id, dscp)| probe((*id).to_owned(), title(id), *dscp, 0)).collect();
    }
    let marked = |NamedMark { name, dscp, ecn }: &NamedMark| {
        probe(format!("udp-{}", name.to_lowercase()), format!("UDP {name}"), *dscp, *ecn)
    };
    wishes.marks.iter().map(marked).collect()
}

/// A call, and what the latency is meanwhile.
fn call(wishes: &Wishes) -> Vec<ProbePlan> {
    let call = ProbePlan {
        id: "voip".to_owned(),
        title: "call".to_owned(),
        dscp: 46,
        ecn: 0,
        payload: CALL,
        every: CALL_EVERY,
    };
    std::iter::once(call).chain(probes(wishes, &[("udp", 0)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes() -> Wishes {
        Wishes {
            length: None,
            idle: Duration::from_secs(5),
            every: Duration::from_millis(50),
            streams: 4,
            marks: Vec::new(),
            flood: 20e6,
        }
    }

    #[test]
    fn tests_by_flent_s_names() {
        let text_of = |name| {
            let plan = plan(Some(name), &wishes()).ok()?;
            let load = plan.loads.last()?;
            Some(format!(
                "{} {} up {} down, {} loads",
                load.test.clone()?,
                load.up.len(),
                load.down.len(),
                plan.loads.len()
            ))
        };
        let cases = [
            ("rrul", "rrul 4 up 4 down, 2 loads"),
            ("tcp_up", "tcp_upload 1 up 0 down, 2 loads"),
            ("tcp_12down", "tcp_ndown 0 up 12 down, 2 loads"),
            ("tcp_nup", "tcp_nup 4 up 0 down, 2 loads"),
            ("ping", "ping 0 up 0 down, 1 loads"),
            ("voip", "voip 0 up 0 down, 1 loads"),
        ];
        for (name, expected) in cases {
            assert_eq!(text_of(name).as_deref(), Some(expected));
        }
        for wrong in ["tcp_0up", "tcp_up_up", "tcp_999up", "", "rrull"] {
            assert_eq!(text_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn marks_are_next_to_each_other() {
        let mark = |name: &str, dscp, ecn| NamedMark { name: name.to_owned(), dscp, ecn };
        let marks = vec![mark("BE", 0, 0), mark("EF", 46, 0), mark("L4S", 0, 1)];
        let plan = plan(None, &Wishes { marks, ..wishes() }).unwrap_or_default();
        let ids: Vec<&str> = plan.loads[1].probes.iter().map(|probe| probe.id.as_str()).collect();
        assert_eq!((plan.loads.len(), ids), (4, vec!["udp-be", "udp-ef", "udp-l4s"]));
        let ds: Vec<u8> = plan.loads[1].probes.iter().map(|probe| probe.dscp << 2 | probe.ecn).collect();
        assert_eq!(ds, [0, 0xb8, 1]);
    }
}
