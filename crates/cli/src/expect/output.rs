//! The results of expectations: for people, as TAP, as JUnit's XML, as JSON.

use serde_json::json;
use std::fmt::Write as _;
use tidegate_text::line as one_line;
use tidegate_trial::expect::{TestResults, Verdict};

/// A line each, and a count.
pub(super) fn text(all: &[TestResults<'_>], show: bool) -> String {
    let mut out = String::new();
    for results in all {
        // Names and expectations are a stranger's: with line breaks they would look like verdicts.
        let _ = writeln!(out, "{}", one_line(&results.suite.path.display().to_string()));
        for (number, verdict) in &results.verdicts {
            let case = &results.suite.cases[number - 1];
            let word = if verdict.passed { "ok    " } else { "FAILED" };
            let _ =
                writeln!(out, "  {word} {number}  {}  ({})", one_line(&case.text), one_line(&verdict.found));
            if !verdict.passed {
                let _ = writeln!(out, "           line {}; see: {}", case.line, one_line(&verdict.again));
            }
        }
        if let Some(trial) = results.trial.as_ref().filter(|_| show) {
            let _ = write!(out, "\n{}\n", tidegate_report::text(trial));
        }
    }
    let (waiting, failed) = count(all);
    let _ = writeln!(out, "{} held, {failed} failed", waiting);
    out
}

/// How many held, and how many did not.
pub(super) fn count(all: &[TestResults<'_>]) -> (usize, usize) {
    let verdicts = all.iter().flat_map(|results| &results.verdicts);
    let waiting = verdicts.clone().filter(|(_, verdict)| verdict.passed).count();
    (waiting, verdicts.count() - waiting)
}

/// All verdicts, with the file and words of each.
fn each<'j>(all: &'j [TestResults<'j>]) -> impl Iterator<Item = (String, &'j str, usize, &'j Verdict)> {
    all.iter().flat_map(|results| {
        let file = results.suite.path.display().to_string();
        results.verdicts.iter().map(move |(number, verdict)| {
            let case = &results.suite.cases[number - 1];
            (file.clone(), case.text.as_str(), case.line, verdict)
        })
    })
}

/// Test Anything Protocol, version 13.
pub(super) fn tap(all: &[TestResults<'_>]) -> String {
    let (waiting, failed) = count(all);
    let mut out = format!("TAP version 13\n1..{}\n", waiting + failed);
    for (number, (file, text, line, verdict)) in (1..).zip(each(all)) {
        let word = if verdict.passed { "ok" } else { "not ok" };
        // `#` begins a directive.
        let _ = writeln!(out, "{word} {number} - {}", one_line(&text.replace('#', "\\#")));
        if !verdict.passed {
            let (at, found, again) = (format!("{file}:{line}"), &verdict.found, &verdict.again);
            let quoted = |text: &str| serde_json::Value::from(text).to_string();
            let _ = writeln!(
                out,
                "  ---\n  at: {}\n  found: {}\n  see: {}\n  ...",
                quoted(&at),
                quoted(found),
                quoted(again)
            );
        }
    }
    out
}

/// JUnit's XML, as CI systems read it.
pub(super) fn junit(all: &[TestResults<'_>]) -> String {
    let escape = tidegate_report::chart::escape;
    let (waiting, failed) = count(all);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tidegate\" tests=\"{}\" \
        failures=\"{failed}\">\n",
        waiting + failed
    );
    for results in all {
        let failures = results.verdicts.iter().filter(|(_, verdict)| !verdict.passed).count();
        let file = escape(&results.suite.path.display().to_string());
        let tests = results.verdicts.len();
        let _ = writeln!(out, "  <testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failures}\">");
        for (number, verdict) in &results.verdicts {
            let case = &results.suite.cases[number - 1];
            let (name, line) = (escape(&case.text), case.line);
            let _ = write!(
                out,
                "    <testcase classname=\"{file}\" name=\"{name}\" file=\"{file}\" line=\"{line}\""
            );
            if verdict.passed {
                let _ = writeln!(out, "/>");
            } else {
                let (found, again) = (escape(&verdict.found), escape(&verdict.again));
                let _ =
                    writeln!(out, ">\n      <failure message=\"{found}\">{again}</failure>\n    </testcase>");
            }
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// The form of the document.
const FORM: u32 = 2;

/// Everything, as one document.
pub(super) fn document(all: &[TestResults<'_>]) -> String {
    let (waiting, failed) = count(all);
    let cases = each(all).map(|(file, text, line, verdict)| {
        json!({
            "file": file,
            "line": line,
            "assertion": text,
            "holds": verdict.passed,
            "found": verdict.found,
            "command": verdict.again,
        })
    });
    let document = json!({ "tidegate_test": FORM, "held": waiting, "failed": failed, "assertions": cases.collect::<Vec<_>>() });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::Rate;
    use tidegate_trial::TrialSettings;
    use tidegate_trial::expect::{Case, Suite, expectation};

    #[test]
    fn markup_and_directives_in_words_stay_words() {
        let settings = TrialSettings::new("a.sh", Rate::bits(1_000_000), Rate::bits(1_000_000));
        let text = "ping: p95 < 5 ms while 1 upload";
        let case = Case {
            text: "a < b & \"c\" # TODO".into(),
            line: 3,
            expected: expectation(text, &Default::default()).expect(text),
        };
        let suite = Suite { path: "x.toml".into(), settings, cases: vec![case] };
        let verdict = Verdict { passed: false, found: "7 \"ms\"".into(), again: "tidegate <again>".into() };
        let all = [TestResults { suite: &suite, verdicts: vec![(1, verdict)], trial: None }];
        assert_eq!(
            tap(&all),
            "TAP version 13\n1..1\nnot ok 1 - a < b & \"c\" \\# TODO\n  ---\n  at: \"x.toml:3\"\n  \
             found: \"7 \\\"ms\\\"\"\n  see: \"tidegate <again>\"\n  ...\n"
        );
        let xml = junit(&all);
        assert!(
            xml.contains("name=\"a &lt; b &amp; &quot;c&quot; # TODO\" file=\"x.toml\" line=\"3\">"),
            "{xml}"
        );
        assert!(
            xml.contains("<failure message=\"7 &quot;ms&quot;\">tidegate &lt;again&gt;</failure>"),
            "{xml}"
        );
    }
}
