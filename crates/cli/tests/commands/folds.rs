//! On a terminal of 60 columns tables fold, and nothing that is drawn again is wider than it.

use crate::common;

use common::computer::Computer;
use common::{Place, TIDEGATE, skip, skip_terminal};
use std::process::{Command, Stdio};

/// A terminal on a computer of its own: what devices the one has that runs the tests must not matter.
pub(crate) struct Terminal {
    pub(crate) computer: Option<Computer>,
    pub(crate) place: Place,
}

impl Terminal {
    /// `None`, with the reason printed, where there is no sandbox, no `script`, or it can open no terminal.
    pub(crate) fn new(name: &str) -> Option<Terminal> {
        if skip() || skip_terminal() {
            return None;
        }
        Some(Terminal { computer: Computer::new(name), place: filled(name) })
    }

    /// What a command shows on a terminal of so many columns.
    fn shown(&self, columns: u32, environment: &[(&str, &str)], line: &str) -> String {
        let output = Computer::output(self.computer.as_ref(), self.command(columns, environment, line));
        String::from_utf8_lossy(&output.expect("it ran before").stdout).replace("\r\n", "\n")
    }

    /// A command on a terminal of so many columns.
    pub(crate) fn command(&self, columns: u32, environment: &[(&str, &str)], line: &str) -> Command {
        let line = format!("stty cols {columns} rows 40; exec '{TIDEGATE}' {line}");
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .current_dir(&self.place.0)
            .env("TIDEGATE_RUN", self.place.0.join("run"))
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env_remove("COLUMNS")
            .env_remove("NO_COLOR")
            .envs(environment.iter().copied())
            .stdin(Stdio::null());
        command
    }
}

/// Without sequences of control: what stands in the columns.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => drop(letters.by_ref().find(char::is_ascii_alphabetic)),
            // What is drawn over is another line.
            '\r' => out.push('\n'),
            letter => out.push(letter),
        }
    }
    out
}

/// A line that is meant to be copied is as long as it is: which commands `doctor` prints depends on the
/// computer.
fn may_be_long(line: &str) -> bool {
    let is_command =
        line.starts_with("    ") && line[4..].starts_with(|first: char| first.is_ascii_lowercase());
    is_command || line.starts_with("Again: ") || line.contains("tidegate ") || line.contains(" --")
}

fn too_wide(text: &str, columns: usize) -> Vec<String> {
    let plain = plain(text);
    let wide = plain.lines().filter(|line| line.chars().count() > columns && !may_be_long(line));
    wide.map(str::to_owned).collect()
}

fn filled(name: &str) -> Place {
    let place = Place::new(name);
    place.file("home.toml", "device = \"eth0\"\nup = \"4mbit\"\ndown = \"20mbit\"\npreset = \"home\"\n");
    place.file(
        "s.toml",
        "duration = \"2s\"\n[home]\nup = \"2mbit\"\ndown = \"9mbit\"\n[policies.none]\n\
        [policies.a-policy-with-a-long-name]\ngateway = [\"tc qdisc add dev eth0 root fq_codel\"]\n\
        [[traffic]]\nping = \"a -> server\"\n[[traffic]]\ntcp = \"a -> server\"\ncount = 2\n",
    );
    place.file(
        "t.toml",
        "policy = \"home.toml\"\nup = \"4mbit\"\ndown = \"20mbit\"\nduration = \"2s\"\n\
        expect = [\"ping: p95 < 500 ms while 2 uploads and 3 downloads\", \"ping: p95 < 1 ms while 1 upload\"]\n",
    );
    place.file(
        "bad.batch",
        "qdisc add dev eth0 root handle 1: htb default 99\n\
        class add dev eth0 parent 1: classid 1:10 htb rate 1mbit burst 1600 cburst 1600 prio 1 quantum 1514\n",
    );
    place
}

#[test]
fn tables_fold_from_60_columns() {
    let Some(terminal) = Terminal::new("folds") else {
        return;
    };
    let rows = [
        "try home.toml --duration 2s --load up,down -o none",
        "sim s.toml --repeats 2 -o r.json",
        "sim s.toml --list",
        "compare r.json r.json",
        "test t.toml --figures",
        "check bad.batch home.toml",
        "check --rules",
        "graph home.toml",
        "explain home.toml 'udp 192.168.1.7 > 1.1.1.1:53'",
        "run home.toml --print tree",
        "policy list",
        "policy help",
        "policy help latency",
        "status",
        "doctor --duration 1s",
        "ping 127.0.0.1 127.0.0.2 -c 5 -i 0.02",
        "--help",
        "try --help",
    ];
    let mut wrong = String::new();
    for columns in [60, 72] {
        for line in rows {
            let text = terminal.shown(columns, &[], line);
            assert!(text.len() > 20, "{line}: {text}");
            for wide in too_wide(&text, columns as usize) {
                wrong += &format!("{columns} {line}\n    {wide}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn progress_fits_terminals_of_any_width() {
    let Some(terminal) = Terminal::new("folds-progress") else {
        return;
    };
    let line = "sim s.toml --repeats 3 -o none.json";
    for columns in [1, 10, 20, 39, 60, 300, 65_535] {
        let text = terminal.shown(columns, &[], line);
        let drawn: Vec<&str> = text.split(['\r', '\n']).filter(|line| line.contains("simulating")).collect();
        for one in &drawn {
            let wide = plain(one).trim_end().chars().count();
            assert!(wide <= (columns as usize).min(140), "{columns}: {wide}: {one}");
        }
    }
}

#[test]
fn a_terminal_that_only_prints_gets_no_control_sequences() {
    let Some(terminal) = Terminal::new("folds-dumb") else {
        return;
    };
    for line in [
        "sim s.toml --repeats 2",
        "check bad.batch",
        "try home.toml --duration 1s --load up -o none",
        "test t.toml",
        "ping 127.0.0.1 -c 3 -i 0.05",
        "check --no-such",
        "try --help",
    ] {
        // Build services set `CI`, which must not matter.
        for environment in [&[("TERM", "dumb")][..], &[("TERM", "dumb"), ("CI", "true")]] {
            let text = terminal.shown(80, environment, line);
            assert!(!text.contains('\u{1b}'), "{line}: {text:?}");
        }
        let text = terminal.shown(80, &[("NO_COLOR", "1")], &format!("{line} --quiet"));
        assert!(!text.contains("\u{1b}[1;3"), "{line}: {text:?}");
        let text = terminal.shown(80, &[], &format!("{line} --quiet --color never"));
        assert!(!text.contains('\u{1b}'), "{line}: {text:?}");
    }
    let colored = terminal.shown(80, &[], "check bad.batch");
    assert!(colored.contains("\u{1b}[1;3"), "{colored:?}");
}
