//! What half a minute showed of a line: a few sentences, a table, a remedy; as text, JSON, one page.

use crate::chart::{
    Axis, ChartSeries, Drawing, LOOKS, Look, Moment, SeriesStyle, TimeSeriesChart, time_series,
};
use crate::html::document::document as page_document;
use crate::html::parts::{Data, Reading, Tabled as _, figure, prose, span_title, spans};
use crate::spark::{SparkSeries, sparklines};
use crate::table::{Align, Table, columns};
use maud::{Markup, html};
use std::fmt::Write as _;
use tidegate_measure::Durations;
use tidegate_measure::numbers::{format_duration, milliseconds, percent, rate};
use tidegate_measure::outcome::MIN_SAMPLES;
use tidegate_measure::quick::{
    CapacityEstimate, Grade, HopResult, LoadDirection, LoadPhase, NOTHING, PredictedRtt, Quick, Remedy,
    Stretch,
};
use tidegate_text::shell_word;

/// Height of the chart.
const HEIGHT: f64 = 280.0;

/// What was found, in sentences, the most important first.
pub fn sentences(quick: &Quick) -> Vec<String> {
    let mut lines: Vec<String> =
        quick.partial.iter().map(|why| format!("Only a part was measured: {why}.")).collect();
    let Some(far) = quick.farthest() else {
        if lines.is_empty() {
            lines.push("No host on the path replied often enough for a result.".into());
        }
        return lines;
    };
    match quick.grade() {
        Some(grade) => lines.push(graded(quick, far, grade)),
        None if quick.phases.len() > 1 => lines.push(
            "No grade: no load filled the line, so its queues did not show; the loads are described below."
                .into(),
        ),
        None => lines.push(idle_only(quick, far)),
    }
    lines.extend((1..quick.phases.len()).filter_map(|phase| place_of_queue(quick, phase)));
    lines.extend(rates(quick));
    lines.extend((0..quick.phases.len()).filter_map(|phase| losses(quick, far, phase)));
    lines.extend(outcomes(quick, far));
    lines
}

/// Quality of Outcome under load.
fn outcomes(quick: &Quick, far: usize) -> Option<String> {
    let found = quick.outcomes_under_load();
    let words: Vec<String> =
        found.iter().map(|(name, score)| format!("{name} {}", score.rounded())).collect();
    let pings = (1..quick.phases.len()).map(|phase| quick.pings(far, phase).sent());
    let fewest = pings.filter(|sent| *sent >= MIN_SAMPLES).min()?;
    (!words.is_empty()).then(|| {
        format!(
            "Quality of Outcome (QoO) under load, of {fewest} pings or more per load: {} (0 unacceptable, 100 \
            optimal; docs/scores.md).",
            words.join(", ")
        )
    })
}

fn graded(quick: &Quick, far: usize, grade: Grade) -> String {
    let growth = (1..quick.phases.len()).filter_map(|phase| quick.growth(far, phase)).max().unwrap_or(0);
    let idle = quick.pings(far, 0).rtt.percentile(50.0).unwrap_or(0);
    let turns = quick.round_trips_per_minute().unwrap_or(0);
    format!(
        "Grade {}: the latency is {} on the idle line, and {} more under load ({turns} round trips per \
        minute).",
        grade.letter(),
        format_duration(idle),
        format_duration(growth)
    )
}

/// What is known of a line that was not loaded.
fn idle_only(quick: &Quick, far: usize) -> String {
    let rtt = quick.pings(far, 0).rtt;
    let figure = |percent| format_duration(rtt.percentile(percent).unwrap_or(0));
    format!(
        "No grade: the line was not loaded, so its queues did not show. Idle, the latency is {} (95th \
            percentile \
        {}).",
        figure(50.0),
        figure(95.0)
    )
}

/// `the upload is full`.
fn when(phase: &LoadPhase) -> &'static str {
    match phase.load {
        LoadDirection::Idle => "it is idle",
        LoadDirection::Up => "the upload is full",
        LoadDirection::Down => "the download is full",
        LoadDirection::Both => "both directions are full",
    }
}

/// Where packets wait during a phase: in one stretch of the path, or in several.
fn place_of_queue(quick: &Quick, phase: usize) -> Option<String> {
    let when = when(quick.phases.get(phase)?);
    if let Some(stretch) = quick.queue(phase) {
        return Some(format!("When {when}, the bottleneck queue is {}.", known_as(quick, stretch)));
    }
    let all = quick.stretches(phase).into_iter().filter(|stretch| stretch.growth >= NOTHING);
    let lines: Vec<String> = all
        .map(|stretch| format!("{} {}", format_duration(stretch.growth), between(quick, stretch)))
        .collect();
    (!lines.is_empty()).then(|| format!("When {when}, packets wait in several places: {}.", lines.join(", ")))
}

/// A stretch of the path between those that answered.
fn between(quick: &Quick, Stretch { after, before, .. }: Stretch) -> String {
    let name = |place: usize| quick.places.get(place).map_or("", |place| place.name.as_str());
    match after {
        Some(after) => format!("between {} and {}", name(after), name(before)),
        None if distance(quick, before) == Some(1) => format!("between this computer and {}", name(before)),
        None => format!("somewhere before {}; no nearer hop replied", name(before)),
    }
}

/// The same part of the path, with the usual device there in a home's network.
fn known_as(quick: &Quick, stretch: Stretch) -> String {
    let ends = (stretch.after.map(|after| distance(quick, after)), distance(quick, stretch.before));
    let there = match ends {
        (None, Some(1)) if quick.may_be_router => {
            ": the line, if this computer is the router at it, and otherwise your own network"
        }
        (None, Some(1)) => ": your own network (cable, switch, Wi-Fi), or this computer",
        (Some(Some(1)), Some(2)) => {
            ": in a home's network the router, the modem, or the provider's end of the line"
        }
        _ => "",
    };
    format!("{}{there}", between(quick, stretch))
}

fn distance(quick: &Quick, place: usize) -> Option<u8> {
    quick.places.get(place)?.distance
}

fn rates(quick: &Quick) -> Option<String> {
    let (up, down) = quick.rates();
    let (up, down) = match (up, down) {
        (Some(CapacityEstimate::AtLeast(one)), Some(CapacityEstimate::AtLeast(other))) if one == other => {
            let full =
                quick.phases.iter().any(|phase| phase.load == LoadDirection::Both && !phase.is_partly_full);
            let more = if full {
                "the slower direction carries that, and which one that is does not show"
            } else {
                "neither was full"
            };
            return Some(format!("Throughput: at least {} in each direction; {more}.", rate(one)));
        }
        ways => ways,
    };
    let lines: Vec<String> = [("up", up), ("down", down)]
        .into_iter()
        .filter_map(|(way, known)| {
            let known = known?;
            let least = if known.full().is_some() { "" } else { "at least " };
            Some(format!("{least}{} {way}", rate(known.bits())))
        })
        .collect();
    let unknown = match (up, down) {
        (None, Some(_)) => "; the upload was not measured",
        (Some(_), None) => "; the download was not measured",
        _ => "",
    };
    (!lines.is_empty()).then(|| format!("Throughput: {}{unknown}.", lines.join(", ")))
}

fn losses(quick: &Quick, far: usize, phase: usize) -> Option<String> {
    let pings = quick.pings(far, phase);
    if pings.lost == 0 {
        return None;
    }
    let (low, high) = pings.loss_interval();
    let when = if phase == 0 {
        "while the line was idle".into()
    } else {
        format!("when {}", when(&quick.phases[phase]))
    };
    let all = pings.lost + pings.rtt.count();
    Some(format!(
        "{} of {all} pings {} lost {when}: {} to {} with 95 % confidence.",
        pings.lost,
        if pings.lost == 1 { "was" } else { "were" },
        percent(low),
        percent(high)
    ))
}

fn predicted(one: &PredictedRtt) -> String {
    let when = match one.load {
        LoadDirection::Up => "uploads",
        LoadDirection::Down => "downloads",
        LoadDirection::Idle | LoadDirection::Both => "both",
    };
    format!(
        "{when}: median {} instead of {}, 95th percentile {} instead of {}",
        format_duration(one.with.0),
        format_duration(one.without.0),
        format_duration(one.with.1),
        format_duration(one.without.1)
    )
}

/// The command that tries the proposed policy on a line with the figures that were measured; `None` where the
/// policy lacks a direction, or a rate is not known: a lower bound would make another line of it.
fn trial(quick: &Quick) -> Option<String> {
    if quick.remedy.as_ref().is_some_and(|remedy| remedy.missing.is_some()) {
        return None;
    }
    let idle = quick.pings(quick.farthest()?, 0).rtt.percentile(50.0)?;
    let file = quick.remedy.as_ref()?.saved.as_deref().map_or("home.toml".into(), shell_word);
    let mut command = format!("tidegate try {file} --rtt {}us", idle.div_ceil(1000).max(1));
    let (Some(CapacityEstimate::Full(_)), Some(CapacityEstimate::Full(_))) = quick.rates() else {
        return None;
    };
    let buffer = quick.buffer(LoadDirection::Up).or(quick.buffer(LoadDirection::Both));
    if let Some(bytes) = buffer.filter(|bytes| *bytes > 0) {
        let _ = write!(command, " --buffer {}kB", bytes.div_ceil(1000));
    }
    if let Some(bytes) = quick.buffer(LoadDirection::Down).filter(|bytes| *bytes > 0) {
        let _ = write!(command, " --down-buffer {}kB", bytes.div_ceil(1000));
    }
    Some(command)
}

/// Round trips by place and load: rows of cells.
fn rows(quick: &Quick) -> Vec<Vec<String>> {
    let cell = |place: usize, phase: usize| {
        let pings = quick.pings(place, phase);
        match (pings.rtt.percentile(50.0), pings.rtt.percentile(95.0)) {
            (Some(median), Some(high)) => format!("{} / {}", format_duration(median), format_duration(high)),
            _ => "–".to_owned(),
        }
    };
    let row = |(place, of): (usize, &HopResult)| {
        let phases = (0..quick.phases.len()).map(|phase| cell(place, phase));
        std::iter::once(of.name.clone()).chain(phases).collect()
    };
    quick.places.iter().enumerate().map(row).collect()
}

fn head(quick: &Quick) -> Vec<String> {
    let phases = quick.phases.iter().map(|phase| phase.load.word().to_owned());
    std::iter::once("median / 95 %".to_owned()).chain(phases).collect()
}

/// The terminal's view.
pub fn text(quick: &Quick) -> String {
    let mut out = sentences(quick).join("\n") + "\n\n";
    let columns = head(quick).into_iter().enumerate();
    let mut table =
        Table::new(columns.map(|(n, name)| (name, if n == 0 { Align::Left } else { Align::Right })));
    rows(quick).into_iter().for_each(|row| {
        table.row(row);
    });
    let _ = write!(out, "{table}");
    out += &sparks(quick);
    for phase in quick.phases.iter().filter(|phase| !phase.by.is_empty()) {
        let _ = writeln!(out, "{}: {}", phase.load.word(), phase.by);
    }
    if let Some(remedy) = &quick.remedy {
        let _ = writeln!(out, "\n{}\n", cured_by(remedy));
        remedy.policy.lines().for_each(|line| {
            let _ = writeln!(out, "    {line}");
        });
        if !remedy.predicted.is_empty() {
            let _ = writeln!(out, "\nTried in the simulator with these figures:");
        }
        remedy.predicted.iter().for_each(|one| {
            let _ = writeln!(out, "- {}", predicted(one));
        });
        if let Some(command) = trial(quick) {
            let _ = writeln!(out, "\n{}:\n\n    {command}", tried_by(remedy));
        }
    }
    if !quick.notes.is_empty() {
        out.push('\n');
    }
    quick.notes.iter().for_each(|note| {
        let _ = writeln!(out, "note: {note}");
    });
    for step in &quick.next {
        let _ = writeln!(out, "\n{}:\n", step.what);
        step.commands.iter().for_each(|command| {
            let _ = writeln!(out, "    {command}");
        });
    }
    out
}

/// Each place over time, for people at a terminal; nothing in pipes.
fn sparks(quick: &Quick) -> String {
    if columns() == usize::MAX {
        return String::new();
    }
    let end = quick.phases.iter().map(|phase| phase.window.1).max().unwrap_or(0);
    let series = |place: &HopResult| SparkSeries {
        label: place.name.clone(),
        points: place.requests.iter().map(|request| (request.sent_ns, request.took_ns)).collect(),
    };
    let all: Vec<SparkSeries> = quick.places.iter().map(series).collect();
    let marks: Vec<(u64, &str)> =
        quick.phases.iter().map(|phase| (phase.window.0, phase.load.word())).collect();
    let shown = sparklines("Round trips", &all, end, &marks, columns());
    if shown.is_empty() { shown } else { format!("\n{shown}\n") }
}

/// What comes before the command that tries the policy.
fn tried_by(remedy: &Remedy) -> &'static str {
    match remedy.saved {
        Some(_) => "To try it on a simulated line like this",
        None => "To try it on a simulated line like this, save it as home.toml",
    }
}

/// What the policy is.
fn cured_by(remedy: &Remedy) -> String {
    match &remedy.missing {
        None => "What would fix it, as a short policy:".to_owned(),
        Some(missing) => {
            format!("What would fix it but for the {missing}, whose rate is not known, as a short policy:")
        }
    }
}

/// Everybody's answers over time, the loads' beginnings numbered.
pub fn chart(quick: &Quick) -> Drawing {
    let all = || quick.places.iter().flat_map(|place| &place.requests).filter_map(|request| request.took_ns);
    let end = quick.phases.iter().map(|phase| phase.window.1).max().unwrap_or(1);
    let course = |(n, place): (usize, &HopResult)| ChartSeries {
        name: place.name.clone(),
        look: Look(n),
        points: place
            .requests
            .iter()
            .filter(|request| request.sent_ns <= end)
            .map(|request| (request.sent_ns as f64, request.took_ns.map(|took| took as f64)))
            .collect(),
    };
    let what = TimeSeriesChart {
        series: quick.places.iter().enumerate().take(LOOKS).map(course).collect(),
        drawn: SeriesStyle::Dots,
        ..TimeSeriesChart::default()
    };
    let time = Axis::time(end);
    let axes = (time.clone(), Axis::fitting_spans(all().min().unwrap_or(0), all().max().unwrap_or(1), 5));
    let moment =
        |(n, phase): (usize, &LoadPhase)| Moment { at: phase.window.0 as f64, number: n.to_string() };
    let moments: Vec<Moment> = quick.phases.iter().enumerate().skip(1).map(moment).collect();
    time_series("Round trips over time", &sentences(quick).join(" "), axes, HEIGHT, &what)
        .with_moments(&time, &moments)
}

/// The page: an HTML document that needs nothing else.
pub fn page(quick: &Quick) -> String {
    let letter = quick.grade().map_or("–", Grade::letter);
    let content = html! {
        header {
            p.eyebrow { "tidegate · quick diagnosis of a line" }
            h1.name.(quick.grade().map_or("", look)) { "Grade " (letter) }
            (scale(quick))
            @for sentence in sentences(quick) { p.about { (prose(&sentence)) } }
        }
        main {
            (answers(quick))
            @if let Some(remedy) = &quick.remedy { (cure(quick, remedy)) }
            @for step in &quick.next {
                section { p { (prose(&step.what)) ":" } pre { (step.commands.join("\n")) } }
            }
            @if !quick.notes.is_empty() || !quick.again.is_empty() {
                section {
                    h2 { "Notes" }
                    ul {
                        @for note in &quick.notes { li { (prose(note)) } }
                        li { "Again: " code { (quick.again) } ", tidegate " (quick.version) }
                    }
                }
            }
        }
    };
    page_document(&format!("A line of grade {letter}"), content)
}

/// The grades with how much a load adds to the latency at most, in ms; the last has no limit.
const SCALE: [(Grade, Option<u64>); 6] = [
    (Grade::Excellent, Some(5)),
    (Grade::A, Some(30)),
    (Grade::B, Some(60)),
    (Grade::C, Some(200)),
    (Grade::D, Some(400)),
    (Grade::F, None),
];

/// A grade's colour, as on the terminal.
fn look(grade: Grade) -> &'static str {
    match grade {
        Grade::Excellent | Grade::A | Grade::B => "good",
        Grade::C => "fair",
        Grade::D | Grade::F => "bad",
    }
}

/// All grades, with this one marked; nothing where there is none.
fn scale(quick: &Quick) -> Markup {
    let Some(found) = quick.grade() else { return Markup::default() };
    let words = |n: usize| match (SCALE[n].1, n.checked_sub(1).and_then(|before| SCALE[before].1)) {
        (Some(most), None) => format!("below {most} ms"),
        (Some(most), Some(least)) => format!("{least} to {most} ms"),
        (None, least) => format!("{} ms and more", least.unwrap_or(0)),
    };
    html! {
        p.small { "The grade is how much a load adds to the latency:" }
        ol.scale {
            @for (n, (grade, _)) in SCALE.into_iter().enumerate() {
                @let class = if grade == found { format!("now {}", look(grade)) } else { String::new() };
                li class=[(!class.is_empty()).then_some(class)] aria-current=[(grade == found).then_some("true")] {
                    b { (grade.letter()) }
                    (prose(&words(n)))
                }
            }
        }
    }
}

/// What each place answered, second by second.
fn over_time(quick: &Quick) -> Data {
    let end = quick.phases.iter().map(|phase| phase.window.1).max().unwrap_or(1);
    let mut head = vec!["time".to_owned()];
    for place in &quick.places {
        head.extend(["median", "max", "lost"].map(|what| format!("{}: {what}", place.name)));
    }
    let row = |(from, to): (u64, u64)| {
        let mut row = vec![span_title((from, to))];
        for place in &quick.places {
            let within = || place.requests.iter().filter(|one| (from..to).contains(&one.sent_ns));
            let times = Durations::new(within().filter_map(|one| one.took_ns).collect());
            let lost = within().filter(|one| one.took_ns.is_none()).count();
            row.extend([times.percentile(50.0), times.max()].map(|ns| ns.map_or("–".into(), milliseconds)));
            row.push(if within().next().is_some() { lost.to_string() } else { "–".to_owned() });
        }
        row
    };
    Data {
        caption: "Round trips over time".to_owned(),
        head,
        rows: spans(end).into_iter().map(row).collect(),
    }
}

/// Every ping, as a chart and as a table.
fn answers(quick: &Quick) -> Markup {
    let numbered = quick.phases.iter().enumerate().skip(1);
    let lines: Vec<String> =
        numbered.map(|(n, phase)| format!("{n}: {} ({})", when(phase), phase.by)).collect();
    let caption = html! {
        b { "Every ping" }
        " to every hop on the path. Numbers: measured from here.  " (lines.join("; ")) "."
    };
    let data = Data {
        caption: "Round trips, median / 95th percentile".into(),
        head: head(quick),
        rows: rows(quick),
    };
    html! {
        section {
            h2 { "Round-trip times" }
            (figure(&[chart(quick)], caption, Reading::Across, &over_time(quick)))
            (data.folding())
        }
    }
}

/// The policy that would help, and what the simulator makes of it.
fn cure(quick: &Quick, remedy: &Remedy) -> Markup {
    html! {
        section {
            h2 { "What would fix it" }
            p { (prose(&cured_by(remedy))) }
            pre { (remedy.policy) }
            @if !remedy.predicted.is_empty() {
                p { "Tried in the simulator with these figures:" }
                ul { @for one in &remedy.predicted { li { (prose(&predicted(one))) } } }
            }
            @if let Some(command) = trial(quick) {
                p { (tried_by(remedy)) ":" }
                pre { (command) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tidegate_analysis::quick::json;
    use tidegate_measure::pinged::PingRequest;

    const MS: u64 = 1_000_000;

    fn place(name: &str, distance: u8, idle: u64, growth: u64) -> HopResult {
        let selected = (0..80).map(|n| {
            let more = if n >= 40 { growth } else { 0 };
            PingRequest {
                sent_ns: n * 50 * MS,
                took_ns: (n != 60).then_some((idle + more) * MS),
                here_ns: None,
            }
        });
        HopResult { name: name.into(), distance: Some(distance), requests: selected.collect() }
    }

    #[test]
    fn a_bloated_line_is_reported_as_one() {
        let places = vec![place("192.168.1.1", 1, 1, 0), place("isp", 2, 9, 300), place("far", 3, 20, 300)];
        let idle = LoadPhase { window: (0, 2000 * MS), ..LoadPhase::default() };
        let by = "two TCP transfers".to_owned();
        let up = LoadPhase {
            load: LoadDirection::Up,
            window: (2000 * MS, 4000 * MS),
            by,
            up_bits: Some(5e6),
            ..LoadPhase::default()
        };
        let quick = Quick { places, phases: vec![idle, up], ..Quick::default() };
        let sentence = text(&quick);
        for expected in [
            "Grade D: the latency is 20.0 ms on the idle line, and 300 ms more",
            "When the upload is full, the bottleneck queue is between 192.168.1.1 and isp: in a home",
            "Throughput: 5.00 Mbit/s up; the download was not measured.",
            "1 of 40 pings was lost when the upload is full",
        ] {
            assert!(sentence.contains(expected), "{expected} in\n{sentence}");
        }
        assert_eq!(json(&quick)["phases"][1]["queue_before"], "isp");
        assert_eq!((&json(&quick)["up_is_full"], &json(&quick)["down"]), (&Value::Bool(true), &Value::Null));
        assert!(page(&quick).contains("Grade D"));
    }

    #[test]
    fn a_queue_before_the_first_hop_may_be_a_routers_line() {
        let places = vec![place("modem", 1, 1, 300), place("far", 2, 20, 300)];
        let idle = LoadPhase { window: (0, 2000 * MS), ..LoadPhase::default() };
        let phase = |load, up_bits, down_bits| LoadPhase {
            load,
            up_bits,
            down_bits,
            window: (2000 * MS, 4000 * MS),
            ..LoadPhase::default()
        };
        let phases = vec![
            idle,
            phase(LoadDirection::Up, Some(5e6), None),
            phase(LoadDirection::Down, None, Some(2e7)),
        ];
        let half = Remedy { missing: Some("upload".into()), ..Remedy::default() };
        let cases = [
            (false, ": your own network (cable, switch, Wi-Fi), or this computer."),
            (true, ": the line, if this computer is the router at it, and otherwise your own network."),
        ];
        for (may_be_router, expected) in cases {
            let with = |remedy: Option<Remedy>| {
                let (places, phases) = (places.clone(), phases.clone());
                Quick { may_be_router, places, phases, remedy, ..Quick::default() }
            };
            assert!(text(&with(None)).contains(expected), "{}", text(&with(None)));
            assert!(trial(&with(Some(Remedy::default()))).is_some());
            assert_eq!(trial(&with(Some(half.clone()))), None, "half a policy");
        }
    }

    #[test]
    fn the_scale_is_that_of_the_grades() {
        let mut least = 0;
        for (grade, most) in SCALE {
            assert_eq!(Grade::of(least * MS), grade);
            least = most.unwrap_or(least);
            assert!(most.is_none() || Grade::of(least * MS - 1) == grade && Grade::of(least * MS) != grade);
        }
    }

    #[test]
    fn a_page_shows_the_scale_and_each_place_over_time() {
        let idle = LoadPhase { window: (0, 2000 * MS), ..LoadPhase::default() };
        let up =
            LoadPhase { load: LoadDirection::Up, window: (2000 * MS, 4000 * MS), ..LoadPhase::default() };
        let places = vec![place("gateway", 1, 1, 0), place("far", 2, 20, 300)];
        let quick = Quick { places, phases: vec![idle, up], ..Quick::default() };
        let page = page(&quick);
        assert!(page.contains("<h1 class=\"name bad\">Grade D</h1>"), "{page}");
        let marked = "<li class=\"now bad\" aria-current=\"true\"><b>D</b>200 to 400\u{a0}ms</li>";
        assert!(page.contains(marked), "{page}");
        let head = "time from (s),gateway: median (ms),gateway: max (ms),gateway: lost,far: median (ms)";
        assert!(page.contains(head), "{page}");
        assert!(
            page.contains("<td data-head=\"upload\">") || page.contains("<td data-head=\"up\">"),
            "{page}"
        );
        // Without a grade there is no scale.
        let none = Quick { phases: quick.phases[..1].to_vec(), ..quick };
        assert!(!super::page(&none).contains("<ol class=\"scale\">"));
    }

    #[test]
    fn what_echoes_carried_is_a_bound() {
        let echoes = |is_partly_full| LoadPhase {
            load: LoadDirection::Both,
            up_bits: Some(5e6),
            down_bits: Some(5e6),
            is_partly_full,
            ..LoadPhase::default()
        };
        let up = LoadPhase { load: LoadDirection::Up, up_bits: Some(5e6), ..LoadPhase::default() };
        let cases = [
            (vec![echoes(false), up], "at least 5.00 Mbit/s down."),
            (
                vec![echoes(false)],
                "at least 5.00 Mbit/s in each direction; the slower direction carries that, and which one \
                    that is \
                does not show.",
            ),
            (vec![echoes(true)], "at least 5.00 Mbit/s in each direction; neither was full."),
        ];
        for (phases, expected) in cases {
            let text = rates(&Quick { phases, ..Quick::default() }).expect("rates");
            assert!(text.ends_with(expected), "{text}");
        }
    }
}
