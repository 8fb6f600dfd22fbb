//! The pictures of the failures of the field in `docs/img/gym`, which `docs/gym.md` shows: each is what
//! `tidegate gym tidegate --failures --detail NAME -o NAME.svg` draws.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_gym::{ControllerChoice, NAMED_FAILURES, run_case};
use tidegate_report::chart::{Theme, file};

/// The most bytes of a picture: all are in the repository.
const MOST: usize = 24_000;
/// Pixels of its width, as the command has it.
const WIDTH: f64 = 720.0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn picture(at: usize) -> String {
    let case = NAMED_FAILURES[at].case();
    let mut controller = ControllerChoice::Own.build(&case).expect("a controller");
    let run = run_case(&case, controller.as_mut(), true).expect("a run");
    let record = run.record.expect("a record");
    file(
        &tidegate_report::gym::case_drawing(NAMED_FAILURES[at].name, "tidegate", &record),
        WIDTH,
        Theme::Light,
    )
}

#[test]
fn the_pictures_of_the_failures_are_what_is_drawn_today() {
    if skip() {
        return;
    }
    let folder = root().join("docs/img/gym");
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let paper = fs::read_to_string(root().join("docs/gym.md")).expect("docs/gym.md");
    let (mut wrong, mut names) = (Vec::new(), BTreeSet::new());
    for (at, failure) in NAMED_FAILURES.iter().enumerate() {
        let drawn = picture(at);
        assert!(drawn.len() < MOST, "{}: {} bytes", failure.name, drawn.len());
        let name = format!("{}.svg", failure.name);
        if !paper.contains(&format!("(img/gym/{name})")) {
            wrong.push(format!("docs/gym.md does not show {name}"));
        }
        let path = folder.join(&name);
        if bless {
            fs::create_dir_all(&folder).expect("docs can be written");
            fs::write(&path, &drawn).expect("docs can be written");
        } else if fs::read_to_string(&path).unwrap_or_default() != drawn {
            wrong.push(format!("docs/img/gym/{name} is not what is drawn today"));
        }
        names.insert(name);
    }
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !names.contains(&name) {
            wrong.push(format!("docs/img/gym/{name} is of no failure"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n(TIDEGATE_BLESS=1 draws them again)");
}

/// The command draws the same; one picture is of one case.
#[test]
fn a_user_draws_the_same_picture() {
    if skip() {
        return;
    }
    let place = Place::new("gym-picture");
    let gym = |words: &[&str]| {
        let mut command = Command::new(TIDEGATE);
        command.args(["gym", "tidegate", "--failures"]).args(words).current_dir(&place.0);
        command.output().expect("tidegate runs")
    };
    let output = gym(&["--detail", "jitter", "-o", "jitter.svg", "-o", "jitter.png"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let at = NAMED_FAILURES.iter().position(|failure| failure.name == "jitter").expect("it is there");
    assert_eq!(fs::read_to_string(place.0.join("jitter.svg")).expect("a picture"), picture(at));
    assert!(fs::read(place.0.join("jitter.png")).expect("a picture").starts_with(b"\x89PNG"));
    let none = gym(&["-o", "all.svg"]);
    let said = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(2), "{said}");
    assert!(said.contains("a picture shows one case: name it with --detail"), "{said}");
}
