//! `kubernetes.io/ingress-bandwidth` and `kubernetes.io/egress-bandwidth`, annotations of a pod, as the
//! commands that put the same on as the CNI plugin `bandwidth` does.
//!
//! Followed are the plugin (github.com/containernetworking/plugins, Apache 2.0; `plugins/meta/bandwidth`) and
//! containerd, which gives it a burst of 2³² − 1 bits; what the numbers come to on 64-bit x86. Cilium's
//! bandwidth manager paces with fq instead, Calico and kube-ovn have their own: a file does not say which is
//! in use.

use crate::foreign::{ForeignCommand, ForeignPolicy};
use crate::kubernetes::{self, Findings};
use crate::nft::Span;
use crate::short::Problem;
use crate::yaml::{YamlEntry, YamlNode};

/// Packets to the pod.
const INGRESS: &str = "kubernetes.io/ingress-bandwidth";
/// Packets that it sends.
const EGRESS: &str = "kubernetes.io/egress-bandwidth";
/// The most pods of a file that have a limit.
const MOST_PODS: usize = 256;
/// What containerd gives the plugin as burst, in bytes.
const BURST: u64 = u32::MAX as u64 / 8;
/// What the plugin adds to it for the queue, in milliseconds at the rate.
const LATENCY_MS: u64 = 25;
/// Rates that Kubernetes takes, in bits a second; above a tenth of the greatest the queue's limit has no
/// 32 bits.
const LEAST: u128 = 1000;
const MOST: u128 = 1_000_000_000_000;
/// From this rate on, in bits a second, the burst's time fits in the kernel's 32 bits.
const FITS: u64 = 15_625_000;

/// Are these the lines of such a file, trimmed and without comments?
pub fn is_manifest(lines: &[&str]) -> bool {
    // `annotations: {kubernetes.io/…: 80M}` is one line.
    let is_key = |line: &&str| [INGRESS, EGRESS].iter().any(|key| line.contains(key));
    let is_kind = |line: &&str| line.trim_start_matches(['-', ' ', '"']).starts_with("kind");
    lines.iter().any(is_key) && lines.iter().any(is_kind)
}

/// Reads a file: what the limits of its pods come to on the node that runs them.
///
/// ```
/// use tidegate_syntax::pod_bandwidth;
///
/// let file = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations:\n    \
///             kubernetes.io/ingress-bandwidth: 80M\n";
/// let policy = pod_bandwidth::read(file).unwrap();
/// let words = policy.commands[0].words.join(" ");
/// let rates = "rate 80000000bit burst 536870910b limit 537120911b";
/// assert_eq!(words, format!("qdisc add dev veth0 root handle 1: tbf {rates}"));
/// ```
///
/// # Errors
/// What Kubernetes would refuse, and limits that have no effect where they stand.
pub fn read(text: &str) -> Result<ForeignPolicy, Vec<Problem>> {
    let objects = kubernetes::objects(text)?;
    let mut found = Findings::default();
    let mut policy = ForeignPolicy::default();
    let mut pods = 0;
    for object in &objects {
        let Some(limits) = limits_of(object, &mut found) else { continue };
        if pods == MOST_PODS {
            found.wrong(object.span, format!("more than {MOST_PODS} pods have limits"), "divide the file");
            break;
        }
        limits.carry_out((pods, kubernetes::name_of(object)), &mut policy, &mut found);
        pods += 1;
    }
    let remedy = "write them in metadata.annotations of a Pod, or of a template's";
    found.judge(text, policy, ("no pod of this file has limits", remedy))
}

/// The limits of a pod in bits a second, each with its place.
#[derive(Default)]
struct Limits {
    ingress: Option<(u64, Span)>,
    egress: Option<(u64, Span)>,
}

/// The limits of the pods that an object is or makes.
fn limits_of(object: &YamlNode, found: &mut Findings) -> Option<Limits> {
    let kind = object.get("kind").and_then(YamlNode::text).unwrap_or_default();
    let below = |paths: &[&str]| paths.iter().try_fold(object, |node, key| node.get(key));
    let pod = match kind {
        "Pod" => Some(object),
        "PodTemplate" => below(&["template"]),
        "CronJob" => below(&["spec", "jobTemplate", "spec", "template"]),
        _ => below(&["spec", "template"]),
    };
    let annotations = |node: &YamlNode| Some(node.get("metadata")?.entry("annotations")?.clone());
    if kind != "Pod"
        && let Some(own) = annotations(object)
        && let Some(entry) = [INGRESS, EGRESS].iter().find_map(|key| own.node.entry(key))
    {
        let what = format!("{} stands at the {kind} itself, not at its pods, and has no effect", entry.key);
        found.skip(entry.span, what, "write it in spec.template.metadata.annotations");
    }
    let own: YamlEntry = annotations(pod?)?;
    let limits = Limits { ingress: rate(&own.node, INGRESS, found), egress: rate(&own.node, EGRESS, found) };
    (limits.ingress.is_some() || limits.egress.is_some()).then_some(limits)
}

/// The rate of an annotation, in bits a second.
fn rate(annotations: &YamlNode, key: &str, found: &mut Findings) -> Option<(u64, Span)> {
    let (text, span) = found.text(annotations, key)?;
    let Some(rate) = quantity(text) else {
        let what = format!("{text} is no quantity that Kubernetes takes here, so the pod does not start");
        found.wrong(span, what, "write bits a second with k, M, G, Ki, Mi or Gi behind them: 10M");
        return None;
    };
    if !(LEAST..=MOST).contains(&rate) {
        let what = format!("{text} is {rate} bits a second, and not from 1k to 1T");
        let remedy =
            "Kubernetes takes 1k to 1P, and above 1T the plugin's numbers overflow; m are thousandths";
        found.wrong(span, what, remedy);
        return None;
    }
    Some((u64::try_from(rate).ok()?, span))
}

/// A quantity of Kubernetes, a fraction rounded up: `10M`, `1.5Gi`, `1e6`, `2500m`.
fn quantity(text: &str) -> Option<u128> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + part.len() == 0 || whole.len() + part.len() > 18 || part.contains('.') {
        return None;
    }
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let (mut up, mut down) = (1_u128, 10_u128.pow(u32::try_from(part.len()).ok()?));
    match suffix {
        "" => {}
        "m" => down *= 1000,
        "k" => up = 1000,
        "M" => up = 1000_u128.pow(2),
        "G" => up = 1000_u128.pow(3),
        "T" => up = 1000_u128.pow(4),
        "P" => up = 1000_u128.pow(5),
        "Ki" => up = 1 << 10,
        "Mi" => up = 1 << 20,
        "Gi" => up = 1 << 30,
        "Ti" => up = 1 << 40,
        "Pi" => up = 1 << 50,
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?;
            up = 10_u128
                .pow(power.strip_prefix('+').unwrap_or(power).parse().ok().filter(|power| *power <= 15)?);
        }
    }
    Some((digits * up).div_ceil(down))
}

impl Limits {
    /// Adds the commands. `at`: which of the file's pods it is, and the name of what makes it.
    fn carry_out(self, (at, name): (usize, &str), policy: &mut ForeignPolicy, found: &mut Findings) {
        let veth = format!("veth{at}");
        let spans = [self.ingress, self.egress].into_iter().flatten().map(|(_, span)| span);
        if let Some(span) = spans.min_by_key(|span| span.line) {
            let what = format!(
                "`{veth}` stands for the node's end of the veth of each pod of {name}: what it sends goes to the pod"
            );
            let remedy =
                "shown is what the CNI plugin `bandwidth` does for containerd; Cilium paces with fq instead";
            found.note(span, what, remedy);
        }
        if let Some((rate, span)) = self.ingress {
            policy.commands.push(tbf(&veth, rate, span));
            overflow(rate, span, found);
        }
        if let Some((rate, span)) = self.egress {
            let ifb = format!("bwp{at}");
            let filter = "protocol all prio 1 u32 match u32 0 0 flowid 1:1";
            for (tool, words) in [
                ("ip", format!("link add {ifb} type ifb")),
                ("ip", format!("link set {ifb} up")),
                ("tc", format!("qdisc add dev {veth} ingress")),
                (
                    "tc",
                    format!(
                        "filter add dev {veth} parent ffff: {filter} action mirred egress redirect dev {ifb}"
                    ),
                ),
            ] {
                policy.commands.push(ForeignCommand::new(tool, &words, span.line));
            }
            policy.commands.push(tbf(&ifb, rate, span));
            overflow(rate, span, found);
        }
        policy.devices.push(veth);
    }
}

/// The qdisc of a limit: what the plugin gives the kernel, in tc's words.
fn tbf(device: &str, rate: u64, span: Span) -> ForeignCommand {
    let bytes = rate / 8;
    // The plugin converts twice, and what does not fit in 32 bits loses its upper ones.
    let micros = u64::from(low(u128::from(BURST) * 1_000_000 / u128::from(bytes)));
    let ticks = low(u128::from(micros) * 125 / 8);
    // tc takes bytes, and counts in whole microseconds, of which each has 15.625 ticks.
    let burst = (u128::from(ticks) * 8).div_ceil(125) * u128::from(bytes);
    let burst = burst.div_ceil(1_000_000).max(1);
    let limit = bytes * LATENCY_MS / 1000 + BURST;
    let words = format!(
        "qdisc add dev {device} root handle 1: tbf rate {}bit burst {burst}b limit {limit}b",
        bytes * 8
    );
    ForeignCommand::new("tc", &words, span.line)
}

/// The lower 32 bits.
fn low(number: u128) -> u32 {
    u32::try_from(number & u128::from(u32::MAX)).unwrap_or(u32::MAX)
}

fn overflow(rate: u64, span: Span, found: &mut Findings) {
    if rate < FITS {
        let what = "the burst that containerd gives is too long for the kernel's 32 bits at this rate, and loses its \
                    upper ones: shown is what 64-bit x86 makes of it";
        found.note(span, what, "other processors convert otherwise");
    }
}

#[cfg(test)]
mod tests;
