//! A short policy as a file.

use super::class_match::port_text;
use super::policy::{Class, Fair, Queue, Rank, Share, Short, TreeKind};
use super::read::bits;
use std::fmt::Write as _;

impl Short {
    /// The policy as a file, presets filled in.
    pub fn text(&self) -> String {
        let mut out = format!("device = \"{}\"\n", self.device.value);
        if let Some(lan) = &self.lan {
            let _ = writeln!(out, "lan = \"{}\"", lan.value);
        }
        for (key, rate) in [("up", &self.up), ("down", &self.down)] {
            if let Some(rate) = rate {
                let _ = writeln!(out, "{key} = \"{}\"", rate_text(rate.value));
            }
        }
        let _ = writeln!(out, "shape = \"{}%\"", self.shape);
        if self.down_share() != self.shape {
            let _ = writeln!(out, "shape_down = \"{}%\"", self.down_share());
        }
        let known = super::links::LINKS.iter().find(|kind| {
            (kind.overhead, kind.mpu, kind.atm, kind.ptm)
                == (self.link.overhead, self.link.mpu, self.link.atm, self.link.ptm)
        });
        match known {
            Some(kind) => drop(writeln!(out, "link = \"{}\"", kind.name)),
            None => drop(writeln!(out, "overhead = {}\nmpu = {}", self.link.overhead, self.link.mpu)),
        }
        // Classes say it themselves.
        if self.classes.is_empty() || self.kind != TreeKind::Classes {
            let word = TreeKind::WORDS.iter().find(|(_, kind)| *kind == self.kind).map(|(word, _)| *word);
            let _ = writeln!(out, "kind = \"{}\"", word.unwrap_or_default());
        }
        let _ = writeln!(out, "fair = \"{}\"", fair_word(self.fair));
        if self.buckets != 16 {
            let _ = writeln!(out, "buckets = {}", self.buckets);
        }
        self.classes.iter().for_each(|class| section(class, &mut out));
        out
    }
}

fn section(class: &Class, out: &mut String) {
    let _ = writeln!(out, "\n[classes.{}]", class.name.value);
    list(out, "apps", &class.apps.iter().map(|app| app.value.name.to_owned()).collect::<Vec<_>>());
    let ports = class.ports.iter().map(|spanned| port_text(&spanned.value));
    list(out, "ports", &ports.collect::<Vec<_>>());
    list(out, "dscp", &class.dscp.iter().map(|dscp| dscp.value.to_string()).collect::<Vec<_>>());
    list(
        out,
        "hosts",
        &class.hosts.iter().map(|host| super::compile::network(&host.value)).collect::<Vec<_>>(),
    );
    if let Some(after) = &class.after {
        let _ = writeln!(out, "after = \"{}kB\"", after.value / 1000);
    }
    match class.rank {
        Rank::First => out.push_str("first = true\n"),
        Rank::Last => out.push_str("last = true\n"),
        Rank::Middle => {}
    }
    for (key, share) in [("share", &class.share), ("ceil", &class.ceil)] {
        match share.as_ref().map(|share| share.value) {
            Some(Share::Percent(percent)) => drop(writeln!(out, "{key} = \"{percent}%\"")),
            Some(Share::Rate(rate)) => drop(writeln!(out, "{key} = \"{}\"", rate_text(rate))),
            None => {}
        }
    }
    if let Some(queue) = &class.queue {
        let word = match queue.value {
            Queue::Short => "short",
            Queue::Fair => "fair",
            Queue::Plain => "plain",
        };
        let _ = writeln!(out, "queue = \"{word}\"");
    }
    if let Some(fair) = &class.fair {
        let _ = writeln!(out, "fair = \"{}\"", fair_word(fair.value));
    }
}

/// A rate as it is written.
fn rate_text(rate: u64) -> String {
    bits(rate).replace(" Gbit/s", "gbit").replace(" Mbit/s", "mbit").replace(" kbit/s", "kbit")
}

pub(super) fn list(out: &mut String, key: &str, values: &[String]) {
    if !values.is_empty() {
        let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        let _ = writeln!(out, "{key} = [{}]", values.join(", "));
    }
}

pub(super) const fn fair_word(fair: Fair) -> &'static str {
    match fair {
        Fair::Host => "host",
        Fair::Flow => "flow",
        Fair::None => "none",
    }
}
