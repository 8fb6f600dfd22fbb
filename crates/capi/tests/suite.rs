//! The C library as C programs meet it: its header says what the library has; examples in C and C++ compile
//! without a warning, with pkg-config, static and shared, and run; so do all functions with wrong
//! arguments, under sanitizers and valgrind. Where a compiler or valgrind is missing, the test says so.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const HEADER: &str = include_str!("../include/tidegate.h");
const ABI: &str = include_str!("../src/abi.rs");

/// A text without comments, its blanks as one each.
fn flat(text: &str, line_comments: bool) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("/*") {
        code.push_str(&rest[..begin]);
        code.push(' ');
        rest = rest[begin..].split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    let lines = code.lines().filter(|line| !line.trim_start().starts_with('#') || line_comments);
    let lines = lines.map(|line| if line_comments { line.split("//").next().unwrap_or("") } else { line });
    lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The C type and name of a Rust declaration `name: type`.
fn declared(member: &str) -> String {
    let (name, kind) = member.split_once(": ").expect(member);
    let (name, kind) = (name.trim_start_matches("pub ").trim(), kind.trim());
    let scalar = |kind: &str| match kind {
        "u8" | "u16" | "u32" | "u64" => format!("uint{}_t", &kind[1..]),
        "c_char" => "char".to_owned(),
        "c_int" => "int".to_owned(),
        other => other.to_owned(),
    };
    if let Some(kind) = kind.strip_prefix("*const ") {
        format!("const {} *{name}", scalar(kind))
    } else if let Some(kind) = kind.strip_prefix("*mut ") {
        format!("{} *{name}", scalar(kind))
    } else if let Some((kind, length)) =
        kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')?.split_once("; "))
    {
        format!("{} {name}[{length}]", scalar(kind))
    } else {
        format!("{} {name}", scalar(kind)).trim_end().to_owned()
    }
}

/// The structs and functions of `abi.rs` as the header has to declare them.
fn of_rust() -> Vec<String> {
    let code = flat(ABI, true);
    let mut all = Vec::new();
    for part in code.split("#[repr(C)]").skip(1) {
        let (name, rest) =
            part.split_once("pub struct ").and_then(|(_, rest)| rest.split_once(" {")).expect(part);
        let members: Vec<String> = rest
            .split_once('}')
            .expect(name)
            .0
            .split(',')
            .map(str::trim)
            .filter(|one| !one.is_empty())
            .map(declared)
            .collect();
        all.push(format!("typedef struct {name} {{ {}; }} {name};", members.join("; ")));
    }
    for part in code.split("extern \"C\" fn ").skip(1) {
        let (name, rest) = part.split_once('(').expect(part);
        let (arguments, rest) = rest.split_once(')').expect(part);
        let arguments: Vec<String> =
            arguments.split(',').map(str::trim).filter(|one| !one.is_empty()).map(declared).collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        let result = rest.split(" {").next().and_then(|result| result.trim().strip_prefix("-> "));
        let result = result.map_or("void ".to_owned(), |kind| declared(&format!(": {kind}")));
        let blank = if result.ends_with(['*', ' ']) { "" } else { " " };
        all.push(format!("{result}{blank}{name}({arguments});"));
    }
    all
}

#[test]
fn the_header_declares_what_the_library_has() {
    let header = flat(HEADER, false);
    let wanted = of_rust();
    for one in &wanted {
        assert!(header.contains(one.as_str()), "not in tidegate.h: {one}");
    }
    let functions = wanted.iter().filter(|one| one.ends_with(");")).count();
    assert_eq!((functions, wanted.len()), (10, 15));
    assert_eq!(header.matches(");").count(), functions, "tidegate.h declares more functions");
    assert_eq!(header.matches("typedef struct").count(), 6, "tidegate.h declares more structs");
    assert!(HEADER.contains(&format!("#define TIDEGATE_VERSION \"{}\"", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn the_header_has_the_causes_of_drops() {
    use tidegate_device::DropCause::{Aqm, Filter, Full, Overflow, Purged, Superseded, TooLong};
    let causes = [Full, Overflow, Aqm, Filter, Purged, TooLong, Superseded];
    for cause in causes {
        let line = format!("#define TIDEGATE_DROP_{} {}", cause.name().to_uppercase(), cause as u32);
        assert!(HEADER.contains(&line), "{line}");
    }
    assert_eq!(HEADER.matches("#define TIDEGATE_DROP_").count(), causes.len());
}

// --- programs

/// Where the library is installed for these tests, by the script that installs it for users.
fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let built = std::env::current_exe().expect("a test").parent().expect("its folder").to_owned();
        let prefix = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("capi");
        let script = root().join("packaging/library");
        run(Command::new("bash").arg(script).arg(&prefix).arg(built)).expect("packaging/library");
        prefix
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a program prints; an error with what it says if it fails.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
    }
}

/// Is there such a program?
fn there_is(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Says why a test is skipped unless all these programs are there.
fn skip(needed: &[&str]) -> bool {
    let missing: Vec<_> = needed.iter().filter(|program| !there_is(program)).collect();
    if !missing.is_empty() {
        println!("SKIPPED: the C library: no {missing:?} here");
    }
    !missing.is_empty()
}

/// Words of pkg-config for the installed library.
fn flags(words: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(words).arg("tidegate").env("PKG_CONFIG_PATH", installed().join("lib/pkgconfig"));
    let found = run(&mut command).expect("pkg-config");
    found.split_whitespace().map(str::to_owned).collect()
}

/// Compiles a program of C or C++ with these options, and with the shared or the static library.
fn compiled(source: &str, name: &str, options: &[&str], is_static: bool) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (compiler, standard) =
        if source.ends_with(".c") { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
    let mut command = Command::new(compiler);
    command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"]).args(options);
    command.arg(root().join(source)).arg("-o").arg(&program).args(flags(&["--cflags"]));
    if is_static {
        let libs = flags(&["--libs", "--static"]).into_iter();
        command
            .args(libs.map(|word| if word == "-ltidegate" { "-l:libtidegate.a".to_owned() } else { word }));
    } else {
        command.args(flags(&["--libs"])).arg(format!("-Wl,-rpath,{}", installed().join("lib").display()));
    }
    run(&mut command).expect(source);
    program
}

const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const HOSTILE: &str = "crates/capi/tests/c/hostile.c";
const LINK: &str = "examples/c/simulated_link.c";

#[test]
fn structs_are_laid_out_as_in_c() {
    if skip(&["cc", "pkg-config"]) {
        return;
    }
    use tidegate_capi::abi::*;
    let mut sizes = BTreeMap::new();
    let mut program =
        String::from("#include <stddef.h>\n#include <stdio.h>\n#include <tidegate.h>\nint main(void) {\n");
    macro_rules! compare {
        ($kind:ident: $($member:ident)*) => {
            sizes.insert(stringify!($kind).to_owned(), size_of::<$kind>());
            let _ = writeln!(program, "printf(\"{0} %zu\\n\", sizeof({0}));", stringify!($kind));
            $(
                let name = concat!(stringify!($kind), ".", stringify!($member));
                sizes.insert(name.to_owned(), std::mem::offset_of!($kind, $member));
                let (kind, member) = (stringify!($kind), stringify!($member));
                let _ = writeln!(program, "printf(\"{name} %zu\\n\", offsetof({kind}, {member}));");
            )*
        };
    }
    compare!(tidegate_config: size flags name rate start seed mtu tx_queue_len hz packets);
    compare!(tidegate_packet: id header header_len length mark priority ip_version protocol dsfield
        reserved source_port destination_port source destination);
    compare!(tidegate_sent: id offered finished header header_len length mark priority dsfield last marked
        rewritten reserved);
    compare!(tidegate_drop: id offered dropped length qdisc cause last);
    compare!(tidegate_stats: offered copied sent sent_bytes dropped marked waiting waiting_bytes overlimits
        reserved);
    program.push_str("return 0; }\n");
    let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("layout.c");
    std::fs::write(&source, program).expect("a source");
    let program = compiled(source.to_str().expect("a path"), "layout", &[], false);
    let printed = run(&mut Command::new(program)).expect("it runs");
    let of_c: BTreeMap<String, usize> = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, number)| (name.to_owned(), number.parse().expect("a number")))
        .collect();
    assert_eq!(of_c, sizes);
}

#[test]
fn the_shared_library_exports_ten_functions() {
    if skip(&["nm"]) {
        return;
    }
    let library = installed().join("lib/libtidegate.so");
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library)).expect("nm");
    let mut names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    names.sort_unstable();
    let declared = flat(HEADER, false);
    let mut wanted: Vec<&str> = declared
        .split(';')
        .filter_map(|one| one.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("tidegate_"))
        .collect();
    wanted.sort_unstable();
    assert_eq!((names.len(), names), (10, wanted));
}

#[test]
fn wrong_arguments_are_errors_under_sanitizers() {
    if skip(&["cc", "pkg-config"]) {
        return;
    }
    let program = compiled(HOSTILE, "hostile-asan", &SANITIZERS, true);
    let printed = run(&mut Command::new(program)).expect("no finding");
    assert_eq!(printed, include_str!("c/hostile.txt"));
}

#[test]
fn wrong_arguments_are_errors_under_valgrind() {
    if skip(&["cc", "pkg-config", "valgrind"]) {
        return;
    }
    let program = compiled(HOSTILE, "hostile", &[], true);
    let printed = run(valgrind().arg(program)).expect("no finding");
    assert_eq!(printed, include_str!("c/hostile.txt"));
}

fn valgrind() -> Command {
    let mut command = Command::new("valgrind");
    command.args([
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--show-leak-kinds=definite,indirect,possible",
    ]);
    command
}

#[test]
fn the_example_in_c_is_the_same_static_shared_and_checked() {
    if skip(&["cc", "pkg-config"]) {
        return;
    }
    let commands = [
        "qdisc add dev eth0 root fq_codel",
        "qdisc add dev eth0 root dualpi2",
        "qdisc add dev eth0 root cake",
    ];
    let shared = compiled(LINK, "link-shared", &[], false);
    let linked = compiled(LINK, "link-static", &SANITIZERS, true);
    for commands in commands {
        let of = |program: &Path| run(Command::new(program).args(["2", commands])).expect(commands);
        let printed = of(&shared);
        assert_eq!(printed, of(&linked));
        assert!(printed.lines().count() == 6 && printed.contains(" offered = "), "{printed}");
        if commands.ends_with("cake") && !skip(&["valgrind"]) {
            let checked = run(valgrind().arg(&shared).args(["2", commands])).expect("no finding");
            assert_eq!(printed, checked);
        }
    }
    let refused =
        run(Command::new(&shared).args(["1", "qdisc add dev eth0 root fq_kodel"])).expect_err("no qdisc");
    assert!(
        refused.contains("simulated_link: tidegate_create: line 1: `qdisc add dev eth0 root fq_kodel`"),
        "{refused}"
    );
}

#[test]
fn the_example_in_cpp_runs() {
    if skip(&["c++", "pkg-config"]) {
        return;
    }
    let program = compiled("examples/c/queue_disc.cc", "queue-disc", &SANITIZERS, true);
    let printed = run(&mut Command::new(program)).expect("it runs");
    let wanted = "27 sent, 13 of them marked, 75 dropped; the small flow's packet was number 4\n\
                  refused: tidegate_create: line 1: `qdisc add dev eth0 root fq_kodel`: Error: Specified \n";
    assert_eq!(printed, wanted);
}

/// docs/library.md with the present outputs: its program's, and those of the commands that its blocks begin
/// with.
fn page(of: impl Fn(&str) -> Option<String>) -> (String, String) {
    let page = std::fs::read_to_string(root().join("docs/library.md")).expect("the page");
    let (mut renewed, mut program, mut rest) = (String::new(), String::new(), page.as_str());
    while let Some((before, after)) = rest.split_once("```") {
        let (info, body) = after.split_once('\n').expect("a block's first line");
        let (body, after) = body.split_once("```").expect("a block's end");
        let command = body.lines().next().unwrap_or_default();
        let output = match info {
            // The output of the program before it.
            "text" if !program.is_empty() => of(&std::mem::take(&mut program)),
            "text" if command.starts_with("$ ") => of(command).map(|output| format!("{command}\n{output}")),
            _ => None,
        };
        if info == "c" {
            program = body.to_owned();
        }
        renewed += &format!("{before}```{info}\n{}```", output.as_deref().unwrap_or(body));
        rest = after;
    }
    (page.clone(), renewed + rest)
}

/// Compares the page, or writes it if that is asked for.
fn compare((page, renewed): (String, String)) {
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(root().join("docs/library.md"), renewed).expect("the page");
    } else {
        assert_eq!(page, renewed, "docs/library.md: TIDEGATE_BLESS=1 cargo test -p tidegate-capi writes it");
    }
}

#[test]
fn the_page_shows_what_programs_print() {
    if skip(&["cc", "pkg-config"]) {
        return;
    }
    let link = compiled(LINK, "link-page", &[], false);
    let mut ran = 0;
    let outputs = std::cell::RefCell::new(&mut ran);
    compare(page(|text| {
        if let Some(arguments) = text.strip_prefix("$ ./simulated_link ") {
            let (seconds, commands) = arguments.split_once(' ').expect("two arguments");
            **outputs.borrow_mut() += 1;
            let arguments = [seconds, commands.trim_matches('"')];
            return Some(run(Command::new(&link).args(arguments)).expect("it runs"));
        }
        if text.starts_with("$ ") {
            return None;
        }
        **outputs.borrow_mut() += 1;
        let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page.c");
        std::fs::write(&source, text).expect("a source");
        let program = compiled(source.to_str().expect("a path"), "page", &SANITIZERS, true);
        Some(run(&mut Command::new(program)).expect("it runs"))
    }));
    assert_eq!(ran, 5, "docs/library.md has other blocks");
}

/// The rows of `examples/ns3/compare.cc`.
#[test]
fn the_queue_disc_of_ns3_behaves_as_ns3s_own() {
    if skip(&["c++", "pkg-config"]) {
        return;
    }
    let modules = ["ns3-applications", "ns3-point-to-point"];
    // Debian's names the libraries that ns-3 itself needs by their paths.
    let words =
        run(Command::new("pkg-config").args(["--cflags", "--libs"]).args(modules)).unwrap_or_default();
    let missing = words.split_whitespace().find(|word| word.starts_with('/') && !Path::new(word).exists());
    if words.is_empty() || missing.is_some() {
        println!("SKIPPED: the ns-3 queue disc: no ns-3 (apt install libns3-dev libgsl-dev libsqlite3-dev)");
        return;
    }
    let (folder, program) =
        (root().join("examples/ns3"), PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ns3-compare"));
    let mut command = Command::new("c++");
    command.args([
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "compare.cc",
        "tidegate-queue-disc.cc",
    ]);
    command.current_dir(folder).args(flags(&["--cflags", "--libs"])).args(words.split_whitespace());
    command.arg(format!("-Wl,-rpath,{}", installed().join("lib").display())).arg("-o").arg(&program);
    run(&mut command).expect("the queue disc compiles");
    let printed = run(Command::new(&program).arg("--seconds=4")).expect("it runs");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        let shown = |arguments: &str| run(Command::new(&program).arg(arguments)).expect("it runs");
        compare(page(|text| text.strip_prefix("$ ./compare ").map(shown)));
    }
    let rows: Vec<(&str, Vec<f64>)> = printed
        .lines()
        .filter(|line| line.starts_with("  ") && line.contains("s fq_codel") || line.contains("CAKE"))
        .map(|line| line.split_at(28))
        .map(|(name, rest)| {
            (name.trim(), rest.split_whitespace().map(|word| word.parse().expect(word)).collect())
        })
        .collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["ns-3's fq_codel", "Linux's fq_codel", "Linux's CAKE"].repeat(2), "{printed}");
    for pair in rows.chunks(3) {
        let [(_, own), (_, linux), (_, cake)] = pair else { panic!("{printed}") };
        // What both uploads carry, within 2 %, and what the call waits on average, ms: a packet of the others
        // takes 1.2.
        assert!(((linux[0] + linux[1]) / (own[0] + own[1]) - 1.0).abs() < 0.02, "{printed}");
        assert!((linux[4] - own[4]).abs() < 0.2, "{printed}");
        // CAKE lets the call wait a packet or two of the others, each 1.2 ms.
        assert!(cake[4] < 3.0 && cake[0] + cake[1] > 0.9 * (own[0] + own[1]), "{printed}");
    }
}
