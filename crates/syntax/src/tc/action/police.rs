//! `police …`.

use super::row::{Failed, Row, control, control_name, plain_control, type_of};
use crate::number::{u16_in, u32_in, whole};
use crate::tc::command_line::ShowFlags;
use crate::tc::options::link_layer;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::units::{
    SHORTER_BURST, bucket_by, burst_out_of_range, bytes_of, fine_bytes_of, fine_ticks_of, parse_size,
    parse_size_cell, print_rate, print_size_by, rate_by, ticks_of,
};
use crate::{Env, Refusal};
use crate::{TcChange, TcVersion};
use tidegate_packet::Rate;
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, LinkLayer, Police, RateSpec, Ticks};

/// `police`.
pub(super) const ROW: Row = Row {
    name: "police",
    form: "police [rate RATE burst BYTES] [mtu BYTES] [peakrate RATE] [pkts_rate N pkts_burst N] [CONTROL] \
    [index N]",
    parse: action,
    show,
    lead: None,
};

fn action(words: &mut Words<'_>, env: &Env) -> Result<Action, Failed> {
    let (police, index) = parse(words, env.tc)?;
    Ok(Action { index, ..Act::Police(police).into() })
}

/// The longest packet that tc makes its tables for by default; the kernel takes the last entry of the table
/// for the longest packet.
const TABLE_MTU: u32 = 2047;
/// The entries of such a table, less one.
const LAST_ENTRY: u32 = 255;

/// What was read.
#[derive(Default)]
struct PoliceWords {
    any: bool,
    index: u32,
    rate: Option<Rate>,
    peak: Option<Rate>,
    average: Option<Rate>,
    burst: Option<(u32, u8)>,
    mtu: Option<(u32, u8)>,
    mpu: u32,
    overhead: u16,
    layer: LinkLayer,
    packets: Option<u64>,
    packets_burst: Option<u64>,
    exceed: Option<Control>,
    conform: Option<Control>,
    /// The release of tc that reads them.
    tc: TcVersion,
}

/// Reads the words after `police`; beside it its number.
pub(super) fn parse(words: &mut Words<'_>, tc: TcVersion) -> Result<(Police, u32), Failed> {
    let mut given = PoliceWords { tc, ..PoliceWords::default() };
    words.peek().ok_or_else(|| Refusal::incomplete().at(words.place()))?;
    while let Some(word) = words.peek() {
        if !given.take(word, words)? {
            break;
        }
        given.any = true;
    }
    given.finish()
}

/// The option that a word is or, where tc looks no further than the word goes, begins; else the word itself.
fn option(word: &str) -> &str {
    const WHOLE: [&str; 8] =
        ["rate", "avrate", "buffer", "maxburst", "mtu", "minburst", "mpu", "conform-exceed"];
    const BEGUN: [&str; 6] = ["index", "burst", "peakrate", "pkts_rate", "pkts_burst", "linklayer"];
    let begun = |names: &[&'static str]| names.iter().copied().find(|name| begins(word, name));
    match WHOLE.contains(&word) {
        true => word,
        false => begun(&BEGUN).or_else(|| begun(&["goto"])).unwrap_or_else(|| match plain_control(word) {
            Some(_) => word,
            None => begun(&["overhead"]).unwrap_or(word),
        }),
    }
}

/// A decision by the kernel's number for it; `None`: the text is no number.
fn numbered(text: &str, place: usize) -> Result<Option<Control>, Failed> {
    const NOT_BUILT: &str = "Decisions by number are -1 (continue), 0 (pass), 1 (reclassify), 2 (drop), 3 \
    (pipe), 4 (stolen), 5 (queued) and 8 (trap); 6 has the kernel repeat the action and 7 is for programs \
    in BPF.";
    match decimal(text).map(Control::of_number) {
        Some(Control::Number(6 | 7)) => {
            let refusal = Refusal::new(
                1,
                format!("tidegate: police decision \"{text}\" is not supported in this version"),
            );
            Err(refusal.at(place).remedy(NOT_BUILT).into())
        }
        control => Ok(control),
    }
}

/// A number of decimal digits as tc reads it: bits above 32 are cut off.
fn decimal(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(limit) as i32)
}

/// A decision on one side of a slash, where tc reads no number behind a word.
fn bare(text: &str, place: usize) -> Result<Option<Control>, Failed> {
    Ok(match numbered(text, place)?.or_else(|| plain_control(text)) {
        None if begins(text, "goto") => Some(Control::Goto(0)),
        None if begins(text, "jump") => Some(Control::Jump(0)),
        known => known,
    })
}

fn once<T>(slot: &Option<T>, name: &str, text: &str, place: usize) -> Result<(), Refusal> {
    match slot {
        Some(_) => Err(Refusal::duplicate(name, text).at(place)),
        None => Ok(()),
    }
}

fn wrong(text: &str, name: &str, place: usize, wanted: &str) -> Refusal {
    Refusal::wrong(text, name).at(place).remedy(format!("{name} takes {wanted}."))
}

impl PoliceWords {
    /// Takes an option; false: it is none of police's.
    fn take(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, Failed> {
        match option(word) {
            name @ ("rate" | "avrate" | "peakrate") => self.take_rate(name, words)?,
            "burst" | "buffer" | "maxburst" => {
                words.skip();
                let text = words.need()?;
                once(&self.burst, "buffer/burst", text, words.last())?;
                let read = parse_size_cell(text);
                self.burst =
                    Some(read.ok_or_else(|| wrong(text, "buffer", words.last(), "an amount such as 10k"))?);
            }
            "mtu" | "minburst" => {
                words.skip();
                let text = words.need()?;
                once(&self.mtu, "mtu/minburst", text, words.last())?;
                let read = parse_size_cell(text);
                self.mtu = Some(read.ok_or_else(|| wrong(text, "mtu", words.last(), "bytes such as 1500"))?);
            }
            "mpu" => {
                words.skip();
                let text = words.need()?;
                let read = parse_size(text);
                self.mpu = read.ok_or_else(|| wrong(text, "mpu", words.last(), "bytes such as 64"))?;
            }
            "overhead" => {
                words.skip();
                let text = words.need()?;
                let read = u16_in(text, 10);
                self.overhead =
                    read.ok_or_else(|| wrong(text, "overhead", words.last(), "bytes such as 18"))?;
            }
            "linklayer" => {
                words.skip();
                let text = words.need()?;
                let read = link_layer(text);
                self.layer =
                    read.ok_or_else(|| wrong(text, "linklayer", words.last(), "ethernet, atm or adsl"))?;
            }
            name @ ("pkts_rate" | "pkts_burst") => self.take_packets(name, words)?,
            "index" => {
                words.skip();
                let text = words.need()?;
                self.index =
                    u32_in(text, 10).ok_or_else(|| wrong(text, "index", words.last(), "a number"))?;
            }
            "conform-exceed" => {
                words.skip();
                self.take_controls(words)?;
            }
            "goto" => {
                words.skip();
                self.exceed = control("goto", words)?;
            }
            // An action of its own.
            _ if plain_control(word) == Some(Control::Trap) => return Ok(false),
            _ => match plain_control(word) {
                Some(exceed) => {
                    words.skip();
                    self.exceed = Some(exceed);
                }
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    fn take_rate(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        words.skip();
        let text = words.need()?;
        let slot = match name {
            "rate" => &mut self.rate,
            "avrate" => &mut self.average,
            _ => &mut self.peak,
        };
        once(slot, name, text, words.last())?;
        let rate = rate_by(text, self.tc);
        *slot = Some(rate.ok_or_else(|| wrong(text, name, words.last(), "a rate such as 1mbit"))?);
        Ok(())
    }

    fn take_packets(&mut self, name: &str, words: &mut Words<'_>) -> Result<(), Refusal> {
        words.skip();
        let text = words.need()?;
        let slot = if name == "pkts_rate" { &mut self.packets } else { &mut self.packets_burst };
        once(slot, name, text, words.last())?;
        *slot = Some(whole(text, 10).ok_or_else(|| wrong(text, name, words.last(), "a number of packets"))?);
        Ok(())
    }

    /// `EXCEED` or `EXCEED/CONFORM`.
    fn take_controls(&mut self, words: &mut Words<'_>) -> Result<(), Failed> {
        const FORM: &str = "conform-exceed takes what is done with packets that come too fast and, after a \
        slash, with the others: drop/pass.";
        let text = words.need()?;
        if begins(text, "goto") || begins(text, "jump") {
            self.exceed = control(text, words).map_err(|refusal| match refusal.stderr.trim_end() {
                // For a number that cannot be read, tc also prints its position.
                line if line.starts_with("I") => Failed::say(line, FORM),
                _ => refusal.into(),
            })?;
            return Ok(());
        }
        let (exceed, conform) =
            text.split_once('/').map_or((text, None), |(exceed, conform)| (exceed, Some(conform)));
        // tc names an unknown control only where there is no slash.
        let named = conform.is_none() && !exceed.is_empty();
        let unknown = if named { format!("Bad action type {exceed}") } else { String::new() };
        let place = words.last();
        self.exceed = Some(bare(exceed, place)?.ok_or_else(|| Failed::say(unknown, FORM))?);
        if let Some(conform) = conform {
            self.conform = Some(bare(conform, place)?.ok_or_else(|| Failed::say("", FORM))?);
        }
        Ok(())
    }

    fn finish(self) -> Result<(Police, u32), Failed> {
        self.check()?;
        let ticks = |rate, units| match self.tc.has(TcChange::FineTicks) {
            true => fine_ticks_of(rate, units, true),
            false => ticks_of(rate, units),
        };
        let spec = |rate: Rate| RateSpec {
            rate,
            overhead: self.overhead,
            mpu: self.mpu as u16,
            linklayer: self.layer,
        };
        let rate = self.rate.filter(|rate| rate.0 > 0);
        let bytes = self.burst.map_or(0, |(bytes, _)| bytes);
        let bucket = rate.map_or(Some(Ticks::default()), |rate| bucket_by(rate, bytes, true, self.tc));
        let Some(burst) = bucket else {
            return Err(Failed::say(burst_out_of_range("POLICE"), SHORTER_BURST));
        };
        let (packets, packets_burst) = (self.packets.unwrap_or(0), self.packets_burst.unwrap_or(0));
        let police = Police {
            rate: rate.map(spec),
            burst,
            mtu: self.longest(),
            peak: self.peak.map(spec),
            average: self.average,
            packets,
            packets_burst: u64::from(
                ticks(Rate(packets), u32::try_from(packets_burst).unwrap_or(u32::MAX)).0,
            ),
            exceed: self.exceed.unwrap_or(Control::Reclassify),
            conform: self.conform,
        };
        Ok((police, self.index))
    }

    /// The longest packet that may pass: `mtu` if given, else as far as tc's table for the rate goes.
    fn longest(&self) -> u32 {
        let given = self.mtu.map_or(0, |(bytes, _)| bytes);
        if given != 0 || self.rate.is_none_or(|rate| rate.0 == 0) {
            return if given == 0 { u32::MAX } else { given };
        }
        let cell = match self.burst {
            Some((_, cell)) if cell > 0 => u32::from(cell),
            _ => (0..32).find(|cell| TABLE_MTU >> cell <= LAST_ENTRY).unwrap_or(0),
        };
        LAST_ENTRY << cell
    }

    /// As tc complains, in its order.
    fn check(&self) -> Result<(), Failed> {
        let metered = self.rate.is_some_and(|rate| rate.0 > 0)
            || self.average.is_some()
            || self.mtu.is_some()
            || self.packets.is_some();
        let fail = |line: &str, remedy: &str| Err(Failed::say(line, remedy));
        if !self.any {
            return fail("", "police needs a rate and a burst: police rate 1mbit burst 10k drop");
        }
        if !metered && self.index == 0 {
            return fail(
                "'rate' or 'avrate' or 'mtu' or 'pkts_rate' MUST be specified.",
                "Say what is allowed: police rate 1mbit burst 10k drop",
            );
        }
        if self.rate.is_some() && self.burst.is_none_or(|(bytes, _)| bytes == 0) {
            return fail(
                "'burst' requires 'rate'.",
                "A rate needs a burst, the bytes that may come at once: burst 10k.",
            );
        }
        if self.peak.is_some() && self.rate.is_none() {
            return fail("'peakrate' requires 'rate'.", "A peak rate stands beside a rate.");
        }
        if self.peak.is_some() && self.mtu.is_none() {
            return fail(
                "'mtu' is required, if 'peakrate' is requested.",
                "Say how long packets may be: mtu 1514.",
            );
        }
        if self.average.is_some() && self.rate.is_some() {
            return fail("", "police takes rate or avrate.");
        }
        if self.packets.is_some() != self.packets_burst.is_some() {
            return fail(
                "'pkts_burst' requires 'pkts_rate'.",
                "Both are needed: pkts_rate 100 pkts_burst 10.",
            );
        }
        if self.rate.is_some() && self.packets.is_some() {
            return fail(
                "'rate' and 'pkts_rate' are not allowed in same action.",
                "Use two policers, one after the other.",
            );
        }
        Ok(())
    }
}

fn show(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    let Act::Police(police) = &dump.action.act else { return };
    let bytes_of = if flags.tc.has(TcChange::FineTicks) { fine_bytes_of } else { bytes_of };
    let size = |bytes| print_size_by(bytes, flags.tc);
    let index = dump.action.index;
    let rate = police.rate.map_or(Rate(0), |spec| spec.rate);
    entry.number("index", index, &format!(" police {index:#x} rate {}", print_rate(rate, flags.iec)));
    entry.say(&format!(" burst {} mtu {} ", size(bytes_of(rate, police.burst)), size(police.mtu)));
    if let Some(peak) = police.peak {
        entry.say(&format!("peakrate {} ", print_rate(peak.rate, flags.iec)));
    }
    if let Some(average) = police.average {
        entry.say(&format!("avrate {} ", print_rate(average, flags.iec)));
    }
    if police.packets > 0 {
        let ticks = Ticks(u32::try_from(police.packets_burst).unwrap_or(u32::MAX));
        let burst = bytes_of(Rate(police.packets), ticks);
        entry.number("pkts_rate", police.packets, &format!("pkts_rate {} ", police.packets));
        entry.number("pkts_burst", burst, &format!("pkts_burst {burst} "));
    }
    entry.say(&format!("action {}", control_name(police.exceed)));
    entry.member("control_action", type_of(police.exceed));
    // `pass` is not shown.
    if let Some(conform) = police.conform.filter(|conform| *conform != Control::Pass) {
        entry.say(&format!("/{}", control_name(conform)));
        entry.member("control_action", type_of(conform));
    }
    entry.say(" ");
    let overhead = police.rate.map_or(0, |spec| spec.overhead);
    entry.number("overhead", overhead, &format!("overhead {overhead}b "));
    let layer = police.rate.map_or("unspec", |spec| spec.linklayer.name());
    if flags.details || layer == "atm" {
        entry.word("linklayer", layer);
    }
    entry.number("ref", dump.refs, &format!("\n\tref {}", dump.refs));
    entry.number("bind", dump.binds, &format!(" bind {} ", dump.binds));
}
