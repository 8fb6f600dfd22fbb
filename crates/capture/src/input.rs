//! The file that a tool reads its commands from, by the tool's words.

use super::scan::is_new_inside;
use std::path::PathBuf;
use tidegate_shims::Call;
use tidegate_sys::input_file;

/// The most bytes of standard input or of a batch file that are passed on.
pub(super) const MAX_INPUT: u64 = 16 << 20;

/// The file that a call reads its input from, where it reads one.
pub(super) fn input_name<'a>(tool: &str, args: &'a [String]) -> Option<&'a String> {
    match tool {
        "tc" | "ip" => batch_file(args),
        "nft" => args.iter().position(|arg| arg == "-f" || arg == "--file").and_then(|at| args.get(at + 1)),
        "sysctl" => settings_file(args),
        "ipset" => args.iter().find(|arg| *arg == "restore").map(|_| &STDIN),
        tool if tool.ends_with("-restore") => Some(rules_file(args)),
        _ => None,
    }
}

/// Whether a file's name stands for standard input.
pub(super) fn is_stdin(file: &str) -> bool {
    file == "-" || file.is_empty()
}

/// The file of `iptables-restore [OPTION…] [FILE]`.
fn rules_file(args: &[String]) -> &String {
    let mut words = args.iter().peekable();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-T" | "--table" | "-M" | "--modprobe" => drop(words.next()),
            // The timeout is optional.
            "-w" | "--wait" | "-W" | "--wait-interval" => {
                words.next_if(|next| next.chars().all(|letter| letter.is_ascii_digit()));
            }
            option if option.starts_with('-') && option.len() > 1 => {}
            _ => return word,
        }
    }
    &STDIN
}

/// The file of `sysctl -p [FILE]`.
fn settings_file(args: &[String]) -> Option<&String> {
    static USUAL: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "/etc/sysctl.conf".to_owned());
    let at = args.iter().position(|arg| matches!(arg.as_str(), "-p" | "-f" | "--load" | "-qp" | "-ep"))?;
    Some(args.get(at + 1).filter(|next| !next.starts_with('-')).unwrap_or(&USUAL))
}

/// Standard input under the name tools know.
static STDIN: String = String::new();

/// The file of `-batch FILE`, which may be shortened to `-b`, among the options before the object.
fn batch_file(args: &[String]) -> Option<&String> {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix('-')?;
        let option = option.strip_prefix('-').unwrap_or(option);
        if !option.is_empty() && "batch".starts_with(option) {
            return Some(words.next().unwrap_or(&STDIN));
        }
        if matches!(option, "n" | "netns" | "net" | "cf" | "conf" | "f" | "family" | "l" | "rc" | "rcvbuf") {
            words.next();
        }
    }
    None
}

/// The file that a call read, as the user would name it, if what it read is what that file has outside:
/// inside the script may have written another.
pub(super) fn outside(call: &Call) -> Option<PathBuf> {
    let read = call.stdin.as_deref()?;
    let name = input_name(&call.tool, &call.args).filter(|name| !is_stdin(name))?;
    let path = call.cwd.join(name);
    let real = path.canonicalize().ok().filter(|real| !is_new_inside(real))?;
    let same = input_file::read(&real, MAX_INPUT).is_ok_and(|bytes| bytes == read);
    let here = std::env::current_dir().is_ok_and(|here| here.join(name) == path);
    same.then(|| if here { name.into() } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_rules_is_found_behind_options_with_values() {
        let file =
            |line: &str| rules_file(&line.split_whitespace().map(Into::into).collect::<Vec<_>>()).clone();
        assert_eq!(["", "-n", "-w 5 -T mangle", "-w"].map(file), ["", "", "", ""]);
        assert_eq!(["x", "-w x", "-w 5 -n x", "-T mangle -c x"].map(file), ["x", "x", "x", "x"]);
    }

    #[test]
    fn a_batch_file_is_found_behind_other_options_and_never_behind_the_object() {
        let cases = [
            ("-batch x", Some("x")),
            ("-b -", Some("-")),
            ("-force -ba x", Some("x")),
            ("-n blue -batch x", Some("x")),
            ("-batch", Some("")),
            ("qdisc add -b x", None),
            ("-s qdisc show", None),
            ("", None),
        ];
        for (line, expected) in cases {
            let args: Vec<String> = line.split_whitespace().map(Into::into).collect();
            assert_eq!(batch_file(&args).map(String::as_str), expected, "{line}");
        }
    }
}
