//! `tidegate lab` inside a kernel whose clock stands still while anything runs: measurements without noise.
//!
//! The kernel is a User-Mode Linux of the oracle's make (not part of this project): it shows the host's files
//! as its own, and has TUN devices and network namespaces. Scripts need more namespaces than it has to be
//! taken in, so a scenario's scripts are replaced by the commands they issue.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str = "usage: cargo xtask virtual-lab KERNEL TIDEGATE OUT SCENARIO[,WORD…]…
  KERNEL    the directory with linux.oracle and inject, as the oracle's `ask` sets it up
  TIDEGATE  the program
  OUT       where virtual-NAME.json is written";

/// They keep the C library from registers that such a kernel does not save.
pub(crate) const TUNABLES: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-BMI2,-RTM,-AVX_Fast_Unaligned_Load,-XSAVEC,-XSAVE,-ERMS,-FSRM";

/// The first process of the guest.
const INIT: &str = r#"#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
export TUNABLES
I=$LAB_KERNEL/inject
[ "$LAB_RT" ] || { export LAB_RT=1; exec $I rt /bin/sh $0; }
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /run
mount -t devtmpfs dev /dev 2>/dev/null || mount -t tmpfs dev /dev
[ -e /dev/net/tun ] || { mkdir -p /dev/net; mknod /dev/net/tun c 10 200; }
[ -e /dev/null ] || mknod /dev/null c 1 3
[ -e /dev/urandom ] || mknod /dev/urandom c 1 9
mkdir /run/out /run/tmp; mount -t hostfs none /run/out -o $LAB_DIR
export TMPDIR=/run/tmp HOME=/run
cd /run/out
$I sleep-until 10000000000
$(cat words) -o /run/out/result.json > told.txt 2>&1
echo $? > code
$I poweroff
"#;

/// Runs the task.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let [kernel, tidegate, out, scenarios @ ..] = words else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if scenarios.is_empty() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    for scenario in scenarios {
        match measured(Path::new(kernel), Path::new(tidegate), Path::new(out), scenario) {
            Ok(path) => println!("{}", path.display()),
            Err(error) => {
                eprintln!("xtask: {scenario}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Does one scenario; `FILE,WORD,WORD`: with words of the command line.
fn measured(kernel: &Path, tidegate: &Path, out: &Path, scenario: &str) -> Result<PathBuf, String> {
    let mut parts = scenario.split(',');
    let file = PathBuf::from(parts.next().unwrap_or_default());
    let name = file.file_stem().and_then(|name| name.to_str()).ok_or("not the name of a file")?;
    let tidegate = fs::canonicalize(tidegate).map_err(|error| format!("{}: {error}", tidegate.display()))?;
    let kernel = fs::canonicalize(kernel).map_err(|error| format!("{}: {error}", kernel.display()))?;
    // The kernel finds ports and sequence numbers by its own path, so the same place gives the same bytes.
    let dir = out.join(format!("virtual-{name}"));
    let failed = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&dir).map_err(failed)?;
    let dir = fs::canonicalize(&dir).map_err(failed)?;
    let plain = with_commands(&file, &tidegate)?;
    fs::write(dir.join("scenario.toml"), plain).map_err(failed)?;
    let more: String = parts.map(|word| format!(" {word}")).collect();
    fs::write(dir.join("words"), format!("{} lab scenario.toml{more}\n", tidegate.display()))
        .map_err(failed)?;
    let init = dir.join("init");
    fs::write(&init, INIT.replace("TUNABLES", TUNABLES)).map_err(failed)?;
    make_executable(&init).map_err(failed)?;
    let result = dir.join("result.json");
    let _ = fs::remove_file(&result);
    boot(&kernel, &dir, &init, &[]).map_err(failed)?;
    let text = fs::read_to_string(dir.join("told.txt")).unwrap_or_default();
    let to = out.join(format!("virtual-{name}.json"));
    fs::copy(&result, &to).map_err(|_| format!("no result; it said:\n{text}"))?;
    Ok(to)
}

pub(crate) fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

pub(crate) fn boot(kernel: &Path, dir: &Path, init: &Path, words: &[String]) -> std::io::Result<()> {
    let console = fs::File::create(dir.join("console.txt"))?;
    Command::new("setarch")
        .args(["-R", "taskset", "-c", "0"])
        .arg(kernel.join("linux.oracle"))
        .args([
            "mem=1G",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "con=null",
            "ssl=null",
            "con0=null,fd:1",
            "quiet",
        ])
        .args(["time-travel=inf-cpu", "time-travel-start=1700000000"])
        .arg(format!("init={}", init.display()))
        .arg(format!("LAB_DIR={}", dir.display()))
        .arg(format!("LAB_KERNEL={}", kernel.display()))
        .args(words)
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .stdin(Stdio::null())
        .stderr(console.try_clone()?)
        .stdout(console)
        .status()?;
    Ok(())
}

/// The scenario's text with the commands of its scripts in their place.
fn with_commands(file: &Path, tidegate: &Path) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let line = |line: &str| match line
        .split_once(" = \"")
        .and_then(|(key, rest)| Some((key, rest.strip_suffix(".sh\"")?)))
    {
        Some((key, script)) => {
            Ok(format!("{key} = {}", commands(&folder.join(format!("{script}.sh")), tidegate)?))
        }
        None => Ok(line.to_owned()),
    };
    let lines: Result<Vec<String>, String> = text.lines().map(line).collect();
    Ok(lines?.join("\n") + "\n")
}

/// What a script issues, as a list of TOML.
fn commands(script: &Path, tidegate: &Path) -> Result<String, String> {
    let import =
        Command::new(tidegate).arg("import").arg(script).output().map_err(|error| error.to_string())?;
    if !import.status.success() {
        return Err(format!("{}: {}", script.display(), String::from_utf8_lossy(&import.stderr)));
    }
    let text = String::from_utf8_lossy(&import.stdout).into_owned();
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::Value::from(line).to_string())
        .collect();
    Ok(format!("[{}]", lines.join(", ")))
}
