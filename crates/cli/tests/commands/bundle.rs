//! `tidegate bundle`: the same results to the byte in another directory, changes that are named, and what no
//! bundle may hold.

use crate::common;

use common::{Place, TIDEGATE, schemas, skip};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

fn tidegate(dir: &Path, words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).current_dir(dir).output().expect("tidegate runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn must_end(output: &Output, code: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    (out, err)
}

/// A name that a shell would misread, in a directory beside the scenario's.
const SCRIPT: &str = "it's a $HOME; `x`.sh";

/// A sweep whose policy is a script in another directory, which reads its settings beside itself.
fn filled(name: &str) -> Place {
    let place = Place::new(name);
    for dir in ["sc", "lib"] {
        fs::create_dir_all(place.0.join(dir)).expect("a directory");
    }
    place.file(
        "sc/s.toml",
        format!(
            "title = 'A $(test) of `text`'\nduration = '1s'\nwarm-up = '1s'\n[values]\nrate = '2mbit'\n[home]\n\
            up = '${{rate}}'\ndown = '9mbit'\n[policies.none]\n[policies.fair]\ngateway = \"../lib/{SCRIPT}\"\n\
            [[traffic]]\ntcp = 'a -> server'\n[[traffic]]\nping = 'b -> server'\nevery = '50ms'\n[sweep.set]\n\
            rate = ['1mbit', '4mbit']\n"
        ),
    );
    place.script(
        &format!("lib/{SCRIPT}"),
        "#!/bin/sh\n. \"$(dirname \"$0\")/settings.sh\"\ntc qdisc add dev eth0 root $KIND\n",
    );
    place.file("lib/settings.sh", "KIND=fq_codel\n");
    place
}

fn sha256sum(dir: &Path, names: &[&str]) -> String {
    let output = Command::new("sha256sum").args(names).current_dir(dir).output().expect("sha256sum runs");
    text(&output.stdout)
}

/// Writes the sum of a changed file into the list, as one who means harm would.
fn sign(dir: &Path, name: &str) {
    let list = fs::read_to_string(dir.join("SHA256SUMS")).expect("a list");
    let others: String = list
        .lines()
        .filter(|line| !line.ends_with(&format!("  {name}")))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(dir.join("SHA256SUMS"), others + &sha256sum(dir, &[name])).expect("written");
}

#[test]
fn a_bundle_gives_the_same_bytes_in_another_directory() {
    if skip() {
        return;
    }
    let place = filled("bundle");
    let words =
        ["bundle", "sc/s.toml", "--repeats", "2", "--plot", "rate,ping.p95", "--author", "Doe, Jane", "-o"];
    let (out, _) = must_end(&tidegate(&place.0, &[&words[..], &["paper"]].concat()), 0);
    assert!(out.starts_with(
        "paper has the scenario and 2 files that it reads, and 4 results of 8 runs with 2 seeds\n"
    ));
    // Where it was made is gone.
    for dir in ["sc", "lib"] {
        fs::remove_dir_all(place.0.join(dir)).expect("removed");
    }
    fs::create_dir(place.0.join("else where")).expect("a directory");
    let moved = place.0.join("else where/it's");
    fs::rename(place.0.join("paper"), &moved).expect("moved");
    let names =
        ["README.md", "CITATION.cff", "provenance.json", "results/rows.csv", "figures/01-rate-ping.p95.pdf"];
    assert!(names.iter().all(|name| moved.join(name).is_file()));
    assert!(
        moved.join(format!("inputs/lib/{SCRIPT}")).is_file()
            && moved.join("inputs/lib/settings.sh").is_file()
    );
    let (out, _) = must_end(&tidegate(&place.0, &["bundle", "--check", "else where/it's"]), 0);
    assert_eq!(
        out,
        "else where/it's: the 11 files listed are as they were\n4 results made again: the same to the byte\n"
    );
    let check = must_end(&tidegate(&moved, &["bundle", "--check", ".", "--json"]), 0).0;
    let document = schemas::document(check.as_bytes());
    assert_eq!((&document["results"], &document["same_program"]), (&4.into(), &true.into()));
    schemas::must_fit(
        &serde_json::from_slice(&fs::read(moved.join("provenance.json")).expect("there")).expect("JSON"),
    );
    // The script does the same, from anywhere, with tools that every computer has.
    let script = |dir: &Path, words: &[&str]| {
        Command::new("sh")
            .arg(dir.join("reproduce.sh"))
            .args(words)
            .env("TIDEGATE", TIDEGATE)
            .env("TMPDIR", &place.0)
            .current_dir(&place.0)
            .output()
            .expect("sh runs")
    };
    let (out, err) = must_end(&script(&moved, &["-new dir"]), 0);
    assert!(out == "All 4 results are the same to the byte\n" && err.is_empty(), "{out}{err}");
    // Without a name nothing is left behind.
    let entries = || fs::read_dir(&place.0).expect("there").count();
    let before = entries();
    must_end(&script(&moved, &[]), 0);
    assert_eq!(entries(), before);
    let same = ["results/rows.csv", "results/summary.json", "figures/01-rate-ping.p95.pdf"];
    assert_eq!(sha256sum(&moved, &same), sha256sum(&place.0.join("-new dir"), &same));
    // A changed input is named, and nothing is run.
    let input = moved.join("inputs/lib/settings.sh");
    fs::write(&input, "KIND=sfq\n").expect("written");
    let (out, _) = must_end(&tidegate(&moved, &["bundle", "--check", "."]), 1);
    assert_eq!(
        out,
        "inputs/lib/settings.sh: it changed since the bundle was made\n.: 1 fault; nothing was run\n"
    );
    let (_, err) = must_end(&script(&moved, &[]), 1);
    assert!(err.contains("inputs/lib/settings.sh: FAILED") && err.contains("was changed since"), "{err}");
    assert_eq!(entries(), before);
    // The document has the sum and the length, too.
    sign(&moved, "inputs/lib/settings.sh");
    let (out, _) = must_end(&tidegate(&moved, &["bundle", "--check", "."]), 1);
    let stated =
        "inputs/lib/settings.sh: provenance.json has another SHA-256 or length of it, or does not name it\n";
    assert_eq!(out, format!("{stated}.: 1 fault; nothing was run\n"));
    // Where that was changed as well, the results differ.
    let path = moved.join("provenance.json");
    let mut provenance: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).expect("there")).expect("JSON");
    let sum = sha256sum(&moved, &["inputs/lib/settings.sh"]);
    for file in provenance["inputs"].as_array_mut().expect("a list") {
        if file["name"] == "inputs/lib/settings.sh" {
            (file["sha256"], file["bytes"]) = (sum[..64].into(), 9.into());
        }
    }
    let rewrite = |document: &serde_json::Value| {
        fs::write(&path, document.to_string()).expect("written");
        sign(&moved, "provenance.json");
    };
    for (member, value) in [("sweep", "x".into()), ("runs", 9.into()), ("seeds", vec![1].into())] {
        let mut other: serde_json::Value = provenance.clone();
        other[member] = value;
        rewrite(&other);
        let (out, _) = must_end(&tidegate(&moved, &["bundle", "--check", "."]), 1);
        assert!(
            out.starts_with(
                "provenance.json: its scenario, sweep, runs or seeds are not those of the files\n"
            ),
            "{member}: {out}"
        );
    }
    rewrite(&provenance);
    let output = tidegate(&moved, &["bundle", "--check", "."]);
    let (out, err) = must_end(&output, 1);
    assert!(out.contains("results/rows.csv: made again, it is another result\n"), "{out}");
    let kept = err.trim().rsplit_once(" are in ").expect("a directory").1;
    fs::remove_dir_all(kept).expect("removed");
    let (_, err) = must_end(&script(&moved, &[]), 1);
    assert!(err.contains("results/rows.csv: FAILED") && err.contains("results differ"), "{err}");
    must_end(&tidegate(&moved, &["bundle", "--check", ".", "--sums"]), 0);
}

/// A scenario without a sweep has its document and its page as well; one of the program's own has its text.
#[test]
fn a_scenario_without_a_sweep_is_one_case() {
    let place = Place::new("bundle-plain");
    let words = ["bundle", "rfc7928/bursts", "--policy", "codel", "--duration", "1s", "--json", "-o", "b"];
    let document = schemas::document(must_end(&tidegate(&place.0, &words), 0).0.as_bytes());
    assert_eq!((document["results"].as_array().map(Vec::len), &document["seeds"][0]), (Some(4), &1.into()));
    assert!(
        place.0.join("b/inputs/bursts.toml").is_file() && place.0.join("b/results/experiment.html").is_file()
    );
    let citation = fs::read_to_string(place.0.join("b/CITATION.cff")).expect("there");
    assert!(citation.contains("authors:\n  - name: Anonymous\n"), "{citation}");
    let (out, _) = must_end(&tidegate(&place.0, &["bundle", "--check", "b"]), 0);
    assert!(out.ends_with("4 results made again: the same to the byte\n"), "{out}");
    // An assertion that fails is a result.
    place.file(
        "f.toml",
        "duration = '1s'\n[home]\nup = '2mbit'\ndown = '9mbit'\n[policies.none]\n[[traffic]]\nping = 'a -> server'\n\
        [[expect]]\nid = 'e'\nwhat = 'a bound'\nfigure = 'ping.median'\nof = 'none'\nwithin = ['9s', '10s']\n",
    );
    let (out, _) = must_end(&tidegate(&place.0, &["bundle", "f.toml", "-o", "f"]), 0);
    assert!(out.contains("An assertion of the scenario fails"), "{out}");
    must_end(&tidegate(&place.0, &["bundle", "--check", "f"]), 0);
}

#[test]
fn what_no_bundle_can_hold_is_refused() {
    if skip() {
        return;
    }
    let place = filled("bundle-refused");
    let scenario = fs::read_to_string(place.0.join("sc/s.toml")).expect("there");
    let with = |name: &str, script: &str| {
        place.file(name, scenario.replace(&format!("\"../lib/{SCRIPT}\""), &format!("'{script}'")));
    };
    let lib = place.0.join("lib");
    symlink(lib.join(SCRIPT), lib.join("link.sh")).expect("a link");
    with("sc/link.toml", "../lib/link.sh");
    with("sc/absolute.toml", &lib.join("settings.sh").display().to_string());
    place.script("lib/a\u{202e}b.sh", "tc qdisc add dev eth0 root sfq\n");
    with("sc/hidden.toml", "../lib/a\u{202e}b.sh");
    symlink("sc/s.toml", place.0.join("s.toml")).expect("a link");
    fs::create_dir(place.0.join("full")).expect("a directory");
    place.file("full/mine.txt", "x");
    symlink("full", place.0.join("to")).expect("a link");
    for (line, why) in [
        ("sc/link.toml -o b", "sc/../lib/link.sh is reached through a symbolic link"),
        ("sc/absolute.toml -o b", "settings.sh is an absolute path, which another computer does not have"),
        ("sc/hidden.toml -o b", "a\\u{202e}b.sh` has control characters or invisible ones"),
        ("s.toml -o b", "s.toml is reached through a symbolic link"),
        ("sc/s.toml -o full", "cannot write full: the directory is not empty"),
        ("sc/s.toml -o to", "cannot write to: it is a symbolic link"),
        ("sc/s.toml -o sc/s.toml", "it is a file"),
        ("sc/s.toml -o no/such", "there is no directory no; make it first"),
        ("sc/s.toml -o -", "several files are written; name a directory"),
        ("sc/s.toml --set rate=1..9 -o b", "needs the number of its values"),
        ("sc/none.toml -o b", "there is no such file"),
        (
            "sc/s.toml --plot rtt,ping.p95 -o b",
            "--plot rtt,ping.p95: no column is called rtt: there are values.rate",
        ),
        ("sc/s.toml --plot ping.p9x -o b", "--plot ping.p9x: no run has the figure ping.p9x"),
        ("sc/s.toml --plot ping.p95 --by rtt -o b", "no column is called rtt"),
        ("sc/s.toml --plot ping.p95 --where rate=7mbit -o b", "no run is left"),
    ] {
        let words: Vec<&str> = ["bundle"].into_iter().chain(line.split(' ')).collect();
        let (_, err) = must_end(&tidegate(&place.0, &words), 2);
        assert!(err.contains(why), "{line}\n{err}");
    }
    assert!(!place.0.join("b").exists() && !place.0.join("b.unfinished").exists());
    assert_eq!(fs::read_to_string(place.0.join("full/mine.txt")).expect("there"), "x");
    // A directory in the way is not touched; an unfinished one of the same job goes on.
    fs::create_dir(place.0.join("b.unfinished")).expect("a directory");
    let (_, err) = must_end(&tidegate(&place.0, &["bundle", "sc/s.toml", "-o", "b"]), 2);
    assert!(err.contains("b.unfinished is of another bundle, or of other inputs; delete it"), "{err}");
    // What a script names elsewhere is said.
    let elsewhere = place.file("sc/elsewhere.sh", "KIND=sfq\n").display().to_string();
    place.script("lib/far.sh", format!("#!/bin/sh\n. {elsewhere}\ntc qdisc add dev eth0 root $KIND\n"));
    with("sc/far.toml", "../lib/far.sh");
    let (out, _) = must_end(&tidegate(&place.0, &["bundle", "sc/far.toml", "-o", "far"]), 0);
    assert!(out.contains(&format!("files that are not in it: {elsewhere}. Where")), "{out}");
    // One that depends on the name of its directory does something else in the bundle.
    place.script(
        "lib/here.sh",
        "#!/bin/sh\ncase $0 in */inputs/*) K=sfq;; *) K=fq_codel;; esac\ntc qdisc add dev eth0 root $K\n",
    );
    with("sc/here.toml", "../lib/here.sh");
    let (_, err) = must_end(&tidegate(&place.0, &["bundle", "sc/here.toml", "-o", "here"]), 2);
    assert!(err.contains("from the bundle's inputs a policy comes to other commands"), "{err}");
    assert!(!place.0.join("here").exists());
}

/// A bundle from a stranger: nothing in it leads outside, and nothing is run but what a bundle has.
#[test]
fn hostile_bundles_are_refused() {
    if skip() {
        return;
    }
    let place = filled("bundle-hostile");
    must_end(&tidegate(&place.0, &["bundle", "sc/s.toml", "-o", "b"]), 0);
    let dir = place.0.join("b");
    let refused = |why: &str| {
        let (_, err) = must_end(&tidegate(&place.0, &["bundle", "--check", "b"]), 2);
        assert!(err.contains(why), "{err}");
        assert!(!err.contains('\u{1b}'), "{err}");
    };
    symlink("/etc/passwd", dir.join("inputs/x")).expect("a link");
    refused("`inputs/x` is a symbolic link, and a bundle has files only");
    fs::remove_file(dir.join("inputs/x")).expect("removed");
    fs::write(dir.join("inputs/\u{1b}[2J"), "").expect("written");
    refused("`inputs/\\x1b[2J` has control characters");
    fs::remove_file(dir.join("inputs/\u{1b}[2J")).expect("removed");
    let list = fs::read_to_string(dir.join("SHA256SUMS")).expect("a list");
    let canary = place.file("canary", "untouched");
    for (line, why) in [("../canary", "`../canary` is no path below"), ("/etc/passwd", "no path below")] {
        let sum = "0".repeat(64);
        fs::write(dir.join("SHA256SUMS"), format!("{list}{sum}  {line}\n")).expect("written");
        refused(why);
    }
    fs::write(dir.join("SHA256SUMS"), &list).expect("written");
    let provenance = fs::read_to_string(dir.join("provenance.json")).expect("there");
    for (from, to, why) in [
        ("\"results/rows.csv\"", "\"../canary\"", "`../canary` is no path below"),
        ("\"results/rows.csv\"", "\"/tmp/x\"", "`/tmp/x` is no path below"),
        ("\"-o\"", "\"--html\"", "--html is no option of a bundle's command"),
        ("\"sweep\",", "\"apply\",", "`apply` is not among sweep, results and sim"),
        ("\"tidegate_bundle\": 1", "\"tidegate_bundle\": 7", "it has form 7"),
    ] {
        assert!(provenance.contains(from), "{from}");
        fs::write(dir.join("provenance.json"), provenance.replace(from, to)).expect("written");
        sign(&dir, "provenance.json");
        refused(why);
    }
    fs::write(dir.join("provenance.json"), provenance).expect("written");
    fs::write(dir.join("SHA256SUMS"), &list).expect("written");
    // The script in it is not run.
    fs::write(dir.join("reproduce.sh"), format!("echo changed > {}\n", canary.display())).expect("written");
    sign(&dir, "reproduce.sh");
    fs::write(dir.join("added.txt"), "").expect("written");
    fs::remove_file(dir.join("README.md")).expect("removed");
    let (out, _) = must_end(&tidegate(&place.0, &["bundle", "--check", "b"]), 1);
    assert!(
        out.starts_with("README.md: it is listed in SHA256SUMS, and not there\nadded.txt: it is not listed"),
        "{out}"
    );
    fs::remove_file(dir.join("added.txt")).expect("removed");
    fs::write(dir.join("README.md"), "x").expect("written");
    sign(&dir, "README.md");
    must_end(&tidegate(&place.0, &["bundle", "--check", "b"]), 0);
    assert_eq!(fs::read_to_string(canary).expect("there"), "untouched");
    let (_, err) = must_end(&tidegate(&place.0, &["bundle", "--check", "sc"]), 2);
    assert!(err.contains("sc is no bundle: cannot read SHA256SUMS"), "{err}");
    let (_, err) = must_end(&tidegate(&place.0, &["bundle", "--check", "b", "--repeats", "2"]), 2);
    assert!(err.contains("--check takes a bundle as it is"), "{err}");
}
