//! Experiments of Chaos Mesh (`kind: NetworkChaos`) as the commands that its daemon runs in a pod.
//!
//! Followed is Chaos Mesh 2.8 (github.com/chaos-mesh/chaos-mesh, Apache 2.0; `pkg/chaosdaemon/tc_server.go`
//! and `api/v1alpha1/networkchaos_types.go` at v2.8.3): netem or tbf at the root; with targets below the
//! fourth band of a prio, to which rules of iptables lead what goes to them. Also in a `Schedule` and in a
//! `Workflow`.

mod experiment;
mod netem;
mod targets;

use crate::foreign::ForeignPolicy;
use crate::kubernetes::{self, Findings};
use crate::short::Problem;
use crate::yaml::{YamlEntry, YamlNode};
use experiment::Experiment;

/// The most experiments of a file.
const MOST_EXPERIMENTS: usize = 256;

/// Are these the lines of such a file, trimmed and without comments?
pub fn is_experiment(lines: &[&str]) -> bool {
    let is = |line: &&str, key: &str, value: &str| {
        let word = line.strip_prefix(key).unwrap_or_default().trim();
        word.trim_matches(['"', '\'']) == value
    };
    let is_own = |line: &&str| line.contains("chaos-mesh.org/");
    let holds_others = |line: &&str| ["Schedule", "Workflow"].iter().any(|kind| is(line, "kind:", kind));
    let has_one = |line: &&str| line.trim_start_matches("- ").starts_with("networkChaos:");
    lines.iter().any(|line| is(line, "kind:", "NetworkChaos"))
        || lines.iter().any(is_own) && lines.iter().any(holds_others) && lines.iter().any(has_one)
}

/// Reads a file: the commands that its experiments come to, each in the pod that it is for.
///
/// ```
/// use tidegate_syntax::chaos_mesh;
///
/// let file = "apiVersion: chaos-mesh.org/v1alpha1\nkind: NetworkChaos\nmetadata: {name: slow}\nspec:\n  \
///             action: delay\n  mode: all\n  selector: {namespaces: [shop]}\n  \
///             delay: {latency: 90ms, jitter: 5ms}\n";
/// let policy = chaos_mesh::read(file).unwrap();
/// let words = policy.commands[0].words.join(" ");
/// assert_eq!(words, "qdisc add dev eth0 root handle 1: netem delay 90ms 5ms");
/// ```
///
/// # Errors
/// Everything that Kubernetes, Chaos Mesh or tc would refuse, in the order of the file.
pub fn read(text: &str) -> Result<ForeignPolicy, Vec<Problem>> {
    let objects = kubernetes::objects(text)?;
    let mut found = Findings::default();
    let mut policy = ForeignPolicy::default();
    let mut specs = Vec::new();
    for object in &objects {
        specs.extend(specs_of(object, &mut found));
    }
    for (at, (entry, name)) in specs.iter().enumerate() {
        if at == MOST_EXPERIMENTS {
            found.wrong(
                entry.span,
                format!("there are more than {MOST_EXPERIMENTS} experiments"),
                "divide the file",
            );
            break;
        }
        if let Some(experiment) = Experiment::read(entry, &mut found) {
            experiment.carry_out((at, name), &mut policy, &mut found);
        }
    }
    found.judge(
        text,
        policy,
        ("the file has no experiment with networks", "name one with kind: NetworkChaos"),
    )
}

/// The specs of experiments in an object, each with the object's name or its own.
fn specs_of<'n>(object: &'n YamlNode, found: &mut Findings) -> Vec<(&'n YamlEntry, &'n str)> {
    const GROUP: &str = "chaos-mesh.org/v1alpha1";
    let (kind, version) = (object.get("kind"), object.get("apiVersion"));
    let kind_text = kind.and_then(YamlNode::text).unwrap_or_default();
    let is_own = |text: &str| text.starts_with("chaos-mesh.org/") || text.starts_with("pingcap.com/");
    let name = kubernetes::name_of(object);
    match version {
        _ if kind_text == "NetworkChaos" => {}
        Some(version) if version.text().is_some_and(is_own) => {}
        _ => {
            let what = "this object is no experiment of Chaos Mesh, and left out";
            found.skip(object.span, what, "read are NetworkChaos, and Schedule and Workflow with one");
            return Vec::new();
        }
    }
    if version.and_then(YamlNode::text) != Some(GROUP) {
        let span = version.or(kind).map_or(object.span, |node| node.span);
        let what = format!("Chaos Mesh 2 knows apiVersion: {GROUP} alone");
        found.wrong(span, what, "correct it; experiments of versions before 1.0 are not read");
    }
    let Some(spec) = object.entry("spec") else {
        found.wrong(object.span, format!("{kind_text} {name} has no spec"), "write spec: with what it does");
        return Vec::new();
    };
    let embedded = |table: &'n YamlNode| table.entry("networkChaos");
    match kind_text {
        "NetworkChaos" => vec![(spec, name)],
        "Schedule" => {
            let what = "the experiment is put on again and again (schedule), and then taken off";
            let inner = embedded(&spec.node);
            if inner.is_some() {
                found.note(spec.span, what, "what follows holds while it is on");
            } else {
                let what = format!("Schedule {name} is of another kind, and left out");
                found.skip(spec.span, what, "read is type: NetworkChaos");
            }
            inner.map(|entry| (entry, name)).into_iter().collect()
        }
        "Workflow" => {
            let what = "when each template of the workflow is carried out is not modelled";
            found.note(spec.span, what, "what follows holds while it is");
            let templates = spec.node.get("templates").map(YamlNode::items).unwrap_or_default();
            let inner = |template: &'n YamlNode| {
                let entry = embedded(template).or_else(|| embedded(template.get("schedule")?))?;
                Some((entry, template.get("name").and_then(YamlNode::text).unwrap_or(name)))
            };
            templates.iter().filter_map(inner).collect()
        }
        _ => {
            let what = format!("{kind_text} {name} is no experiment with networks, and left out");
            found.skip(kind.map_or(object.span, |node| node.span), what, "read is kind: NetworkChaos");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
