//! `top`'s screen, on ratatui's terminal for tests.

use super::*;
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use tidegate_analysis::watch::{Figures, ShaperControl};

fn row(depth: usize, id: &str, bps: f64, p99_ms: u64) -> QueueRow {
    let waits = p99_ms > 0;
    QueueRow {
        depth,
        id: id.into(),
        leaf: (depth > 1).then(|| format!("fq_codel {}:", id.split(':').next_back().unwrap_or_default())),
        figures: Figures {
            bps,
            pps: bps / 8000.0,
            p50_ns: waits.then_some(p99_ms * 500_000),
            p99_ns: waits.then_some(p99_ms * 1_000_000),
            ..Figures::default()
        },
        ..QueueRow::default()
    }
}

/// A tree with `classes` leaves, of which the first two are active.
fn interval(device: &str, classes: usize) -> DeviceInterval {
    let mut rows = vec![row(0, "htb 1:", 9e6, 20), row(1, "1:1", 9e6, 20)];
    rows.extend((0..classes).map(|at| match at {
        0 => row(2, "1:10", 1e6, 2),
        1 => row(2, "1:11", 8e6, 200),
        _ => row(2, &format!("1:{}", at + 10), 0.0, 0),
    }));
    DeviceInterval {
        device: device.into(),
        backend: "user".into(),
        packet_io: Some("capture".into()),
        over_ns: 1_000_000_000,
        shaped_bps: Some(1e7),
        rows,
        ..DeviceInterval::default()
    }
}

fn drawn(screen: &mut TopScreen, (columns, rows): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("it has a size");
    terminal.draw(|frame| screen.draw(frame.buffer_mut())).expect("it is drawn");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..rows).map(line).collect()
}

fn with(intervals: &[DeviceInterval]) -> TopScreen {
    let mut screen = TopScreen::new();
    screen.push(intervals.to_vec());
    screen
}

#[test]
fn a_controller_has_a_line_below_its_device() {
    let mut eth0 = interval("eth0", 2);
    eth0.control = Some(ShaperControl {
        controller: "tidegate".into(),
        direction: "upload".into(),
        rate: 3_000_000,
        least: 600_000,
        most: 6_000_000,
        ..ShaperControl::default()
    });
    let lines = drawn(&mut with(&[eth0]), (80, 24));
    let expected = "  autorate (tidegate): upload 3.00 Mbit/s of 600 kbit/s to 6.00 Mbit/s";
    assert!(lines[1].starts_with("eth0") && lines[2] == expected, "{lines:#?}");
}

#[test]
fn eighty_by_twenty_four() {
    let mut screen = with(&[interval("eth0", 6)]);
    let before = interval("eth0", 6);
    screen.push(vec![before]);
    let lines = drawn(&mut screen, (80, 24));
    let expected = [
        "class                  bit/s backlog     p50     p99  oldest drop/s p99, past",
        "eth0  10.0 Mbit/s  user space (capture)  over 1.00 s",
        "htb 1:                 9.00M       0  10.0ms  20.0ms       –      0 ▄▄",
        "└ 1:1                  9.00M       0  10.0ms  20.0ms       –      0 ▄▄",
        "  ├ 1:10 fq_codel 10:  1.00M       0  1.00ms  2.00ms       –      0 ▂▂",
        "  └ 1:11 fq_codel 11:  8.00M       0   100ms   200ms       –      0 ▆▆",
        "  … 4 idle rows",
    ];
    assert_eq!(lines[..7], expected, "{lines:#?}");
    assert_eq!(lines[23], "q quit  s sort: tree  i show 4 idle  ↑↓ 1–6 of 6  space pause  p99 ▁≤1ms █>1s");
}

#[test]
fn keys_show_idle_rows_sort_and_scroll() {
    let mut screen = with(&[interval("eth0", 40)]);
    drawn(&mut screen, (80, 24));
    assert!(screen.obey(Key::Char('i')));
    let lines = drawn(&mut screen, (80, 24));
    assert!(lines[6].starts_with("  ├ 1:12 fq_codel 12:"), "{lines:#?}");
    assert!(lines[23].contains("i hide idle  ↑↓ 1–22 of 43"), "{}", lines[23]);
    screen.obey(Key::End);
    let lines = drawn(&mut screen, (80, 24));
    assert!(lines[22].starts_with("  └ 1:49") && lines[23].contains("22–43 of 43"), "{lines:#?}");
    screen.obey(Key::PageDown);
    screen.obey(Key::Up);
    assert!(drawn(&mut screen, (80, 24))[23].contains("21–42 of 43"));
    screen.obey(Key::Home);
    screen.obey(Key::Char('s'));
    screen.obey(Key::Char('s'));
    let lines = drawn(&mut screen, (80, 24));
    assert!(lines[2].starts_with("1:11 fq_codel 11:") && lines[3].starts_with("1:10"), "{lines:#?}");
    assert!(lines[23].contains("sort: p99"), "{}", lines[23]);
    // A taller terminal has room for all of it.
    screen.obey(Key::End);
    assert!(drawn(&mut screen, (80, 60))[1].starts_with("eth0"));
    assert!(!screen.obey(Key::Char('q')));
}

/// Smaller than anything, and larger: nothing panics, and what is drawn stays inside by construction.
#[test]
fn any_size() {
    for size in [(1, 1), (2, 2), (20, 3), (40, 10), (59, 24), (60, 24), (120, 40), (300, 100)] {
        let mut screen = with(&[interval("eth0", 12), interval("ifb0", 3)]);
        drawn(&mut screen, size);
        let keys = [Key::End, Key::PageDown, Key::PageUp, Key::Char('i')];
        assert!(keys.into_iter().all(|key| screen.obey(key)));
        drawn(&mut screen, size);
    }
    let lines = drawn(&mut with(&[interval("eth0", 12)]), (120, 40));
    assert!(
        lines[0].contains("share") && lines[0].contains("packet/s") && lines[0].contains("p99, newest right")
    );
    assert!(lines[39].ends_with("█>1s"), "{}", lines[39]);
}

#[test]
fn foreign_text_cannot_command_the_terminal() {
    let mut one = interval("eth0\x1b[2J", 2);
    one.packet_io = Some("\u{202e}x".into());
    one.rows[3].id = "\x1b]0;title\x07 a name that is much too long for a row of this width".into();
    let mut screen = with(&[one]);
    let lines = drawn(&mut screen, (80, 24));
    let expected = "eth0\\x1b[2J  10.0 Mbit/s  user space (\\u{202e}x)";
    assert!(lines[1].starts_with(expected) && !lines.concat().contains(char::is_control), "{lines:#?}");
    assert!(lines[5].contains('…') && lines[5].contains("8.00M"), "figures stay: {lines:#?}");
}

#[test]
fn the_kernel_reports_no_delays_and_gets_no_bars() {
    let mut one = interval("eth0", 2);
    one.backend = "kernel".into();
    let lines = drawn(&mut with(&[one]), (80, 24));
    assert!(!lines[0].contains("past") && lines[0].contains("share"), "{lines:#?}");
}

#[test]
fn before_the_first_interval() {
    assert_eq!(drawn(&mut TopScreen::new(), (80, 24))[1], "measuring …");
}
