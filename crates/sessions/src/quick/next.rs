//! What to do next, ready to paste: how to measure what is missing, how to apply the policy, how to compare.

use std::fmt::Write as _;
use tidegate_measure::quick::{CapacityEstimate, NextStep, Quick};
use tidegate_text::shell_word as shell;

/// The file name for a policy that was not saved.
const UNSAVED: &str = "home.toml";

/// How a line was measured, as far as the next steps depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextContext<'a> {
    /// The first host that was named, or that of the page.
    pub(super) host: &'a str,
    /// The options that reach it, with a blank before each; empty: none are needed.
    pub(super) far: &'a str,
    /// It has `tidegate serve`.
    pub(super) has_server: bool,
    /// A page was named.
    pub(super) has_page: bool,
    /// Echo requests reach it, and may be sent.
    pub(super) has_echo: bool,
    /// This user may send echo requests.
    pub(super) may_echo: bool,
    /// Echo requests were to load the line.
    pub(super) echo_load: bool,
    /// The most that a load of others may have, in bytes.
    pub(super) max_data: u64,
    /// Whether root measures.
    pub(super) is_root: bool,
    /// The device that the policy is for.
    pub(super) dev: &'a str,
}

/// The steps, in order.
pub(super) fn steps(quick: &Quick, asked: &NextContext<'_>) -> Vec<NextStep> {
    if quick.partial.is_some() && quick.phases.len() > 1 {
        return Vec::new();
    }
    let mut all = measuring(quick, asked);
    all.extend(applying(quick, asked));
    all
}

/// What measures the directions whose rate is not known.
fn measuring(quick: &Quick, asked: &NextContext<'_>) -> Vec<NextStep> {
    let is_known = |rate: Option<CapacityEstimate>| rate.and_then(CapacityEstimate::full).is_some();
    let (up, down) = quick.rates();
    let missing = match (is_known(up), is_known(down)) {
        (true, true) => return Vec::new(),
        (false, false) => "upload and download",
        (false, true) => "the upload",
        (true, false) => "the download",
    };
    if asked.has_server {
        // It was loaded with all that TCP had.
        return Vec::new();
    }
    let host = shell(asked.host);
    let mut all = vec![NextStep {
        what: format!(
            "To measure {missing}: the first line on a computer of yours on the Internet (for ten minutes \
                anyone \
            may measure against it), the second here"
        ),
        commands: vec!["timeout 10m tidegate serve --open".into(), "tidegate quick THAT-COMPUTER".into()],
    }];
    let most = tidegate_measure::numbers::size(asked.max_data);
    if !is_known(down) && !asked.has_page {
        all.push(NextStep {
            what: format!(
                "Or the download alone, from a web server that you may load (8 downloads of a large file \
                    at once, \
                for some seconds, at most {most})"
            ),
            commands: vec![format!("tidegate quick {host} http://WEB-SERVER/LARGE-FILE")],
        });
    }
    if !is_known(up) && asked.has_page && !asked.may_echo {
        all.push(NextStep {
            what: "Or again, with the upload, once every user may send echo requests (until the next boot)"
                .into(),
            commands: vec![
                "sudo sysctl -w net.ipv4.ping_group_range='0 2147483647'".into(),
                quick.again.clone(),
            ],
        });
    }
    if !is_known(up) && asked.has_echo && !asked.echo_load {
        all.push(NextStep {
            what: format!(
                "Or the upload alone, if the owner of {} agrees (it replies to as many echo requests as \
                    the line \
                carries, for some seconds, at most {most})",
                asked.host
            ),
            commands: vec![format!("tidegate quick --echo-load {host}")],
        });
    }
    all
}

/// What makes the policy exact, applies it, and compares the line with it and without.
fn applying(quick: &Quick, asked: &NextContext<'_>) -> Vec<NextStep> {
    let Some(remedy) = &quick.remedy else { return Vec::new() };
    let sudo = if asked.is_root { "" } else { "sudo " };
    let saved = remedy.saved.as_deref();
    let file = shell(saved.unwrap_or(UNSAVED));
    let mut save = String::new();
    if saved.is_none() {
        let _ = write!(save, "printf '%s\\n'");
        for line in remedy.policy.lines().filter(|line| !line.starts_with('#')) {
            let _ = write!(save, " {}", shell(line));
        }
        let _ = write!(save, " > {file} && ");
    }
    let only = match &remedy.missing {
        Some(missing) => format!(" without the {missing}, whose rate is missing,"),
        None => String::new(),
    };
    let mut all = Vec::new();
    if asked.has_server {
        let own = format!("{}{}", shell(asked.host), asked.far);
        all.push(NextStep {
            what: "To make the policy's rates exact (some minutes)".into(),
            commands: ["calibrate", "overhead"].map(|command| format!("tidegate {command} {own}")).into(),
        });
    }
    all.push(NextStep {
        what: format!(
            "To apply the policy{only} on the machine that leads to the modem; a minute later it is undone \
            unless you ran `{sudo}tidegate confirm`"
        ),
        commands: vec![format!("{save}{sudo}tidegate apply {file} --confirm 60s")],
    });
    if asked.has_server {
        // Several transfers in both directions at once do not show the line's rates, and have no prediction.
        let test = if remedy.missing.as_deref() == Some("upload") { "tcp_4down" } else { "tcp_4up" };
        all.push(NextStep {
            what: "To verify it, the line without and with it in turns (verify applies it itself, so it is taken \
                away first; apply it again to keep it)"
                .into(),
            commands: vec![
                format!("{sudo}tidegate revert {}", shell(asked.dev)),
                format!(
                    "{sudo}tidegate verify {}{} --policy {file} --test {test}",
                    shell(asked.host),
                    asked.far
                ),
            ],
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::quick::{LoadDirection, LoadPhase, Remedy};

    const STRANGER: NextContext<'_> = NextContext {
        host: "192.0.2.1",
        far: "",
        has_server: false,
        has_page: false,
        has_echo: false,
        may_echo: true,
        echo_load: false,
        max_data: 250_000_000,
        is_root: false,
        dev: "eth0",
    };

    fn quick(up: Option<f64>, down: Option<f64>) -> Quick {
        let phase = |load, up_bits, down_bits| LoadPhase { load, up_bits, down_bits, ..LoadPhase::default() };
        let up = up.map(|bits| phase(LoadDirection::Up, Some(bits), None));
        let down = down.map(|bits| phase(LoadDirection::Down, None, Some(bits)));
        Quick { phases: up.into_iter().chain(down).collect(), ..Quick::default() }
    }

    fn commands(quick: &Quick, asked: &NextContext<'_>) -> Vec<String> {
        steps(quick, asked).into_iter().flat_map(|step| step.commands).collect()
    }

    #[test]
    fn what_is_missing_is_measured_by_options_that_exist() {
        let serve = ["timeout 10m tidegate serve --open", "tidegate quick THAT-COMPUTER"];
        let page = "tidegate quick 192.0.2.1 http://WEB-SERVER/LARGE-FILE";
        let echo = "tidegate quick --echo-load 192.0.2.1";
        let with_echo = NextContext { has_echo: true, ..STRANGER };
        let both_asked = NextContext { echo_load: true, has_page: true, ..with_echo };
        let server = NextContext { has_server: true, ..STRANGER };
        let debian = NextContext { has_page: true, may_echo: false, ..STRANGER };
        let allows = "sudo sysctl -w net.ipv4.ping_group_range='0 2147483647'";
        let again = Quick { again: "tidegate quick http://a/b".into(), ..quick(None, Some(5e6)) };
        let cases: [(Quick, &NextContext<'_>, Vec<&str>); 8] = [
            (quick(None, None), &STRANGER, vec![serve[0], serve[1], page]),
            (quick(None, None), &with_echo, vec![serve[0], serve[1], page, echo]),
            (quick(Some(5e6), None), &with_echo, vec![serve[0], serve[1], page]),
            (quick(None, Some(5e6)), &with_echo, vec![serve[0], serve[1], echo]),
            (quick(None, None), &both_asked, serve.to_vec()),
            (quick(Some(5e6), Some(5e6)), &STRANGER, vec![]),
            (quick(None, None), &server, vec![]),
            (again, &debian, vec![serve[0], serve[1], allows, "tidegate quick http://a/b"]),
        ];
        for (n, (quick, asked, expected)) in cases.into_iter().enumerate() {
            assert_eq!(commands(&quick, asked), expected, "case {n}");
        }
    }

    #[test]
    fn the_policy_is_applied_from_where_it_is() {
        let policy = "device = \"eth0\"\nup = \"5mbit\"\n# down = \"…\": not measured\n".to_owned();
        let whole = Remedy { policy: policy.clone(), ..Remedy::default() };
        let kept = Remedy { saved: Some("my fix.toml".into()), ..whole.clone() };
        let half = Remedy { policy, missing: Some("download".into()), ..Remedy::default() };
        let with = |remedy: &Remedy| Quick { remedy: Some(remedy.clone()), ..quick(Some(5e6), Some(9e6)) };
        let root = NextContext { has_server: true, far: " --port 9000", is_root: true, ..STRANGER };
        let expected = [
            "tidegate calibrate 192.0.2.1 --port 9000",
            "tidegate overhead 192.0.2.1 --port 9000",
            "tidegate apply 'my fix.toml' --confirm 60s",
            "tidegate revert eth0",
            "tidegate verify 192.0.2.1 --port 9000 --policy 'my fix.toml' --test tcp_4up",
        ];
        assert_eq!(commands(&with(&kept), &root), expected);
        let unsaved = "printf '%s\\n' 'device = \"eth0\"' 'up = \"5mbit\"' > home.toml && sudo tidegate \
            apply \
                       home.toml --confirm 60s";
        assert_eq!(commands(&with(&whole), &STRANGER), [unsaved]);
        assert_eq!(commands(&with(&half), &STRANGER), [unsaved]);
        let what = &steps(&with(&half), &STRANGER)[0].what;
        assert!(what.contains("without the download, whose rate is missing"), "{what}");
    }
}
