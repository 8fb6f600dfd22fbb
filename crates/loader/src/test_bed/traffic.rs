//! The traffic of a scenario from calls of measuring programs.

use std::fmt::Write;

use super::toml_text::quoted;
use tidegate_capture::StubbedCall;

/// How long iperf sends unless it is told, seconds; and a run whose traffic nothing bounds.
const IPERF: f64 = 10.0;
const USUAL: f64 = 30.0;
/// The longest run, and the most flows, that are taken from a script.
const LONGEST: f64 = 3600.0;
const MOST_FLOWS: usize = 200;

/// The loads of a scenario.
#[derive(Debug)]
pub(super) struct Flows {
    /// Their tables.
    pub(super) text: String,
    /// How long the run is, whole seconds.
    pub(super) seconds: u64,
    /// What is not among them, a sentence each.
    pub(super) left_out: Vec<String>,
}

/// What a program sends.
#[derive(Debug, Default, PartialEq)]
struct Flow<'c> {
    target: &'c str,
    kind: Kind,
    seconds: Option<f64>,
    count: usize,
    /// The other end sends.
    reverse: bool,
    control: Option<&'c str>,
    port: Option<u16>,
    /// Bits per second.
    rate: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum Kind {
    #[default]
    Tcp,
    Udp,
    Ping,
}

impl Flows {
    /// The flows of the calls; `ends` gives the names of the machines between which a program sends, `far`
    /// two for a script without any.
    pub(super) fn of(
        calls: &[StubbedCall],
        ends: impl Fn(Option<&str>, &str) -> Option<[String; 2]>,
        far: &Option<[String; 2]>,
    ) -> Flows {
        let (mut text, mut left_out, mut longest) = (String::new(), Vec::new(), 0.0_f64);
        let mut found = 0;
        for call in calls {
            // A server, or a recorder, sends nothing of its own.
            let Some(flow) = read(call) else { continue };
            let words = || format!("`{} {}`", call.tool, call.args.join(" "));
            let Some([from, to]) = ends(call.netns.as_deref(), flow.target) else {
                left_out.push(format!("{}: no machine here has the address {}", words(), flow.target));
                continue;
            };
            if let Some(control) = flow.control.filter(|control| !CONTROLS.contains(control)) {
                left_out
                    .push(format!("the congestion control {control} of {}: cubic is in its place", words()));
            }
            if flow.kind == Kind::Udp && flow.rate == Some(0) {
                left_out.push(format!("{}: datagrams without a limit", words()));
                continue;
            }
            if found == MOST_FLOWS {
                left_out.push(format!("programs behind the first {MOST_FLOWS}"));
                break;
            }
            found += 1;
            longest = longest.max(flow.seconds.unwrap_or_default());
            text += &flow.table(&from, &to);
        }
        if let (0, Some([from, to])) = (found, far) {
            text = format!(
                "# The script makes no traffic: this is a choice.\n[[traffic]]\ntcp = {}\n\n[[traffic]]\nping = {}\n",
                quoted(&format!("{from} -> {to}")),
                quoted(&format!("{from} -> {to}")),
            );
        } else if found > 1 {
            text.insert_str(0, "# All begin at once, whatever the order in the script.\n");
        }
        let seconds = if longest > 0.0 { longest.min(LONGEST) } else { USUAL };
        Flows { text, seconds: seconds.ceil() as u64, left_out }
    }
}

/// Those of the simulator that iperf has a name for.
const CONTROLS: [&str; 5] = ["cubic", "reno", "bbr", "dctcp", "prague"];

impl Flow<'_> {
    fn table(&self, from: &str, to: &str) -> String {
        let arrow = if self.reverse { "<-" } else { "->" };
        let kind = match self.kind {
            Kind::Tcp => "tcp",
            Kind::Udp => "udp",
            Kind::Ping => "ping",
        };
        let mut out = format!("[[traffic]]\n{kind} = {}\n", quoted(&format!("{from} {arrow} {to}")));
        if self.count > 1 {
            let _ = writeln!(out, "count = {}", self.count);
        }
        if let Some(control) = self.control.filter(|control| CONTROLS.contains(control)) {
            let _ = writeln!(out, "control = \"{control}\"");
        }
        if let Some(port) = self.port {
            let _ = writeln!(out, "port = {port}");
        }
        if let Some(rate) = self.rate.filter(|_| self.kind == Kind::Udp) {
            let _ = writeln!(out, "rate = \"{rate}bit\"");
        }
        if let Some(seconds) = self.seconds {
            let _ = writeln!(out, "stop = \"{}ms\"", (seconds.min(LONGEST) * 1e3) as u64);
        }
        out.push('\n');
        out
    }
}

/// What a program sends; `None`: nothing.
fn read(call: &StubbedCall) -> Option<Flow<'_>> {
    let args = Arguments(&call.args);
    match call.tool.as_str() {
        "iperf" | "iperf3" => {
            let is_udp = args.has(&["-u", "--udp"]);
            let rate = args.value(&["-b", "--bandwidth", "--bitrate"]).and_then(bits);
            Some(Flow {
                target: args.value(&["-c", "--client"])?,
                kind: if is_udp { Kind::Udp } else { Kind::Tcp },
                seconds: Some(
                    args.number(&["-t", "--time"]).filter(|seconds| *seconds > 0.0).unwrap_or(IPERF),
                ),
                count: args.number(&["-P", "--parallel"]).map_or(1, |count| (count as usize).clamp(1, 128)),
                reverse: args.has(&["-R", "--reverse"]),
                control: args.value(&["-C", "-Z", "--congestion", "--linux-congestion"]).filter(|_| !is_udp),
                port: args.number(&["-p", "--port"]).map(|port| port as u16),
                rate: rate.or(is_udp.then_some(1_000_000)),
            })
        }
        "netperf" => {
            let test = args.value(&["-t"]).unwrap_or("TCP_STREAM");
            let (kind, reverse) = match test {
                "TCP_STREAM" | "TCP_SENDFILE" => (Kind::Tcp, false),
                "TCP_MAERTS" => (Kind::Tcp, true),
                _ => return None,
            };
            let seconds = args.number(&["-l"]).filter(|seconds| *seconds > 0.0).or(Some(IPERF));
            Some(Flow { target: args.value(&["-H"])?, kind, seconds, count: 1, reverse, ..Flow::default() })
        }
        "ping" | "ping6" => {
            // The last word that is no option's value.
            let target = call.args.last().filter(|word| !word.starts_with('-'))?;
            Some(Flow { target, kind: Kind::Ping, count: 1, ..Flow::default() })
        }
        _ => None,
    }
}

/// The arguments of a program.
struct Arguments<'c>(&'c [String]);

impl<'c> Arguments<'c> {
    fn has(&self, names: &[&str]) -> bool {
        self.0.iter().any(|arg| names.contains(&arg.as_str()))
    }

    /// The value of an option: the next word, or what is behind `=` or the letter.
    fn value(&self, names: &[&str]) -> Option<&'c str> {
        self.0.iter().enumerate().find_map(|(at, arg)| {
            if names.contains(&arg.as_str()) {
                return self.0.get(at + 1).map(String::as_str);
            }
            names.iter().find_map(|name| {
                let rest = arg.strip_prefix(name)?;
                if name.starts_with("--") { rest.strip_prefix('=') } else { Some(rest) }
            })
        })
    }

    fn number(&self, names: &[&str]) -> Option<f64> {
        self.value(names)?.parse().ok()
    }
}

/// A rate as iperf takes it, `10M`, in bits per second.
fn bits(text: &str) -> Option<u64> {
    let text = text.split('/').next()?;
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|number| *number >= 0.0).map(|number| (number * scale) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> StubbedCall {
        let mut words = line.split(' ').map(str::to_owned);
        let tool = words.next().unwrap();
        StubbedCall { tool, args: words.collect(), netns: Some("a".into()) }
    }

    fn flows(lines: &[&str]) -> Flows {
        let calls: Vec<StubbedCall> = lines.iter().map(|line| call(line)).collect();
        let ends = |_: Option<&str>, target: &str| (target == "10.0.0.2").then(|| ["a".into(), "b".into()]);
        Flows::of(&calls, ends, &Some(["a".into(), "b".into()]))
    }

    #[test]
    fn programs_become_flows() {
        let found = flows(&[
            "iperf3 -s -D",
            "iperf3 -c 10.0.0.2 -t 20 -P 4 -C bbr -p5202",
            "iperf -u -b 2.5M -c 10.0.0.2",
            "netperf -H 10.0.0.2 -t TCP_MAERTS -l 60",
            "ping -c 3 10.0.0.2",
        ]);
        let expected = "# All begin at once, whatever the order in the script.\n\
            [[traffic]]\ntcp = \"a -> b\"\ncount = 4\ncontrol = \"bbr\"\nport = 5202\nstop = \"20000ms\"\n\n\
            [[traffic]]\nudp = \"a -> b\"\nrate = \"2500000bit\"\nstop = \"10000ms\"\n\n\
            [[traffic]]\ntcp = \"a <- b\"\nstop = \"60000ms\"\n\n\
            [[traffic]]\nping = \"a -> b\"\n\n";
        assert_eq!((found.text.as_str(), found.seconds), (expected, 60));
        assert!(found.left_out.is_empty(), "{:?}", found.left_out);
    }

    #[test]
    fn what_is_no_flow_here_is_said() {
        let found =
            flows(&["iperf3 -c 192.0.2.9", "iperf3 -u -b 0 -c 10.0.0.2", "iperf3 -c 10.0.0.2 -C vegas"]);
        let said = found.left_out.join("\n");
        for part in
            ["no machine here has the address 192.0.2.9", "without a limit", "the congestion control vegas"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(found.text.matches("[[traffic]]").count(), 1, "{}", found.text);
        assert!(flows(&["iperf3 -s"]).text.contains("makes no traffic: this is a choice"));
    }
}
