//! The page as text: one file, nothing from elsewhere, nothing that a script could smuggle in.

use crate::fixture::trial::trial;
use crate::inert::{EVIL, loose};

use std::path::Path;
use tidegate_measure::trial::TrialDocument;
use tidegate_report::html;

/// Two million bytes: what a mail takes and a browser opens at once.
const MOST_BYTES: usize = 2_000_000;

#[test]
fn one_file_of_bearable_size() {
    let page = html(&trial());
    // For a reader of the page.
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixture.html"), &page)
        .expect("target/tmp is writable");
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    let foreign = [
        "http:",
        "https:",
        "url(//",
        "@import",
        "<link rel=\"stylesheet\"",
        "<iframe",
        "<img",
        "NaN",
        "inf%",
    ];
    let found: Vec<&str> = foreign.into_iter().filter(|word| page.contains(word)).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// A trial each text of which tries to get out of its place.
fn hostile() -> TrialDocument {
    let evil = |text: &mut String| text.push_str(EVIL);
    let mut trial = trial();
    [&mut trial.version, &mut trial.again, &mut trial.script, &mut trial.device].into_iter().for_each(evil);
    trial.verdict.iter_mut().chain(&mut trial.notes).for_each(evil);
    for run in &mut trial.runs {
        [&mut run.load, &mut run.title].into_iter().for_each(evil);
        run.probes
            .iter_mut()
            .for_each(|probe| [&mut probe.id, &mut probe.title, &mut probe.unit].into_iter().for_each(evil));
        run.flows.iter_mut().for_each(|flow| evil(&mut flow.title));
        run.classes.iter_mut().for_each(|class| [&mut class.id, &mut class.title].into_iter().for_each(evil));
        run.buffers.iter_mut().for_each(|buffer| evil(&mut buffer.title));
    }
    for node in &mut trial.tree {
        let texts = [
            &mut node.device,
            &mut node.id,
            &mut node.parent,
            &mut node.kind,
            &mut node.options,
            &mut node.title,
        ];
        texts.into_iter().chain(&mut node.filters).for_each(evil);
    }
    trial
}

#[test]
fn what_scripts_say_stays_text() {
    let page = html(&hostile());
    assert_eq!(loose(&page), Vec::<String>::new());
    assert!(page.contains("&lt;img src=x"), "it is shown as it was written");
    assert_eq!(page.matches("</script>").count(), 1, "the page's own");
    assert!(!page.contains("<!--") && !page.contains('\u{1b}'));
}

#[test]
fn whatever_is_missing() {
    let whole = trial();
    let change = |f: &dyn Fn(&mut TrialDocument)| {
        let mut trial = whole.clone();
        f(&mut trial);
        trial
    };
    let runs = |f: &dyn Fn(&mut tidegate_measure::trial::TrialRun)| {
        change(&|trial| trial.runs.iter_mut().for_each(f))
    };
    let cases = [
        ("nothing at all", TrialDocument::default()),
        ("no runs", change(&|trial| trial.runs.clear())),
        ("no tree", change(&|trial| trial.tree.clear())),
        ("no verdict", change(&|trial| trial.verdict.clear())),
        ("only with the policy", change(&|trial| trial.runs.retain(|run| run.policy))),
        ("only without it", change(&|trial| trial.runs.retain(|run| !run.policy))),
        ("one load", change(&|trial| trial.runs.truncate(2))),
        ("no link", change(&|trial| trial.link = Default::default())),
        ("no probes", runs(&|run| run.probes.clear())),
        ("nothing asked", runs(&|run| run.probes.iter_mut().for_each(|probe| probe.answers.clear()))),
        (
            "no answers",
            runs(&|run| run.probes.iter_mut().flat_map(|probe| &mut probe.answers).for_each(|a| a.1 = None)),
        ),
        (
            "answers at once",
            runs(&|run| {
                run.probes.iter_mut().flat_map(|probe| &mut probe.answers).for_each(|a| a.1 = Some(0))
            }),
        ),
        ("no flows", runs(&|run| run.flows.clear())),
        ("no classes", runs(&|run| run.classes.clear())),
        ("no series", runs(&|run| run.classes.iter_mut().for_each(|class| *class = Default::default()))),
        ("no buffers", runs(&|run| run.buffers.clear())),
        ("an empty window", runs(&|run| run.window = (0, 0))),
        ("a window turned round", runs(&|run| run.window = (9, 3))),
        ("no step", runs(&|run| run.step_ns = 0)),
    ];
    for (name, trial) in &cases {
        let page = html(trial);
        let bad: Vec<&str> = ["NaN", "inf", "-0 ", "None"]
            .into_iter()
            .filter(|word| figures_of(&page).contains(word))
            .collect();
        assert!(bad.is_empty() && page.ends_with("</html>\n"), "{name}: {bad:?}");
        let output = tidegate_report::text(trial);
        assert!(!output.contains("NaN") && output.contains("Again: "), "{name}: {output}");
    }
}

/// The page without its style and script, which have words of their own.
fn figures_of(page: &str) -> String {
    let after = page.split_once("</style>").map_or("", |(_, rest)| rest);
    after.split_once("<script>").map_or(after, |(body, _)| body).to_owned()
}

#[test]
fn many_classes() {
    let mut trial = trial();
    let (node, series) = (trial.tree[2].clone(), trial.runs[1].classes[1].clone());
    for n in 0..2000 {
        let id = format!("1:{n:x}f");
        trial.tree.push(tidegate_measure::trial::TreeNode { id: id.clone(), ..node.clone() });
        for run in trial.runs.iter_mut().filter(|run| run.policy) {
            run.classes.push(tidegate_measure::trial::ClassSeries { id: id.clone(), ..series.clone() });
        }
    }
    let page = html(&trial);
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    assert!(page.contains("more rows are left out here"));
}

#[test]
fn the_policy_allows_what_the_page_has_and_nothing_else() {
    for page in [html(&trial()), html(&hostile())] {
        let policy =
            page.split("Content-Security-Policy\" content=\"").nth(1).and_then(|rest| rest.split('"').next());
        let policy = policy.expect("a policy");
        assert!(
            !policy.contains("unsafe") && policy.starts_with("default-src 'none'; style-src 'sha256-"),
            "{policy}"
        );
        let inside = |tag: &str| {
            let parts: Vec<&str> = page.split(&format!("<{tag}>")).skip(1).collect();
            assert_eq!(parts.len(), 1, "one {tag}, without attributes");
            assert_eq!(page.matches(&format!("<{tag}")).count(), 1, "one {tag}");
            parts[0].split(&format!("</{tag}>")).next().expect("its end").to_owned()
        };
        for tag in ["style", "script"] {
            let hash = digest(&inside(tag));
            assert!(
                policy.contains(&format!("{tag}-src 'sha256-{hash}'")),
                "{tag}: {hash} is not in {policy}"
            );
        }
        // Neither is covered by a hash: browsers refuse style attributes, handlers and `javascript:` under
        // this policy.
        let body =
            page.split("<body>").nth(1).and_then(|rest| rest.split("<script>").next()).expect("a body");
        let tags = body.split('<').skip(1).filter_map(|rest| rest.split('>').next());
        for tag in tags {
            let attributes = tag.split(' ').skip(1).filter(|word| word.contains("=\""));
            for attribute in attributes {
                let refused = attribute.starts_with("style=") || attribute.starts_with("on");
                assert!(!refused && !attribute.contains("javascript:"), "<{tag}>");
            }
        }
    }
}

/// SHA-256 in base64, by coreutils' and no one's else: the page's own code is what is tested.
fn digest(text: &str) -> String {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let script =
        "sha256sum | cut -c1-64 | sed 's/../\\\\x&/g' | xargs -0 printf '%b' | head -c 32 | base64 -w0";
    let mut shell = Command::new("bash");
    let shell = shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().expect("bash");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("ended");
    String::from_utf8(output.stdout).expect("base64")
}
