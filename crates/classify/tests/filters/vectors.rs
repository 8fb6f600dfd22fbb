//! Vectors: filters in tc's words, packets, and where a real Linux sent each (`data/vectors.txt` describes
//! the run).

use super::lists::Lists;
use tidegate_classify::FilterVerdict;
use tidegate_packet::Time;
use tidegate_recording::line::{pieces, plain};
use tidegate_recording::{Recording, RowKind, SCRIPT_AT, Texts, at};

/// Vectors, their packets, and how many there are at least.
const VECTORS: [(&str, &str, usize); 2] = [
    (include_str!("../data/vectors.txt"), include_str!("../data/packets.csv"), 90),
    (include_str!("../data/vectors-2.txt"), include_str!("../data/packets-2.csv"), 35),
];
/// The bands of the root; the last takes what filters send nowhere.
const BANDS: u16 = 16;

pub(crate) fn words(command: &str) -> Vec<String> {
    let piece = pieces(command).expect("quotes are closed").remove(0);
    plain(&piece, 0).expect("no shell is needed").expect("a command").0
}

/// A class's minor number as prio takes it, whatever its major; `-`: there is no such band.
fn letter(verdict: Option<FilterVerdict>) -> char {
    match verdict {
        Some(FilterVerdict::Class(class)) if (1..BANDS).contains(&class.minor()) => {
            char::from_digit(class.minor().into(), 16).expect("a digit")
        }
        Some(FilterVerdict::Drop | FilterVerdict::Stolen) => 'x',
        _ => '-',
    }
}

/// Where each packet goes, as a line of the vectors has it.
fn decided(packets: &Recording, filters: &str) -> String {
    let mut lists = Lists::new();
    let before = at(SCRIPT_AT);
    let root = format!("qdisc add dev link0 root handle 1: prio bands {BANDS}");
    let mut tc =
        |now: Time, command: &str| lists.tc(now, &words(command)).unwrap_or_else(|_| panic!("{command}"));
    tc(before, &root);
    for filter in filters.split(" ; ") {
        tc(before, &format!("filter add dev link0 parent 1: {filter}"));
    }
    let packet = |row: &tidegate_recording::ScheduleRow| match &row.what {
        RowKind::Packet(arrival) => {
            let (meta, head) = (arrival.meta.clone(), arrival.head.clone());
            // The root takes a packet whose priority names one of its classes without evaluating filters.
            match meta.priority_class() {
                class if class.major() == 1 => letter(Some(FilterVerdict::Class(class))),
                _ => letter(lists.offer(at(row.time), meta, head).0),
            }
        }
        RowKind::Command(line) => panic!("no packet: {line}"),
    };
    packets.rows.iter().map(packet).collect()
}

#[test]
fn filters_decide_as_linux_did() {
    let mut differ = String::new();
    for (vectors, schedule, least) in VECTORS {
        let texts = Texts { link: "0 0 1500 1000", schedule, random: None, has_frames: false, linux: None };
        let packets = Recording::parse(&texts, 1).expect("packets");
        let rows = vectors.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for (wanted, filters) in rows.map(|line| line.split_once(' ').expect("two")) {
            let found = decided(&packets, filters);
            // The kernel's answer is another each time.
            let known =
                wanted.chars().zip(found.chars()).all(|(wanted, found)| wanted == '?' || wanted == found);
            if !known || wanted.len() != found.len() {
                differ += &format!("{filters}\n  Linux {wanted}\n  here  {found}\n");
            }
            count += 1;
        }
        assert!(count >= least, "only {count} vectors");
    }
    assert!(differ.is_empty(), "{differ}");
}
