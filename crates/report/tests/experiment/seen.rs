//! The pages in a browser, at a telephone's and a desk's width, light and dark.

use crate::browser::{browser, complaints, look};
use crate::fixture::experiment::experiment;
use tidegate_analysis::experiment::{Comparing, Side};
use tidegate_report::experiment::{comparison_page, page};

#[test]
fn as_people_see_it() {
    let Some(browser) = browser() else {
        println!("SKIPPED: no chromium in PATH; the pages of experiments were not looked at");
        return;
    };
    let mut other = experiment();
    other.runs.retain(|run| run.load != "empty");
    for answer in other.runs.iter_mut().flat_map(|run| &mut run.probes).flat_map(|probe| &mut probe.answers) {
        answer.1 = answer.1.map(|took| took + 7_000_000);
    }
    let sides = [("before", experiment()), ("after", other)];
    let sides = sides.map(|(label, experiment)| Side { label: label.into(), experiment });
    let pages =
        [("experiment", page(&experiment())), ("comparison", comparison_page(&Comparing::new(&sides)))];
    let read = [
        "\"17–18 s · no policy 868 ms, 1 lost · token bucket 67.8 ms · HTB and fq_codel 25.3 ms\"",
        "\"17–18 s · before 868 ms, 1 lost · after 875 ms, 1 lost\"",
    ];
    for ((name, page), read) in pages.iter().zip(read) {
        for (width, dark) in [(390, false), (1280, true)] {
            let found = look(&browser, &format!("{name}-{width}"), page, width, dark);
            assert_eq!(complaints(&found), Vec::<String>::new(), "{name}, {width} pixels");
            assert_eq!((&found["width"], &found["dark"]), (&width.into(), &dark.into()));
            assert_eq!(found["read_out"].to_string(), read, "{name}");
        }
    }
}
