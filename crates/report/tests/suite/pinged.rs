//! What pings showed, written and read back, and shown.

use crate::fixture::pinged::pinged;
use tidegate_measure::pinged::Pinged;
use tidegate_report::measuring::ping::{page, text};

#[test]
fn the_table_and_its_remarks() {
    let expected = "\
voip: example.org (192.0.2.1), echo requests of 200 B every 200 ms, DS field 0xb8
hop <2>: 192.0.2.1, the hop at distance 2, by UDP to port 33434 of 0 B every 1.00 s
Partial: stopped after 2.0 s

target   sent  lost     loss       95 % CI      min     mean      p50      p95      p99      max     mdev  \
jitter  here p95
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
voip       10     2   20.0 %    5.7–51.0 %  20.0 ms  24.0 ms  23.0 ms  28.0 ms  28.0 ms  28.0 ms  2.74 ms  \
254 µs    800 µs
hop <2>     1     1  100.0 %  20.7–100.0 %        –        –        –        –        –        –        \
–       –         –
";
    let shown = text(&pinged());
    let (table, notes) = shown.split_at(shown.find("Note:").expect("notes"));
    assert_eq!(table, expected);
    for words in [
        "voip: 192.0.2.254 sent “host unreachable” 2 times",
        "hop <2>: 1 duplicate replies",
        "was too late for 3 requests",
        "a note",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    assert!(!text(&Pinged::default()).is_empty());
}

#[test]
fn a_page_needs_nothing_else_and_escapes_names() {
    let page = page(&pinged(), true);
    assert!(page.contains("hop &lt;2&gt;") && !page.contains("hop <2>"));
    assert!(page.contains("Six panels") && page.contains("Distribution (CDF)") && page.contains("Partial"));
    assert!(!page.contains("http:") && !page.contains("https:"), "nothing is fetched");
}
