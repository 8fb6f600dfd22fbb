//! `tidegate gym`: the same result on any number of processors, pages with reasons, words for wrong input.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tidegate(place: &Place, words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).current_dir(&place.0).output().expect("tidegate runs")
}

/// A short visit: one line, one load, slowed down.
const SHORT: [&str; 10] =
    ["--lines", "1", "--loads", "up", "--mean", "500kbit", "--duration", "1", "--traces", "lte"];

#[test]
fn the_result_is_the_same_on_one_processor_and_on_three() {
    if skip() {
        return;
    }
    let place = Place::new("gym");
    let with = |jobs: &str| {
        let output = tidegate(&place, &[&["gym", "--json", "--jobs", jobs], &SHORT[..]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let one = with("1");
    assert_eq!(one, with("3"));
    let document: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    let names: Vec<&str> =
        document["controllers"].as_array().expect("names").iter().filter_map(|name| name.as_str()).collect();
    let expected =
        ["tidegate", "cake-autorate", "sqm-autorate", "known", "fixed:0.5", "fixed:0.75", "fixed:1"];
    assert_eq!(names, expected);
    assert_eq!(document["rows"][0]["scores"].as_array().map(Vec::len), Some(7));
    // A time has a unit elsewhere, and may have one here.
    let at = SHORT.iter().position(|word| *word == "--duration").expect("a duration") + 1;
    let mut with_unit = SHORT;
    with_unit[at] = "1s";
    let output = tidegate(&place, &[&["gym", "--json"], &with_unit[..]].concat());
    assert_eq!(String::from_utf8_lossy(&output.stdout), one);
}

#[test]
fn a_page_shows_every_decision_with_its_reason() {
    if skip() {
        return;
    }
    let place = Place::new("gym-page");
    let output =
        tidegate(&place, &[&["gym", "tidegate", "-o", "gym.html", "-o", "gym.json"], &SHORT[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(place.0.join("gym.html")).expect("a page");
    let document: serde_json::Value =
        serde_json::from_slice(&fs::read(place.0.join("gym.json")).expect("a document")).expect("JSON");
    let record = &document["details"][0]["records"][0]["record"];
    let decisions = record["decisions"].as_array().expect("decisions");
    assert!(decisions.len() > 5 && page.contains("Case: lte-1/up"));
    for decision in decisions {
        assert!(page.contains(decision["words"].as_str().expect("words")), "{decision}");
    }
    // The same command gives the same bytes, the page too.
    let again = tidegate(&place, &[&["gym", "tidegate", "-o", "again.html"], &SHORT[..]].concat());
    assert!(again.status.success());
    assert_eq!(fs::read_to_string(place.0.join("again.html")).expect("a page"), page);
}

#[test]
fn recordings_of_a_directory_are_lines_and_a_configuration_is_data() {
    if skip() {
        return;
    }
    let place = Place::new("gym-files");
    fs::create_dir(place.0.join("lines")).expect("a directory");
    fs::write(place.0.join("lines/slow.csv"), "time,rate_kbit\n0,600\n5,300\n").expect("a recording");
    fs::write(place.0.join("lines/fast.txt"), "0 1\n5 2\n10 1\n").expect("a recording");
    fs::write(place.0.join("config.sh"), "min_dl_shaper_rate_kbps=50\ntouch canary\n").expect("a file");
    fs::write(place.0.join("wrong.csv"), "time,rate_kbit\n0,x\n").expect("a recording");
    // What stands beside recordings is named and passed over.
    fs::write(place.0.join("lines/README.md"), "# Lines\n\nThese are two lines.\n").expect("a file");
    fs::write(place.0.join("lines/picture.png"), b"\x89PNG\xff\xfe").expect("a file");
    fs::create_dir(place.0.join("empty")).expect("a directory");
    fs::write(place.0.join("empty/notes.txt"), "nothing to see\n").expect("a file");
    fs::write(place.0.join("plain.sh"), "#!/bin/sh\n").expect("a file");
    place.script("old.py", "#!/usr/bin/python9 -u\n");
    place.script("env.py", "#!/usr/bin/env -S python9 -u\n");
    // The kernel looks for it in the current directory.
    place.script("bare.py", "#!python3\n");
    place.script("windows.py", "#!/bin/sh\r\n");
    let words = ["gym", "fixed:0.8", "--loads", "down", "--duration", "1", "--mean", "0", "--cases"];
    let output = tidegate(&place, &[&words[..], &["--traces", "lines"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("fast/down") && text.contains("slow/down"), "{text}");
    assert!(text.contains("\n2 cases, 10 runs of"), "{text}");
    // What `record` writes of both directions is one line.
    fs::create_dir(place.0.join("pair")).expect("a directory");
    for (way, rate) in [("up", 700), ("down", 3000)] {
        let text = format!("time,rate_kbit,delay_ms,loss_percent\n0,{rate},5,1\n1,{rate},5,0\n");
        fs::write(place.0.join(format!("pair/home-{way}.csv")), text).expect("a recording");
    }
    let pair =
        tidegate(&place, &[&words[..], &["--traces", "pair", "--json", "--detail", "home/down"]].concat());
    let document: serde_json::Value = serde_json::from_slice(&pair.stdout).expect("JSON");
    assert_eq!(document["rows"].as_array().map(Vec::len), Some(1), "{document}");
    let detail = &document["details"][0];
    let about = "pair/home-up.csv up, pair/home-down.csv down; three downloads";
    assert_eq!(detail["about"].as_str(), Some(about), "{detail}");
    let capacity = |way: usize| detail["records"][0]["record"]["capacity"][way][9].as_f64().unwrap_or(0.0);
    assert!(
        (capacity(0) - 7e5).abs() < 2e4 && (capacity(1) - 3e6).abs() < 9e4,
        "{} {}",
        capacity(0),
        capacity(1)
    );
    let one = tidegate(&place, &[&words[..], &["--traces", "lines/slow.csv"]].concat());
    assert!(String::from_utf8_lossy(&one.stdout).contains("\n1 case, 5 runs of"), "{one:?}");
    let passed_over = String::from_utf8_lossy(&output.stderr);
    for file in ["lines/README.md", "lines/picture.png"] {
        let note = format!("passed over as no recording: {file}");
        assert!(passed_over.contains(&note), "{passed_over}");
    }
    for (words, expected) in [
        (vec!["gym", "--cake-config", "config.sh"], "line 2: `touch canary` is no setting"),
        (vec!["gym", "tidegate", "--cake-config", "lines/slow.csv"], "is no setting"),
        (vec!["gym", "--traces", "wrong.csv"], "wrong.csv: line 2"),
        (vec!["gym", "--traces", "nosuch"], "no such preset; presets are lte, 5g-driving"),
        (vec!["gym", "nosuch"], "unknown controller \"nosuch\"; there are tidegate, tidegate:AIM"),
        (vec!["gym", "fixed:0"], "`0` is not a share of the line's mean rate: a number from 0.01 to 100"),
        (vec!["gym", "program:./nosuch"], "program:./nosuch: No such file"),
        (vec!["gym", "program:lines"], "program:lines: this is no file"),
        (
            vec!["gym", "program:./plain.sh"],
            "program:./plain.sh: it may not be run; allow that: chmod +x ./plain.sh",
        ),
        (
            vec!["gym", "program:./old.py"],
            "program:./old.py:1: the script needs /usr/bin/python9, which is not on this machine; install it",
        ),
        (vec!["gym", "program:./env.py"], "program:./env.py:1: the script needs python9, which is not"),
        (vec!["gym", "program:./bare.py"], "program:./bare.py:1: the script needs python3, which is not"),
        (vec!["gym", "program:./windows.py"], "program:./windows.py:1: the lines end in CR LF"),
        (vec!["gym", "--duration", "1500ms"], "whole seconds, from 1s to 600s"),
        (vec!["gym", "--duration", "601"], "whole seconds, from 1s to 600s"),
        (vec!["gym", "--duration", "soon"], "invalid value 'soon' for '--duration <TIME>'"),
        (vec!["gym", "--traces", "lte,lte"], "--traces: lte is given twice"),
        (vec!["gym", "--traces", "empty"], "there is no recording in empty"),
        (vec!["gym", "--loads", "much"], "unknown load \"much\"; there are up, down, both"),
        (
            vec!["gym", "--detail", "nosuch"],
            "--detail nosuch: there is no such case; cases are called lte-1/up",
        ),
    ] {
        let output = tidegate(&place, &words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), text.contains(expected)), (Some(2), true), "{words:?}: {text}");
    }
    assert!(!place.0.join("canary").exists());
}

/// A picture shows one case: no other is played, and the command that is printed draws it again.
#[test]
fn only_the_case_of_a_picture_is_played() {
    if skip() {
        return;
    }
    let place = Place::new("gym-picture");
    let words = ["gym", "tidegate", "--failures", "--detail", "icmp-limit", "-o", "one.svg"];
    let output = tidegate(&place, &words);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("\n1 case, 5 runs of"), "{text}");
    assert!(text.contains("--failures --shaper cake --detail icmp-limit -o one.svg --seed 1"), "{text}");
    let svg = fs::read_to_string(place.0.join("one.svg")).expect("a picture");
    // Names have the ink of text behind a piece of their line: not the colour of lines, which is too light.
    assert!(svg.contains("<text class=\"ink\"") && !svg.contains("<text class=\"s2"), "{svg}");
    // A document and a list of cases have all of them.
    for more in ["--cases", "--json"] {
        let short =
            ["gym", "tidegate", "--lines", "2", "--loads", "up", "--mean", "500kbit", "--duration", "1"];
        let picture = ["--traces", "lte", "--detail", "lte-2/up", "-o", "x.svg", more];
        let output = tidegate(&place, &[&short[..], &picture].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("lte-1/up") && text.contains("lte-2/up"), "{text}");
    }
}

/// Programs in Python and shell take part, and give the same result twice.
#[test]
fn programs_in_other_languages_are_controllers() {
    if skip() {
        return;
    }
    let place = Place::new("gym-programs");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/controller");
    for name in ["aimd.py", "half.sh"] {
        fs::copy(examples.join(name), place.0.join(name)).expect(name);
    }
    let words = ["gym", "program:./aimd.py", "program:./half.sh", "--json", "--detail", "lte-1/up"];
    let played = || {
        let output = tidegate(&place, &[&words[..], &SHORT[..]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        output.stdout
    };
    let first = played();
    assert_eq!(first, played());
    let document: serde_json::Value = serde_json::from_slice(&first).expect("JSON");
    let of = |controller: usize| {
        let record = &document["details"][0]["records"][controller]["record"];
        record["decisions"].as_array().expect("decisions").clone()
    };
    let reasons: std::collections::BTreeSet<String> =
        of(0).iter().map(|one| one["reason"].as_str().unwrap_or_default().to_owned()).collect();
    assert!(reasons.contains("delay-high") && reasons.contains("load-high"), "{reasons:?}");
    assert_eq!(of(1).len(), 2, "half of the highest rate, once for each direction");
}

/// A program that breaks is stopped and named, and the others' results are kept.
#[test]
fn programs_that_break_are_stopped_named_and_scored_as_such() {
    if skip() {
        return;
    }
    let place = Place::new("gym-broken");
    let rows: [(&str, &str, &str); 10] = [
        ("hangs", "echo '{}'; exec sleep 100", "no answer within 3 s of the clock"),
        ("crashes", "echo '{}'; read a; echo 'oh \u{1b}[31mno' >&2; exit 3", "it ended with exit code 3"),
        ("killed", "kill -9 $$", "signal 9 ended it"),
        ("says", "printf 'be \\033]0;title\\007quick\\n'; read a", "at 0.00 s it answered `be "),
        ("much", "while :; do printf aaaaaaaaaaaaaaaaaaaaaaaa; done", "more than 4096 bytes"),
        (
            "errors",
            "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done >&2",
            "more than 1048576 bytes",
        ),
        ("zero", "echo '{\"up\": 0}'; read a", "up is no rate in bit/s: a number from 8000"),
        ("lists", "echo '[1]'; read a", "it is no object"),
        ("twice", "echo '{}\n{}'; read a", "it answered more than one line"),
        ("reasons", "echo '{\"reason\":\"mood\"}'; read a", "reason is none of begin, fixed"),
    ];
    let mut words: Vec<String> = vec!["gym".into(), "fixed:0.8".into()];
    for (name, text, _) in &rows {
        place.script(name, format!("#!/bin/sh\nread start\n{text}\n"));
        words.push(format!("program:./{name}"));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).chain(SHORT).collect();
    let output = tidegate(&place, &words);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for (name, _, expected) in rows {
        let line =
            text.lines().find(|line| line.starts_with(&format!("program:./{name} failed in lte-1/up: ")));
        assert!(line.is_some_and(|line| line.contains(expected)), "{name}: {line:?}\n{text}");
    }
    assert!(text.contains("its last words: `oh \\x1b[31mno`"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "control sequences: {text}");
    // Nothing is claimed of what has no score.
    assert!(!text.contains("hangs has a lower"), "{text}");
    let kept = text.lines().find(|line| line.starts_with("fixed:0.8")).expect("a row");
    assert!(kept.contains(" ms"), "{kept}");
}

/// Recordings are cut, scaled and joined wherever a command line names one; files of such names come first.
#[test]
fn recordings_are_composed_where_they_are_named() {
    if skip() {
        return;
    }
    let place = Place::new("composed");
    fs::write(place.0.join("a.csv"), "time,rate_mbit\n0,1\n1,2\n2,3\n").expect("a recording");
    fs::write(place.0.join("b+c.csv"), "time,rate_mbit\n0,8\n1,8\n").expect("a recording");
    fs::write(place.0.join("bw_1.txt"), "1\n2\n3\n4\n").expect("a recording");
    fs::write(place.0.join("delay_1.txt"), "24\n18\n").expect("delays");
    fs::write(place.0.join("p.batch"), "qdisc add dev eth0 root fq_codel\n").expect("a policy");
    let mean = |trace: &str| {
        let words = ["try", "p.batch", "--up", "5mbit", "--trace", trace, "-d", "2s", "--load", "idle"];
        let output = tidegate(&place, &words);
        assert_eq!(output.status.code(), Some(0), "{trace}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().unwrap_or_default().split(',').nth(1).unwrap_or_default().trim().to_owned()
    };
    for (trace, expected) in [
        (",a.csv", "2.00 Mbit/s down in the mean"),
        (",a.csv:skip=2s", "3.00 Mbit/s down in the mean"),
        (",a.csv:length=1s+b+c.csv", "3.00 Mbit/s down in the mean"),
        (",b+c.csv:scale=0.5", "4.00 Mbit/s down in the mean"),
        (",bw_1.txt:delays=delay_1.txt", "12.0 Mbit/s down in the mean"),
    ] {
        if trace.contains("s+b+c") {
            // The name is found only if it is all that is named.
            let output = tidegate(&place, &["try", "p.batch", "--up", "5mbit", "--trace", trace]);
            assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read b: "), "{output:?}");
            continue;
        }
        assert_eq!(mean(trace), expected, "{trace}");
    }
    for (trace, expected) in [
        (",a.csv:skip=3s", "a.csv:1: `skip` leaves nothing of the recording; it is 3 s long: skip less"),
        (",a.csv:skp=1s", "`skp` is no option of a recording; there are column, scale"),
        (
            ",a.csv+bw_1.txt:delays=delay_1.txt",
            "bw_1.txt: it has delays, and the first has none; join recordings",
        ),
        (",a.csv+none.csv", "cannot read none.csv: there is no such file"),
    ] {
        let output = tidegate(&place, &["try", "p.batch", "--up", "5mbit", "--trace", trace]);
        assert_eq!(output.status.code(), Some(2), "{trace}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(expected), "{trace}: {stderr}");
    }
    let words =
        ["gym", "fixed:0.8", "--loads", "down", "--duration", "1", "--mean", "0", "--cases", "--traces"];
    let output = tidegate(&place, &[&words[..], &["a.csv:scale=0.2+a.csv"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("a.csv:scale=0.2+a.csv/down"), "{output:?}");
    // A comma of a name, and a preset beside a file.
    fs::rename(place.0.join("b+c.csv"), place.0.join("b,c.csv")).expect("another name");
    assert_eq!(mean(r",b\,c.csv"), "8.00 Mbit/s down in the mean");
    let output =
        tidegate(&place, &[&words[..], &[r"b\,c.csv:scale=0.1+lte/down:length=1s:scale=0.1"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("lte/down: it has delays, and the first has none; join recordings"), "{stderr}");
    let output =
        tidegate(&place, &[&words[..], &["lte/up:length=1s+lte/down:length=1s:seed=2:scale=0.1"]].concat());
    assert!(output.status.success(), "{output:?}");
    let words = ["shell", "--trace", r"lte/up:seed=3,b\,c.csv:loop=true", "--", "true"];
    let output = tidegate(&place, &words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let words = ["shell", "--trace", "a.csv:skip=1s,bw_1.txt:delays=delay_1.txt:loop=false", "--", "true"];
    let output = tidegate(&place, &words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A program that starts others without end: the kernel stops that, as root by a control group.
#[test]
fn a_program_that_starts_many_others_is_held_to_a_number() {
    const MANY: usize = 700;
    if skip() {
        return;
    }
    let place = Place::new("gym-many");
    let text = format!(
        "#!/bin/sh\nread start\ni=0\ntrap 'echo $i >&2' EXIT\nwhile [ $i -lt {MANY} ]; do sleep 9 & i=$((i+1)); \
         done\nexit 3\n"
    );
    place.script("many", text);
    let output = tidegate(&place, &[&["gym", "program:./many"], &SHORT[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains("; its last words: `"));
    let reached = line.and_then(|line| line.rsplit('`').nth(1)?.parse::<usize>().ok());
    let reached = reached.unwrap_or_else(|| panic!("{text}"));
    // As root RLIMIT_NPROC holds no program, and the kernel's own limit of a namespace comes later (6.14).
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = group.lines().find_map(|line| line.split_once(":pids:"));
    let dir = path.map(|(_, path)| Path::new("/sys/fs/cgroup/pids").join(path.trim_start_matches('/')));
    let probe = dir.map(|dir| dir.join(format!("tidegate-test-{}", std::process::id())));
    if probe.is_some_and(|probe| fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).is_ok()) {
        assert!((30..100).contains(&reached), "{text}");
    } else {
        println!("SKIPPED: no control group of processes (version 1) can be made here: {reached} started");
    }
}

/// A controller that checks each line of the protocol against its schema, as a program would be given them.
struct Reader {
    call: tidegate_gym::ProgramCall,
    began: tidegate_packet::Time,
    calls: usize,
    /// Members that were seen in some line.
    seen: std::collections::BTreeSet<String>,
}

impl tidegate_control::RateController for Reader {
    fn name(&self) -> &str {
        "reader"
    }

    fn on_event(
        &mut self,
        now: tidegate_packet::Time,
        event: &tidegate_control::ControlEvent,
        decisions: &mut Vec<tidegate_control::RateDecision>,
    ) {
        if *event == tidegate_control::ControlEvent::Start {
            self.began = now;
            let answer = tidegate_gym::ProgramAnswer::read(r#"{"up":900000,"down":4e6,"reason":"begin"}"#);
            return decisions.extend(answer.expect("an answer").decisions);
        }
        if self.call.take(event, self.began) {
            let rates = tidegate_control::PerDirection { up: Some(900_000), down: Some(4_000_000) };
            let line = self.call.line(now.since(self.began), rates);
            assert!(line.ends_with('\n') && !line.trim_end().contains('\n'));
            let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            common::schemas::must_fit_schema("controller", &line);
            self.calls += 1;
            let lists = ["replies", "lost", "tcp"];
            let is_there = |name: &&String| {
                !lists.contains(&name.as_str())
                    || line[name.as_str()].as_array().is_some_and(|all| !all.is_empty())
            };
            self.seen.extend(line.as_object().expect("an object").keys().filter(is_there).cloned());
        }
    }
}

/// What a program reads, and what may be answered, is what the published schemas say.
#[test]
fn the_lines_of_programs_are_as_their_schemas_say() {
    use tidegate_control::{ControlReason, PerDirection, RateLimits};
    use tidegate_gym::{NAMED_FAILURES, ProgramAnswer, ProgramCall, run_case};
    let both = |rate| PerDirection { up: rate, down: 2 * rate };
    let start = ProgramCall::start(&RateLimits { least: both(1), base: both(2), most: both(3) });
    common::schemas::must_fit_schema("controller", &serde_json::from_str(&start).expect("JSON"));
    let mut seen = std::collections::BTreeSet::new();
    for name in ["one-target-dead", "no-timestamps"] {
        let failure = NAMED_FAILURES.iter().find(|failure| failure.name == name).expect(name);
        let mut case = failure.case().lasting(1, 9);
        case.faults.dead_from = tidegate_packet::Nanos::secs(2);
        let began = tidegate_packet::Time(0);
        let mut reader = Reader { call: ProgramCall::default(), began, calls: 0, seen: Default::default() };
        run_case(&case, &mut reader, false).expect("a run");
        assert!(reader.calls > 150, "{}", reader.calls);
        seen.extend(reader.seen);
    }
    // Each list had something in it.
    for name in ["acknowledged", "at", "call", "counters", "lost", "rate", "replies", "sent_again", "tcp"] {
        assert!(seen.contains(name), "{name}: {seen:?}");
    }

    let fits = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        common::schemas::misfit_of("controller_answer", &value).is_none()
    };
    let reasons = ControlReason::ALL.map(|reason| format!("{{\"reason\":\"{}\"}}", reason.id()));
    let good = ["{}", r#"{"up":8000}"#, r#"{"up":1e6,"down":2500000.5,"delay_ms":3,"next":0.5}"#];
    for text in good.into_iter().chain(reasons.iter().map(String::as_str)) {
        assert!(ProgramAnswer::read(text).is_ok() && fits(text), "{text}");
    }
    // Ranges are said in words, and refused all the same.
    for text in
        [r#"{"rate":1e6}"#, r#"{"up":"1mbit"}"#, r#"{"up":null}"#, r#"{"reason":"mood"}"#, r#"{"next":[]}"#]
    {
        assert!(ProgramAnswer::read(text).is_err() && !fits(text), "{text}");
    }
}
