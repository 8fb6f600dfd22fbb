//! What to write into a policy about a line.

use super::coding::Coding;
use super::line::LineEstimate;
use alloc::format;
use alloc::string::String;

/// Bytes of the Ethernet header, which tc counts where a device has one.
const ETHERNET: u32 = 14;
/// What is known by name: coding, overhead over IP, cake's word.
const KNOWN: [(Coding, u32, &str); 12] = [
    (Coding::Atm, 8, "ipoa-vcmux"),
    (Coding::Atm, 16, "ipoa-llcsnap"),
    (Coding::Atm, 24, "bridged-vcmux"),
    (Coding::Atm, 32, "bridged-llcsnap or pppoe-vcmux"),
    (Coding::Atm, 10, "pppoa-vcmux"),
    (Coding::Atm, 14, "pppoa-llc"),
    (Coding::Atm, 40, "pppoe-llcsnap"),
    (Coding::Atm, 48, "conservative"),
    (Coding::Ptm, 30, "pppoe-ptm"),
    (Coding::Ptm, 22, "bridged-ptm"),
    (Coding::Bytes, 38, "ethernet"),
    (Coding::Bytes, 18, "docsis"),
];

/// What to paste.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// For `tc … htb|tbf|stab` on an Ethernet device.
    pub tc: String,
    /// tc's options for a device without Ethernet header (ppp0, a tunnel).
    pub tc_without_header: String,
    /// For `tc … cake`.
    pub cake: String,
    /// What cake calls such a line, if it has a word.
    pub known_as: Option<&'static str>,
    /// What these words leave out, if anything.
    pub left_out: Option<String>,
}

impl Words {
    /// Of a line.
    pub fn of(line: &LineEstimate) -> Words {
        let unit = line.floor.filter(|floor| floor.is_unit).map(|floor| libm::round(floor.bytes) as u32);
        // tc counts cells of ATM on its own; it knows no PTM, and its size is added before the smallest unit
        // counts.
        let layer = if line.coding == Coding::Atm { "atm" } else { "ethernet" };
        let mpu = unit.map_or(String::new(), |unit| format!(" mpu {unit}"));
        let tc = |counted: u32| {
            format!("overhead {}{mpu} linklayer {layer}", line.overhead.saturating_sub(counted))
        };
        let cells = match line.coding {
            Coding::Atm => "atm",
            Coding::Ptm => "ptm",
            Coding::Bytes | Coding::Steps(_) => "noatm",
        };
        let known =
            KNOWN.iter().find(|(coding, overhead, _)| *coding == line.coding && *overhead == line.overhead);
        Words {
            tc: tc(ETHERNET),
            tc_without_header: tc(0),
            cake: format!("overhead {}{mpu} {cells}", line.overhead),
            known_as: known.map(|(.., name)| *name),
            left_out: left_out(line),
        }
    }
}

fn left_out(line: &LineEstimate) -> Option<String> {
    match line.coding {
        Coding::Ptm => Some("tc has no word for PTM: there give it 64/65 of the rate (0.984)".into()),
        Coding::Steps(step) => Some(format!(
            "sizes count in steps of {step} bytes: {} bytes more are on the safe side",
            step - 1
        )),
        Coding::Bytes if line.overhead < ETHERNET => {
            Some(format!("tc counts {} bytes more than this line does", ETHERNET - line.overhead))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overhead::Floor;

    #[test]
    fn words_count_from_where_each_tool_does() {
        let line = |coding, overhead| LineEstimate { coding, overhead, ..LineEstimate::default() };
        let unit = Some(Floor { bytes: 84.2, is_unit: true, ..Floor::default() });
        let limit = Some(Floor { bytes: 171.0, is_unit: false, ..Floor::default() });
        let cases = [
            (line(Coding::Ptm, 30), "overhead 16 linklayer ethernet", "overhead 30 ptm", Some("pppoe-ptm")),
            (line(Coding::Atm, 10), "overhead 0 linklayer atm", "overhead 10 atm", Some("pppoa-vcmux")),
            (
                LineEstimate { floor: unit, ..line(Coding::Bytes, 38) },
                "overhead 24 mpu 84 linklayer ethernet",
                "overhead 38 mpu 84 noatm",
                Some("ethernet"),
            ),
            (
                LineEstimate { floor: limit, ..line(Coding::Bytes, 53) },
                "overhead 39 linklayer ethernet",
                "overhead 53 noatm",
                None,
            ),
        ];
        for (line, tc, cake, known) in cases {
            let words = Words::of(&line);
            assert_eq!((words.tc.as_str(), words.cake.as_str(), words.known_as), (tc, cake, known));
        }
        assert!(
            Words::of(&line(Coding::Bytes, 4)).left_out.is_some_and(|words| words.contains("10 bytes more"))
        );
    }
}
