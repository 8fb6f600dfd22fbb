//! Experiments of Chaos Mesh (`kind: NetworkChaos`) as the commands that its daemon runs in a pod.
//!
//! Followed is Chaos Mesh 2.8 (github.com/chaos-mesh/chaos-mesh, Apache 2.0; `pkg/chaosdaemon/tc_server.go` and
//! `api/v1alpha1/networkchaos_types.go` at v2.8.3): netem or tbf at the root; with targets below the fourth band of
//! a prio, to which rules of iptables lead what goes to them. Also in a `Schedule` and in a `Workflow`.

mod experiment;
mod netem;
mod targets;

use crate::foreign::ForeignPolicy;
use crate::kubernetes::{self, Findings};
use crate::nft::Span;
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
    let is_chaos = |line: &&str| line.contains("chaos-mesh.org/");
    lines.iter().any(|line| is(line, "kind:", "NetworkChaos"))
        || lines.iter().any(is_chaos)
            && lines.iter().any(|line| line.trim_start_matches("- ").starts_with("networkChaos:"))
}

/// Reads a file: the commands that its experiments come to, each in the pod that it is for.
///
/// ```
/// use tidegate_syntax::chaos_mesh;
///
/// let file = "apiVersion: chaos-mesh.org/v1alpha1\nkind: NetworkChaos\nmetadata: {name: slow}\nspec:\n  \
///             action: delay\n  mode: all\n  selector: {namespaces: [shop]}\n  delay: {latency: 90ms, jitter: 5ms}\n";
/// let policy = chaos_mesh::read(file).unwrap();
/// let words = policy.commands[0].words.join(" ");
/// assert_eq!(words, "qdisc add dev eth0 root handle 1: netem delay 90ms 5ms");
/// ```
///
/// # Errors
/// Everything that Kubernetes, Chaos Mesh or tc would refuse, in the order of the file.
pub fn read(text: &str) -> Result<ForeignPolicy, Vec<Problem>> {
    let mut found = Findings::default();
    let objects = match kubernetes::objects(text) {
        Ok(objects) => objects,
        Err(problems) => return Err(Findings { problems, ..found }.sorted(text)),
    };
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
    if policy.commands.is_empty() && found.problems.is_empty() {
        let notes = std::mem::take(&mut found.notes);
        found.problems = notes;
        if found.problems.is_empty() {
            let begin = Span { line: 1, from: 1, to: 1 };
            found.wrong(
                begin,
                "the file has no experiment with networks",
                "name one with kind: NetworkChaos",
            );
        }
    }
    if !found.problems.is_empty() {
        return Err(found.sorted(text));
    }
    found.notes.sort_by_key(|note| note.span.line);
    policy.notes = found.notes;
    Ok(policy)
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
            found.note(
                object.span,
                "this object is no experiment of Chaos Mesh, and left out",
                "nothing is to be done",
            );
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
                found.note(
                    spec.span,
                    format!("Schedule {name} is of another kind, and left out"),
                    "nothing is to be done",
                );
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
            found.note(kind.map_or(object.span, |node| node.span), what, "nothing is to be done");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
