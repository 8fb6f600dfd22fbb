//! Events as lines of JSON, and the file that they are appended to.

use anyhow::Context;
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_control::RateDirection;
use tidegate_sessions::autorate::{AutorateEvent, AutorateOptions, AutoratePlan, PutBack};

/// The form of the lines: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;
/// Of a target: how many probes were sent, the shortest round trip, and whether it gives delays one way.
pub(super) type Tried = (u32, Option<Duration>, bool);

/// A log that is longer begins again.
const LONGEST: u64 = 16 << 20;

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn made(event: &str, more: Value) -> String {
    let mut line = Map::new();
    line.insert("tidegate_autorate".to_owned(), FORM.into());
    line.insert("at".to_owned(), now().into());
    line.insert("event".to_owned(), event.into());
    if let Value::Object(more) = more {
        line.extend(more);
    }
    format!("{}\n", Value::Object(line))
}

fn put_back(all: &[PutBack]) -> Value {
    let one = |(dev, done): &PutBack| match done {
        Ok(rate) => json!({"device": dev, "rate": rate, "why_not": null}),
        Err(why) => json!({"device": dev, "rate": null, "why_not": why}),
    };
    json!({"put_back": all.iter().map(one).collect::<Vec<_>>()})
}

/// The line of an event.
pub(super) fn line(event: &AutorateEvent) -> String {
    match event {
        AutorateEvent::Decision { direction, dev, rate, reason, delay_ms } => made(
            "decision",
            json!({
                "direction": direction.word(), "device": dev, "rate": rate, "reason": reason.id(),
                "words": reason.words(), "delay_ms": delay_ms,
            }),
        ),
        AutorateEvent::Begun(plan) => made("begun", json!({"shapers": shapers(plan)})),
        AutorateEvent::Idle => made("idle", Value::Null),
        AutorateEvent::Active => made("active", Value::Null),
        AutorateEvent::Blind => made("blind", Value::Null),
        AutorateEvent::Seen => made("seen", Value::Null),
        AutorateEvent::Gone(why) => made("gone", json!({"words": why})),
        AutorateEvent::Back(rates) => {
            made("back", json!({"found": {"upload": rates.up, "download": rates.down}}))
        }
        AutorateEvent::Ended(all) => made("ended", put_back(all)),
        AutorateEvent::Earlier(all) => made("earlier", put_back(all)),
    }
}

fn shapers(plan: &AutoratePlan) -> Vec<Value> {
    let shaper = |direction: RateDirection| {
        plan.shapers[direction].as_ref().map(|shaper| {
            json!({
                "direction": direction.word(), "device": shaper.dev(), "shaper": shaper.words(),
                "found": shaper.found(), "min": plan.limits.least[direction],
                "base": plan.limits.base[direction], "max": plan.limits.most[direction],
            })
        })
    };
    RateDirection::BOTH.into_iter().filter_map(shaper).collect()
}

/// What --dry-run finds.
pub(super) fn plan_line(plan: &AutoratePlan, options: &AutorateOptions, replies: &[Tried]) -> String {
    let target = |(address, (probes, best, one_way)): (&IpAddr, &Tried)| {
        let ms = best.map(|best| best.as_secs_f64() * 1e3);
        json!({"address": address.to_string(), "probes": probes, "rtt_ms": ms, "one_way": one_way})
    };
    made(
        "plan",
        json!({
            "controller": options.controller.to_string(),
            "shapers": shapers(plan),
            "targets": options.targets.iter().zip(replies).map(target).collect::<Vec<_>>(),
        }),
    )
}

/// A file that lines are appended to.
pub(super) struct LineLog {
    file: File,
    length: u64,
}

impl LineLog {
    /// Opens it, or makes it.
    pub(super) fn open(path: &Path) -> anyhow::Result<LineLog> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let length = file.metadata().map_or(0, |known| known.len());
        Ok(LineLog { file, length })
    }

    pub(super) fn add(&mut self, line: &str) -> io::Result<()> {
        if self.length > LONGEST {
            self.file.set_len(0)?;
            self.length = 0;
        }
        self.length += line.len() as u64;
        self.file.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_too_long_begins_again() {
        let folder = std::env::temp_dir().join(format!("tidegate-autorate-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a directory");
        let path = folder.join("a.log");
        let mut log = LineLog::open(&path).expect("a file");
        log.add("one\n").expect("room");
        log.length = LONGEST + 1;
        log.add("two\n").expect("room");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "two\n");
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
