//! What the columns of a table hold, by their names.

/// What a column holds, and by how much its numbers are multiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Column {
    /// Seconds, or a date and a time of day.
    Time(f64),
    /// Bit/s; 0: each value has its unit.
    Rate(f64),
    /// Seconds one way; 0: each value has its unit.
    Delay(f64),
    /// Seconds both ways; 0: each value has its unit.
    RoundTrip(f64),
    /// The share of packets that are lost.
    Loss(f64),
}

impl Column {
    /// By its name: `DL_bitrate`, `rate_mbit`, `delay (ms)`, `loss_percent`.
    pub(super) fn of(name: &str) -> Option<Column> {
        let name: String =
            name.trim().to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
        let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
        let unit =
            |units: &[(&[&str], f64)]| units.iter().find(|(names, _)| has(names)).map(|(_, scale)| *scale);
        let of_rate = unit(&[
            (&["bps", "bit", "bits"], 1.0),
            (&["kbps", "kbit", "kbits"], 1e3),
            (&["mbps", "mbit", "mbits"], 1e6),
            (&["gbps", "gbit", "gbits"], 1e9),
        ]);
        // Of G-NetTrack's drive tests.
        let of_rate = of_rate.or((has(&["bitrate"]) && has(&["dl", "ul"])).then_some(1e3));
        let of_time = unit(&[
            (&["ms", "msec", "milliseconds"], 1e-3),
            (&["us", "usec", "microseconds"], 1e-6),
            (&["s", "sec", "seconds"], 1.0),
        ]);
        if has(&["loss", "lost"]) {
            return Some(Column::Loss(if has(&["percent", "pct"]) { 0.01 } else { 1.0 }));
        }
        if has(&["rtt"]) {
            return Some(Column::RoundTrip(of_time.unwrap_or(0.0)));
        }
        if has(&["delay", "owd", "latency"]) {
            return Some(Column::Delay(of_time.unwrap_or(0.0)));
        }
        if of_rate.is_some() || has(&["rate", "bitrate", "bandwidth", "throughput", "capacity"]) {
            return Some(Column::Rate(of_rate.unwrap_or(0.0)));
        }
        has(&["time", "timestamp", "t", "seconds"]).then(|| Column::Time(of_time.unwrap_or(1.0)))
    }
}

/// The tables of WetLinks (Laniewski and others, 2024), whose columns have names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WetLinks {
    /// Pings: a row for each series, with its loss in per cent and its mean round trip in ms.
    Ping,
    /// The dish: what it reports of itself, with pings lost in per cent and their round trip in ms. Its
    /// rates are what was used, not what the line could carry.
    Dish,
    /// Transfers: bit/s, both ways.
    Iperf,
}

impl WetLinks {
    /// By the names of its columns (the files .txt beside the data).
    pub(super) fn of<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Option<WetLinks> {
        let has = |wanted: &[&str]| wanted.iter().all(|wanted| names.clone().any(|name| name == *wanted));
        let sets = [
            (&["site_name", "timestamp_start", "packet_loss", "ping_avg"][..], WetLinks::Ping),
            (&["site_name", "timestamp", "pop_ping_latency", "ping_drop"][..], WetLinks::Dish),
            (&["site_name", "timestamp_start", "download", "upload"][..], WetLinks::Iperf),
        ];
        sets.into_iter().find(|(wanted, _)| has(wanted)).map(|(_, set)| set)
    }

    /// What one of its columns holds.
    pub(super) fn column(self, name: &str) -> Option<Column> {
        match (self, name) {
            (WetLinks::Ping | WetLinks::Iperf, "timestamp_start") | (WetLinks::Dish, "timestamp") => {
                Some(Column::Time(1.0))
            }
            (WetLinks::Ping, "packet_loss") | (WetLinks::Dish, "ping_drop") => Some(Column::Loss(0.01)),
            (WetLinks::Ping, "ping_avg") | (WetLinks::Dish, "pop_ping_latency") => {
                Some(Column::RoundTrip(1e-3))
            }
            (WetLinks::Dish, "downlink" | "uplink") => Some(Column::Rate(1e6)),
            (WetLinks::Iperf, "download" | "upload") => Some(Column::Rate(1.0)),
            _ => None,
        }
    }

    /// Are its rates what the line could carry? Otherwise they are read only if one is asked for.
    pub(super) fn has_capacity(self) -> bool {
        self != WetLinks::Dish
    }

    /// The columns that must be the same in all rows: others are of another path.
    pub(super) fn same(self) -> &'static [&'static str] {
        match self {
            WetLinks::Ping => &["site_name", "target", "ip_protocol"],
            WetLinks::Dish => &["site_name"],
            WetLinks::Iperf => &["site_name", "server", "ip_protocol", "transport_protocol"],
        }
    }
}
