//! Scripts with bash's words that another shell runs.

use crate::check::{found, table};
use crate::common;

use common::{Place, TIDEGATE, skip};
use std::path::Path;
use std::process::Command;

/// Whether scripts cannot be run here, or there is no dash.
fn skip_dash() -> bool {
    let has_dash = Path::new("/bin/dash").exists();
    if !has_dash {
        eprintln!("SKIPPED: no /bin/dash on this machine");
    }
    !has_dash || skip()
}

/// What dash runs in the background is a race where it may configure something: no command has a result then,
/// in every run the same.
#[test]
fn a_race_of_the_script_s_shell_is_refused() {
    if skip_dash() {
        return;
    }
    let place = Place::new("dialect-race");
    let text = "tc qdisc del dev eth0 root &>/dev/null\ntc qdisc add dev eth0 root fq_codel\n";
    let script = place.script("race.sh", format!("#!/bin/dash\n{text}"));
    for command in ["run", "check", "graph"] {
        let output = Command::new(TIDEGATE).arg(command).arg(&script).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{command}: {said}");
        assert!(said.contains("race.sh:2: `&>` is bash's") && said.contains("write `>FILE 2>&1`"), "{said}");
    }
    let bash = place.script("bash.sh", format!("#!/bin/bash\n{text}"));
    assert_eq!(table(&found(&bash)), "");
}

/// Where bash's words change no command, the script has its result, and a finding for each of them.
#[test]
fn words_of_bash_s_are_found() {
    if skip_dash() {
        return;
    }
    let place = Place::new("dialect-words");
    let text = "#!/bin/dash
command -v tc &>/dev/null || exit 1
if [[ -n x ]]; then echo x; else tc qdisc add dev eth0 root handle 1: htb default 1; fi
[ \"x\" == x ] && tc qdisc add dev eth1 root fq_codel
source ./lib.sh
for i in {1..3}; do tc class add dev eth0 parent 1: classid 1:1 htb rate ${i}mbit; done
IFS=$'\\n'
n=1; ((n++)); R=1; R+=mbit
[ \"$EUID\" = 0 ] || HOSTTYPE=x; echo $HOSTTYPE ${OSTYPE:-linux}
printf -v x a
exit 0
";
    let findings = found(&place.script("words.sh", text));
    let dialect: Vec<_> = findings
        .iter()
        .filter(|one| one["what"].as_str().is_some_and(|what| what.contains("bash")))
        .cloned()
        .collect();
    let expected = "3 warning C1 [[\n4 warning C1 ==\n5 warning C1 source\n8 warning C1 R+=\n2 warning C1 &>\n\
         6 warning C1 {1..3}\n7 warning C1 $'\n8 warning C1 ((\n9 warning C1 $EUID\n";
    assert_eq!(table(&dialect), expected, "{findings:?}");
}

/// So are options that only bash has, where the shell ends at them.
#[test]
fn an_option_that_only_bash_has_ends_a_script() {
    if skip_dash() {
        return;
    }
    let place = Place::new("dialect-option");
    for line in ["set -o pipefail", "f() { local -i x=1; }; f", "echo $((2**3))"] {
        let text = format!("#!/bin/dash\n{line}\ntc qdisc add dev eth0 root fq_codel\n");
        let output = Command::new(TIDEGATE).arg("check").arg(place.script("option.sh", text)).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(":2: ") && said.contains("let the first line name bash"), "{line}: {said}");
    }
}

/// What ends such a script is told with the remedy.
#[test]
fn a_line_that_only_bash_can_read_ends_a_script() {
    if skip_dash() {
        return;
    }
    let place = Place::new("dialect-syntax");
    let script =
        place.script("array.sh", "#!/bin/dash\ntc qdisc add dev eth0 root fq_codel\ncat none\nA=(1 2)\n");
    let findings = found(&script);
    assert_eq!(table(&findings), "4 error C1\n");
    let because = findings[0]["because"].as_str().unwrap_or_default();
    assert!(
        because.contains("Syntax error") && because.contains("let the first line name bash"),
        "{because}"
    );
    let output = Command::new(TIDEGATE).arg("check").arg(&script).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("files that are not here (cat: none)"), "{said}");
}

/// Routers' scripts are for ash, which few other machines have.
#[test]
fn another_shell_stands_in_for_ash() {
    if skip() || Path::new("/bin/ash").exists() {
        return;
    }
    let place = Place::new("dialect-ash");
    let text = "#!/bin/ash\nlocal_rate() { local r=5; echo ${r}mbit; }\n\
                tc qdisc add dev eth0 root cake bandwidth $(local_rate)\n";
    let script = place.script("ash.sh", text);
    let output =
        Command::new(TIDEGATE).args(["run", "--print", "tree"]).arg(&script).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the script is for BusyBox's ash, and /bin/"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("cake"), "{said}");
}
