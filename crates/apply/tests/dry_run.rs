//! What would be done, as a program would ask: in a network namespace that the test makes. Where none can be
//! made, the tests are skipped by name.

use std::cell::RefCell;
use std::path::PathBuf;
use tidegate_apply::{ApplyOptions, BackendChoice, ErrorKind, Notice};
use tidegate_netlink::Kernel;
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::netlink::Links;

/// A batch for `wan0`, as a file that goes with this.
struct Batch(PathBuf);

impl Batch {
    fn new(name: &str, text: &str) -> Batch {
        let path = std::env::temp_dir().join(format!("tidegate-apply-{name}-{}.batch", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        Batch(path)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn place() -> Option<NamespaceThread> {
    match NamespaceThread::new("dry-run") {
        Ok(place) => Some(place),
        Err(error) => {
            eprintln!("SKIPPED: no network namespace can be made here ({error})");
            None
        }
    }
}

#[test]
fn a_plan_is_printed_and_nothing_is_changed() {
    let Some(place) = place() else { return };
    let batch = Batch::new("plan", "qdisc add dev wan0 root handle 7: pfifo limit 77\n");
    let options = ApplyOptions {
        backend: BackendChoice::Kernel,
        dry_run: true,
        force: true,
        ..ApplyOptions::of(vec![batch.0.clone()])
    };
    let (dump, notices, qdiscs) = place
        .go(move || {
            Links::open().and_then(|mut links| links.create_like("wan0", "dummy", 1000)).expect("a device");
            let notices = RefCell::new(Vec::new());
            let report = |notice: Notice| notices.borrow_mut().push(notice);
            let wanted = tidegate_apply::read(&options, &report).expect("a policy");
            assert_eq!(wanted.devices(), ["wan0"]);
            let dump = tidegate_apply::apply(&options, &wanted, &report).expect("a plan");
            let installed = Kernel::open().expect("netlink").installed("wan0").expect("it is there").0;
            (dump, notices.into_inner(), installed.qdiscs)
        })
        .expect("the namespace is there");
    assert_eq!((dump["applied"].as_bool(), dump["backend"].as_str()), (Some(false), Some("kernel")));
    assert!(matches!(&notices[0], Notice::Backend { devices, .. } if devices == &["wan0"]), "{notices:?}");
    let plan = notices.iter().find(|notice| matches!(notice, Notice::Plan(_))).expect("a plan").to_string();
    assert!(plan.contains("+ tc qdisc add dev wan0 root handle 7: pfifo limit 77\n"), "{plan}");
    assert!(qdiscs.iter().all(|qdisc| qdisc.handle.is_none()), "what nobody asked for: {qdiscs:?}");
}

#[test]
fn a_failed_apply_has_its_kind_of_failure() {
    let Some(place) = place() else { return };
    let batch = Batch::new("kinds", "qdisc add dev nowhere0 root pfifo\n");
    let file = batch.0.clone();
    let kinds = place
        .go(move || {
            let kind = |options: ApplyOptions| {
                tidegate_apply::read(&options, &|_| {}).map(drop).expect_err("no").kind()
            };
            let missing = kind(ApplyOptions::of(vec!["/nowhere/at/all.batch".into()]));
            let device = kind(ApplyOptions::of(vec![file]));
            let nothing = tidegate_apply::revert(None, &|_| {}).expect_err("nothing is applied").kind();
            (missing, device, nothing)
        })
        .expect("the namespace is there");
    assert_eq!(kinds, (ErrorKind::Policy, ErrorKind::Device, ErrorKind::NotApplied));
}
