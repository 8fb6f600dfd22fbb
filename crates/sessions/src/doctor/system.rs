//! Devices, routes and processors, from `/sys` and `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_measure::doctor::{DeviceFacts, Processor, Softnet};
use tidegate_sys::ethtool;

const CLASS: &str = "/sys/class/net";
/// Type of a device that carries PPP (`ARPHRD_PPP`).
const PPP: u64 = 512;
/// The most that is read of any of these.
const MOST: usize = 4096;

/// Bytes that left and came by a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bytes {
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// What processors have counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Bytes by device.
    pub(super) bytes: BTreeMap<String, Bytes>,
    processors: Vec<Times>,
    softnet: Softnet,
}

/// How a processor has spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    number: u32,
    softirq: u64,
    idle: u64,
    all: u64,
}

impl Counters {
    /// The present counters.
    pub(super) fn now() -> Counters {
        Counters {
            bytes: bytes(&read("/proc/thread-self/net/dev")),
            processors: processors(&read("/proc/stat")),
            softnet: softnet(&read("/proc/net/softnet_stat")),
        }
    }

    /// What processors did since an earlier look.
    pub(super) fn processors_since(&self, before: &Counters) -> Vec<Processor> {
        let both = self.processors.iter().zip(&before.processors);
        let since = |(now, then): (&Times, &Times)| {
            let all = now.all.saturating_sub(then.all).max(1) as f64;
            let softirq = now.softirq.saturating_sub(then.softirq) as f64 / all;
            Processor {
                number: now.number,
                softirq,
                busy: 1.0 - now.idle.saturating_sub(then.idle) as f64 / all,
            }
        };
        both.map(since).collect()
    }

    /// The packets that arrived since an earlier reading.
    pub(super) fn softnet_since(&self, before: &Counters) -> Softnet {
        Softnet {
            processed: self.softnet.processed.saturating_sub(before.softnet.processed),
            dropped: self.softnet.dropped.saturating_sub(before.softnet.dropped),
            squeezed: self.softnet.squeezed.saturating_sub(before.softnet.squeezed),
        }
    }
}

/// The devices of this network namespace, without what is counted and queued there.
pub(super) fn devices() -> Vec<DeviceFacts> {
    let names = bytes(&read("/proc/thread-self/net/dev"));
    let beneath_ppp = pppoe(&read("/proc/thread-self/net/pppoe"));
    names.keys().filter(|name| *name != "lo").map(|name| device(name, &beneath_ppp)).collect()
}

fn device(name: &str, beneath_ppp: &[String]) -> DeviceFacts {
    let dir = Path::new(CLASS).join(name);
    let number = |file: &str| read(dir.join(file)).trim().parse::<u64>().ok();
    let is_ppp = number("type") == Some(PPP);
    let mut below: Vec<String> = linked(&dir, "lower_");
    if is_ppp {
        below.extend(beneath_ppp.iter().cloned());
    }
    let master =
        fs::read_link(dir.join("master")).ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    DeviceFacts {
        name: name.to_owned(),
        is_hardware: dir.join("device").exists(),
        below,
        master,
        is_ppp,
        mtu: number("mtu").and_then(|mtu| u32::try_from(mtu).ok()).unwrap_or(1500),
        txqueuelen: number("tx_queue_len").and_then(|packets| u32::try_from(packets).ok()).unwrap_or(0),
        // In Mbit/s; an unknown speed is -1.
        speed_bps: number("speed").filter(|mbit| (1..=1_000_000).contains(mbit)).map(|mbit| mbit * 1_000_000),
        features: ethtool::features(name).unwrap_or_default(),
        byte_limits: byte_limits(&dir),
        ..DeviceFacts::default()
    }
}

/// Names of devices that links of a directory lead to.
fn linked(dir: &Path, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(MOST);
    let mut found: Vec<String> = entries
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix(prefix)?.to_owned()))
        .collect();
    found.sort();
    found
}

/// The limits that the driver's queues have now. A driver that does not account for its bytes has the files,
/// and a limit of 0.
fn byte_limits(dir: &Path) -> Option<Vec<u64>> {
    let entries = fs::read_dir(dir.join("queues")).into_iter().flatten().flatten().take(MOST);
    let limit = |path: PathBuf| read(path.join("byte_queue_limits/limit")).trim().parse::<u64>().ok();
    let limits: Vec<u64> =
        entries.filter_map(|entry| limit(entry.path())).filter(|limit| *limit > 0).collect();
    (!limits.is_empty()).then_some(limits)
}

/// The devices that carry sessions of PPPoE.
fn pppoe(text: &str) -> Vec<String> {
    text.lines().skip(1).filter_map(|line| Some(line.split_whitespace().nth(2)?.to_owned())).collect()
}

fn bytes(text: &str) -> BTreeMap<String, Bytes> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let bytes = Bytes { received: words.first()?.parse().ok()?, sent: words.get(8)?.parse().ok()? };
        Some((name.trim().to_owned(), bytes))
    };
    text.lines().take(MOST).filter_map(line).collect()
}

fn processors(text: &str) -> Vec<Times> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let times: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        // user, nice, system, idle, waiting for disks, interrupts, soft interrupts, stolen; what follows is
        // counted among these.
        let idle = times.get(3)? + times.get(4)?;
        Some(Times { number, softirq: *times.get(6)?, idle, all: times.iter().take(8).sum() })
    };
    // The first line, of all processors together, has no number.
    text.lines()
        .filter(|text| text.starts_with("cpu") && !text.starts_with("cpu "))
        .filter_map(line)
        .collect()
}

fn softnet(text: &str) -> Softnet {
    let mut all = Softnet::default();
    for line in text.lines().take(MOST) {
        let words: Vec<u64> =
            line.split_whitespace().take(3).filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
        if let [processed, dropped, squeezed] = words[..] {
            all.processed += processed;
            all.dropped += dropped;
            all.squeezed += squeezed;
        }
    }
    all
}

/// What a file holds; nothing, where it cannot be read.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_two_looks() {
        let timeses_of = |text: &str| processors(text);
        let before = Counters {
            processors: timeses_of("cpu  9 9 9 9\ncpu0 100 0 50 800 50 0 0 0 7 7\n"),
            ..Counters::default()
        };
        let after = Counters {
            processors: timeses_of("cpu  9 9 9 9\ncpu0 110 0 50 820 50 0 70 0 9 9\nintr 5\n"),
            ..Counters::default()
        };
        let expected = Processor { number: 0, softirq: 0.7, busy: 0.8 };
        assert_eq!(after.processors_since(&before), [expected]);
        let counted = softnet("02164d03 00000001 00000008 00000000\n00000001 00000000 00000010 0\n");
        assert_eq!(counted, Softnet { processed: 0x0216_4d04, dropped: 1, squeezed: 0x18 });
        let sent = bytes("Inter-|   Receive\n  eth0: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n");
        assert_eq!(sent.get("eth0").map(|one| (one.received, one.sent)), Some((100, 200)));
    }

    #[test]
    fn sessions_of_pppoe() {
        assert_eq!(
            pppoe("Id       Address              Device\n0000002A 00:90:1A:00:00:01     eth1\n"),
            ["eth1"]
        );
    }
}
