//! The kernel back end compared with the real tc inside a kernel that has every kind: a script is carried out
//! twice, by tc and by ours, each time in a network namespace of its own, and each lists what is there
//! then: messages out and in. A third time all of it is taken away and brought back by what the kernel
//! reported.
//!
//! The kernel is a User-Mode Linux of the oracle's make (not part of this project), as for `virtual-lab`.

use crate::fidelity;
use crate::virtual_lab::{TUNABLES, boot, make_executable};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask kernel-proof KERNEL PROGRAM OUT SCRIPT…
  KERNEL   the directory with linux.oracle and inject, as the oracle's `ask` sets it up
  PROGRAM  `tc` by our messages: target/debug/examples/kernel-tc of tidegate-netlink
  OUT      a directory for what both list
  SCRIPT   a folder with script.tc and schedule.csv, or a file of recorded sessions";

/// What a script may be about beside the qdiscs' kinds; each is looked for among its words.
const MORE_KINDS: [&str; 21] = [
    "ingress", "clsact", "stab", "est", "fw", "u32", "flow", "matchall", "basic", "flower", "police",
    "mirred", "skbedit", "connmark", "ctinfo", "ct", "sample", "nat", "pedit", "csum", "vlan",
];

/// The devices that both find.
const LINKS: &str = "link add link0 type dummy\nlink add link1 type dummy\nlink add link2 type dummy\nlink \
add d0 type dummy\n\
    link add ifb0 type ifb\nlink add ifb1 type ifb\nlink add v0 type veth peer name v1\nlink add in0 type \
    veth peer name in1\n\
    link set link0 txqueuelen 1000 up\nlink set link1 up\nlink set link2 up\nlink set d0 up\nlink set ifb0 \
    up\nlink set ifb1 up\n\
    link set v0 up\nlink set in1 up\n";

/// How both carry out a script: `run NAME WHOSE`.
const RUN: &str = r#"#!/bin/sh
# $1: the script's name, $2: whose tc, $3: where the tools are
# Otherwise devices send packets of their own.
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip -batch $3/links
if [ -f $3/$1.batch ]; then
    $3/$2/tc -force -batch $3/$1.batch >/dev/null 2>&1
else
    ( cd /run; PATH=$3/$2:$PATH timeout 100 sh $3/$1.sh >/dev/null 2>&1 </dev/null )
fi
if [ $2 = again ]; then
    exec $3/$2/tc remake link0 link1 link2 d0 ifb0 ifb1 v0 in1
fi
tc qdisc show > /run/qdiscs
{
    for d in link0 link1 link2 d0 ifb0 ifb1 v0 in1; do echo "qdisc show dev $d"; echo "class show dev $d"; echo "filter show dev $d"; done
    # Filters hang on qdiscs, and now and then on the classes that scripts name.
    while read q kind handle dev d rest; do
        [ "$q" = qdisc ] || continue
        echo "filter show dev $d parent $handle"; echo "filter show dev $d ingress"; echo "filter show dev $d egress"
    done < /run/qdiscs
    tr ' ' '\n' < $3/$1.sh | grep -E '^[0-9a-f]+:[0-9a-f]+$' | sort -u | while read c; do echo "filter show dev link0 parent $c"; done
    for k in gact police mirred skbedit connmark ctinfo ct simple sample nat pedit csum skbmod vlan; do echo "actions ls action $k"; done
} > /run/questions
$3/$2/tc -s -d -force -batch /run/questions 2>/run/$1.unread
cat /run/$1.unread >&2
"#;

/// The first process of the guest.
const INIT: &str = r#"#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TUNABLES
I=$LAB_KERNEL/inject
[ "$LAB_RT" ] || { export LAB_RT=1; exec $I rt /bin/sh $0; }
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /run
mount -t devtmpfs dev /dev 2>/dev/null || mount -t tmpfs dev /dev
[ -e /dev/null ] || mknod /dev/null c 1 3
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
mkdir /run/out; mount -t hostfs none /run/out -o $LAB_DIR
cd /run/out
$I sleep-until 10000000000
while read n; do
    unshare -n sh /run/out/run $n $LAB_WHOSE /run/out > /run/out/$n.$LAB_WHOSE 2>/run/out/$n.$LAB_WHOSE.err
done < names
$I poweroff
"#;

/// A script: what it is called, and its text.
struct Script {
    name: String,
    text: String,
    /// Its commands are right: `tc -batch` gives up at words that are none of its own.
    right: bool,
}

/// Runs the task.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let [kernel, program, out, scripts @ ..] = words else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match proof(Path::new(kernel), Path::new(program), Path::new(out), scripts) {
        Ok((text, differ)) => {
            print!("{text}");
            ExitCode::from(u8::from(differ))
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn proof(kernel: &Path, program: &Path, out: &Path, scripts: &[String]) -> Result<(String, bool), String> {
    let failed = |error: std::io::Error| error.to_string();
    fs::create_dir_all(out).map_err(failed)?;
    let (out, kernel) = (fs::canonicalize(out).map_err(failed)?, fs::canonicalize(kernel).map_err(failed)?);
    let scripts: Vec<Script> = scripts
        .iter()
        .map(|path| read(Path::new(path)))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    tools(&out, program).map_err(failed)?;
    let mut names = String::new();
    for script in &scripts {
        fs::write(out.join(format!("{}.sh", script.name)), &script.text).map_err(failed)?;
        let batch = out.join(format!("{}.batch", script.name));
        let _ = fs::remove_file(&batch);
        if let Some(lines) = plain(&script.text).filter(|_| script.right) {
            fs::write(batch, lines).map_err(failed)?;
        }
        writeln!(names, "{}", script.name).map_err(|error| error.to_string())?;
    }
    fs::write(out.join("names"), names).map_err(failed)?;
    let init = out.join("init");
    fs::write(&init, INIT.replace("TUNABLES", TUNABLES)).map_err(failed)?;
    make_executable(&init).map_err(failed)?;
    // Handles that no one gave are counted from the kernel's start, so each has a kernel of his own.
    for whose in ["theirs", "ours", "again"] {
        boot(&kernel, &out, &init, &[format!("LAB_WHOSE={whose}")]).map_err(failed)?;
    }
    table(&out, &scripts)
}

/// A script of nothing but calls of tc as a file for `tc -batch`: one process instead of hundreds.
fn plain(text: &str) -> Option<String> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#') && *line != "set -e");
    let words = |line: &str| {
        let unquoted = line.replace('\'', "");
        let command = unquoted.strip_prefix("tc ")?;
        (!command.contains(['$', '"', '`', '\\', '|', ';', '&', '>', '<', '(', '\t']))
            .then(|| format!("{command}\n"))
    };
    lines.map(words).collect()
}

/// What both runs find first in their way: the tc they are about, and nothing else of what scripts call.
fn tools(out: &Path, program: &Path) -> std::io::Result<()> {
    fs::write(out.join("run"), RUN)?;
    fs::write(out.join("links"), LINKS)?;
    let program = fs::canonicalize(program)?;
    for (whose, program) in
        [("theirs", Path::new("/sbin/tc")), ("ours", program.as_path()), ("again", program.as_path())]
    {
        let folder = out.join(whose);
        fs::create_dir_all(&folder)?;
        for tool in ["ip", "iptables", "ip6tables", "iptables-legacy", "nft", "ethtool", "sleep"] {
            fs::write(folder.join(tool), "#!/bin/sh\nexit 0\n")?;
            make_executable(&folder.join(tool))?;
        }
        let _ = fs::remove_file(folder.join("tc"));
        std::os::unix::fs::symlink(program, folder.join("tc"))?;
    }
    Ok(())
}

/// The scripts of a folder or a file of sessions.
fn read(path: &Path) -> Result<Vec<Script>, String> {
    let text_of =
        |path: PathBuf| fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()));
    let own = path.file_name().and_then(|name| name.to_str()).ok_or("not the name of a file")?;
    if path.is_dir() {
        let mut text = text_of(path.join("script.tc"))? + "\n";
        let later = text_of(path.join("schedule.csv")).unwrap_or_default();
        for command in later.lines().filter_map(|line| line.split_once(",!,").map(|(_, command)| command)) {
            let parts = command.split(';').map(str::trim);
            for part in parts
                .filter(|part| part.starts_with("tc ") && !part.contains(" show") && !part.contains(">>"))
            {
                text += &format!("{part}\n");
            }
        }
        let above =
            path.parent().and_then(|above| above.file_name()).and_then(|name| name.to_str()).unwrap_or("");
        return Ok(vec![Script { name: format!("{above}-{own}"), text, right: true }]);
    }
    let text = text_of(path.to_owned())?;
    let sessions = text.split("\n@ ").skip(1).map(|session| {
        let commands = session.lines().filter_map(|line| line.strip_prefix("$ "));
        let device = session.split(' ').next().unwrap_or("link0");
        let quoted = |command: &str| {
            let words: Vec<String> = command.split_whitespace().map(|word| format!("'{word}'")).collect();
            words.join(" ") + "\n"
        };
        let shown = |command: &&str| {
            !command.split(' ').any(|word| matches!(word, "show" | "sh" | "s" | "ls" | "list"))
        };
        (device, commands.filter(shown).map(quoted).collect::<String>())
    });
    let named = |(number, (device, text)): (usize, (&str, String))| Script {
        name: format!("{}-{number}-{device}", own.trim_end_matches(".txt")),
        text,
        right: false,
    };
    Ok(sessions.enumerate().map(named).collect())
}

/// Kinds and how many scripts with them came out the same, and where the others differ first.
fn table(out: &Path, scripts: &[Script]) -> Result<(String, bool), String> {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut same, mut differences) = (0, String::new());
    for script in scripts {
        let read = |whose: &str| {
            let bytes = fs::read(out.join(format!("{}.{whose}", script.name)));
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
        };
        let (theirs, ours) = (read("theirs"), read("ours"));
        // A list of nothing proves nothing.
        let alike = theirs == ours && theirs.contains("qdisc");
        same += usize::from(alike);
        if !alike {
            let first = theirs.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
            let (theirs, ours) = first.unwrap_or(("(more)", "(less)"));
            differences += &format!("{}\n    tc       {theirs}\n    tidegate {ours}\n", script.name);
        }
        let words = || script.text.split(|c: char| c.is_whitespace() || c == '\'');
        let all = fidelity::KINDS.iter().copied().chain(MORE_KINDS);
        for kind in all.filter(|kind| words().any(|word| word == *kind)) {
            let count = kinds.entry(kind).or_default();
            count.0 += usize::from(alike);
            count.1 += 1;
        }
    }
    let mut text = format!(
        "{same} of {} scripts leave the same behind\n\n| kind | scripts | same |\n|---|---|---|\n",
        scripts.len()
    );
    for (kind, (same, all)) in kinds {
        text += &format!("| {kind} | {all} | {same} |\n");
    }
    let differ = !differences.is_empty();
    if differ {
        text += &format!("\n{differences}");
    }
    let (again, broken) = brought_back(out, scripts)?;
    Ok((text + &again, differ || broken))
}

/// The outcome of what was taken away and brought back; and whether anything is not as it was.
fn brought_back(out: &Path, scripts: &[Script]) -> Result<(String, bool), String> {
    let (mut same, mut differ, mut cannot) = (0, String::new(), BTreeMap::<String, usize>::new());
    for script in scripts {
        let path = out.join(format!("{}.again", script.name));
        let sentence = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for line in sentence.lines() {
            match line.split_once(' ') {
                Some(("same", _)) => same += 1,
                Some(("cannot", what)) => *cannot.entry(what.to_owned()).or_default() += 1,
                _ => differ += &format!("{}\n    {line}\n", script.name),
            }
        }
    }
    let mut text = format!("\n{same} devices were cleared and brought back as they had been told\n");
    for (what, devices) in cannot {
        text += &format!("    {devices} could not be: {what}\n");
    }
    Ok((text + &differ, !differ.is_empty()))
}
