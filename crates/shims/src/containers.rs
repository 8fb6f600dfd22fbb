//! Programs that run another one in the network of a container, a process or another machine: what they run,
//! and where.
//!
//! What they do besides (images, volumes, processes) is not played: a call that only that is about succeeds
//! in silence or is refused in our name.

/// The programs.
pub(crate) const CONTAINER_TOOLS: [&str; 9] =
    ["docker", "docker-compose", "podman", "nerdctl", "kubectl", "lxc", "incus", "lxc-attach", "nsenter"];

/// What a call of such a program asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ContainerCall<'w> {
    /// To run these words in the network of a container, or of a process.
    Run { place: &'w str, words: &'w [String] },
    /// To print the number of a container's first process.
    Pid { container: &'w str },
    /// To make a container, and print its name.
    Make { container: &'w str },
    /// Something that leaves networks as they are.
    Nothing,
    /// Something else, by its name.
    Other(String),
}

/// Reads a call. `None`: of another tool.
pub(crate) fn read<'w>(tool: &str, args: &'w [String]) -> Option<ContainerCall<'w>> {
    if !CONTAINER_TOOLS.contains(&tool) {
        return None;
    }
    let found = match tool {
        "nsenter" => nsenter(args),
        "lxc-attach" => lxc_attach(args),
        "kubectl" => kubectl(args),
        "lxc" | "incus" => lxc(args),
        _ => engine(args, tool == "docker-compose"),
    };
    Some(found.unwrap_or_else(|| {
        let verb = args.iter().find(|word| !word.starts_with('-'));
        ContainerCall::Other(verb.map_or_else(|| tool.to_owned(), |verb| format!("{tool} {verb}")))
    }))
}

/// Options of docker's kind that have a value behind them.
const OF_EXEC: [&str; 12] = [
    "-e",
    "--env",
    "-u",
    "--user",
    "-w",
    "--workdir",
    "--env-file",
    "--detach-keys",
    "--index",
    "-f",
    "-p",
    "-H",
];

/// Verbs that change nothing which a policy is about.
const HARMLESS: [&str; 16] = [
    "start", "stop", "restart", "rm", "rmi", "kill", "pull", "build", "tag", "network", "volume", "image",
    "up", "down", "login", "wait",
];

/// `docker [container|compose] exec [OPTIONS] NAME COMMAND…`, `inspect`, `run -d --name NAME`.
fn engine(args: &[String], compose: bool) -> Option<ContainerCall<'_>> {
    let mut rest = behind_options(args, &OF_EXEC);
    let mut is_compose = compose;
    if let [object, more @ ..] = rest
        && matches!(object.as_str(), "container" | "compose")
    {
        is_compose |= object == "compose";
        rest = behind_options(more, &OF_EXEC);
    }
    let (verb, rest) = rest.split_first()?;
    match verb.as_str() {
        "exec" => run(behind_options(rest, &OF_EXEC)),
        "inspect" => pid(rest),
        "run" | "create" => made(verb, rest),
        verb if HARMLESS.contains(&verb) && (is_compose || !["up", "down"].contains(&verb)) => {
            Some(ContainerCall::Nothing)
        }
        _ => None,
    }
}

/// A name, and the words behind it.
fn run(words: &[String]) -> Option<ContainerCall<'_>> {
    let (place, words) = words.split_first()?;
    let words = words.strip_prefix(&["--".to_owned()][..]).unwrap_or(words);
    (!words.is_empty() && !place.is_empty()).then_some(ContainerCall::Run { place, words })
}

/// `inspect -f '{{.State.Pid}}' NAME`.
fn pid(words: &[String]) -> Option<ContainerCall<'_>> {
    let mut format: Option<&str> = None;
    let mut container: Option<&str> = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-f" | "--format" => format = words.next().map(String::as_str),
            "--type" => drop(words.next()),
            option if option.starts_with('-') => {
                let value = option.strip_prefix("--format=").or_else(|| option.strip_prefix("-f"));
                format = value.map(|value| value.trim_start_matches('=')).or(format);
            }
            name if container.is_none() && !name.is_empty() => container = Some(name),
            _ => return None,
        }
    }
    let plain: String = format?.chars().filter(|letter| !" \"'".contains(*letter)).collect();
    container.filter(|_| plain == "{{.State.Pid}}").map(|container| ContainerCall::Pid { container })
}

/// `run -d --name NAME …`: what runs in it is its image's, unless the words name tc.
fn made<'w>(verb: &str, words: &'w [String]) -> Option<ContainerCall<'w>> {
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let detached = words.iter().any(|word| {
        matches!(word.as_str(), "--detach" | "--detach=true")
            || is_short(word) && word.len() <= 5 && word.contains('d') && !word.contains('=')
    });
    let on_host = words.iter().any(|word| word == "host" || word.ends_with("=host"));
    let is_tc = |word: &String| word.split(['/', ' ', ';']).any(|part| part == "tc");
    let at = words.iter().position(|word| word == "--name" || word.starts_with("--name="))?;
    let container = match words[at].strip_prefix("--name=") {
        Some(name) => name,
        None => words.get(at + 1)?,
    };
    let is_plain = (detached || verb == "create") && !on_host && !words.iter().any(is_tc);
    (is_plain && !container.is_empty()).then_some(ContainerCall::Make { container })
}

/// `lxc-attach -n NAME [--] COMMAND…`.
fn lxc_attach(args: &[String]) -> Option<ContainerCall<'_>> {
    let mut place: Option<&str> = None;
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        match word.as_str() {
            "--" => break,
            "-n" | "--name" => {
                place = args.get(at).map(String::as_str);
                at += 1;
            }
            "-P" | "--lxcpath" | "-u" | "--uid" | "-g" | "--gid" | "-v" | "--set-var" => at += 1,
            option => place = option.strip_prefix("--name=").or(place),
        }
    }
    let words = args.get(at..).filter(|words| !words.is_empty())?;
    place.map(|place| ContainerCall::Run { place, words })
}

/// `lxc exec NAME [OPTIONS] -- COMMAND…`.
fn lxc(args: &[String]) -> Option<ContainerCall<'_>> {
    let [verb, place, rest @ ..] = args else { return None };
    let at = rest.iter().position(|word| word == "--")?;
    let words = &rest[at + 1..];
    (verb == "exec" && !words.is_empty()).then_some(ContainerCall::Run { place, words })
}

/// `kubectl exec [OPTIONS] POD [OPTIONS] -- COMMAND…`.
fn kubectl(args: &[String]) -> Option<ContainerCall<'_>> {
    const WITH_VALUE: [&str; 6] = ["-n", "--namespace", "-c", "--container", "--context", "--kubeconfig"];
    let (verb, rest) = behind_options(args, &WITH_VALUE).split_first()?;
    let at = rest.iter().position(|word| word == "--")?;
    let place = behind_options(&rest[..at], &WITH_VALUE).first()?;
    let words = &rest[at + 1..];
    (verb == "exec" && !words.is_empty()).then_some(ContainerCall::Run { place, words })
}

/// `nsenter -t PID -n COMMAND…`, `nsenter --net=FILE COMMAND…`.
fn nsenter(args: &[String]) -> Option<ContainerCall<'_>> {
    let (mut of, mut file, mut net) = (None, None, false);
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        if let Some(path) = word.strip_prefix("--net=") {
            (net, file) = (true, Some(path));
        } else if let Some(number) = word.strip_prefix("--target=") {
            of = Some(number);
        } else if word.starts_with("--") {
            match word.as_str() {
                "--" => break,
                "--net" | "--all" => net = true,
                "--target" | "--setuid" | "--setgid" => {
                    of = of.or_else(|| args.get(at).map(String::as_str).filter(|_| word == "--target"));
                    at += 1;
                }
                _ => {}
            }
        } else {
            // `-t 7 -n`, `-nt7`, `-n/run/netns/blue`.
            for (place, letter) in word[1..].char_indices() {
                let value = &word[1 + place + letter.len_utf8()..];
                match letter {
                    't' | 'S' | 'G' => {
                        let own =
                            if value.is_empty() { args.get(at).map(String::as_str) } else { Some(value) };
                        at += usize::from(value.is_empty());
                        of = own.filter(|_| letter == 't').or(of);
                        break;
                    }
                    'n' | 'a' => {
                        net = true;
                        if let Some(path) =
                            Some(value.trim_start_matches('=')).filter(|path| path.contains('/'))
                        {
                            file = Some(path);
                            break;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    let words = args.get(at..).filter(|words| !words.is_empty())?;
    let of_file = file.map(|path| match path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/')) {
        Some((process, _)) => process,
        None => path.rsplit('/').next().unwrap_or(path),
    });
    let place = of_file.or(of).filter(|place| net && !place.is_empty())?;
    Some(ContainerCall::Run { place, words })
}

/// What stands behind options; `valued` are those that have a value as the next word.
fn behind_options<'w>(words: &'w [String], valued: &[&str]) -> &'w [String] {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-') && *word != "--") {
        at += 1 + usize::from(valued.contains(&word.as_str()));
    }
    words.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match read(&words[0], &words[1..]) {
            None => "another tool".to_owned(),
            Some(ContainerCall::Run { place, words }) => format!("{place}: {}", words.join(" ")),
            Some(ContainerCall::Pid { container }) => format!("pid {container}"),
            Some(ContainerCall::Make { container }) => format!("make {container}"),
            Some(ContainerCall::Nothing) => "nothing".to_owned(),
            Some(ContainerCall::Other(what)) => format!("other {what}"),
        }
    }

    #[test]
    fn what_runs_in_a_container_is_found() {
        for (line, expected) in [
            ("docker exec web tc qdisc show", "web: tc qdisc show"),
            ("docker exec -it --privileged -u root web tc -s qdisc", "web: tc -s qdisc"),
            ("docker -H tcp://a container exec -e A=b web sh -c x", "web: sh -c x"),
            ("docker compose -f a.yml exec -T db tc qdisc", "db: tc qdisc"),
            ("docker-compose exec db tc qdisc", "db: tc qdisc"),
            ("docker exec web", "other docker exec"),
            ("podman exec web -- tc qdisc", "web: tc qdisc"),
            ("kubectl -n prod exec web-0 -c app -- tc qdisc", "web-0: tc qdisc"),
            ("kubectl get pods", "other kubectl get"),
            ("lxc exec box -- tc qdisc", "box: tc qdisc"),
            ("lxc-attach -n box -- tc qdisc", "box: tc qdisc"),
            ("lxc-attach --name=box tc qdisc", "box: tc qdisc"),
            ("nsenter -t 77 -n tc qdisc", "77: tc qdisc"),
            ("nsenter -nt77 tc qdisc", "77: tc qdisc"),
            ("nsenter --target 77 --net tc qdisc", "77: tc qdisc"),
            ("nsenter --net=/var/run/netns/blue tc qdisc", "blue: tc qdisc"),
            ("nsenter -n/proc/77/ns/net tc qdisc", "77: tc qdisc"),
            ("nsenter -m -u -t 77 -n -i -- tc qdisc", "77: tc qdisc"),
            // In its own network.
            ("nsenter -t 77 -m tc qdisc", "other nsenter 77"),
            ("ssh router tc qdisc", "another tool"),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }

    #[test]
    fn what_else_is_asked_of_an_engine_is_known_or_refused() {
        for (line, expected) in [
            ("docker inspect -f {{.State.Pid}} web", "pid web"),
            ("docker inspect --format={{.State.Pid}} web", "pid web"),
            ("podman inspect web --format '{{.State.Pid}}'", "pid web"),
            ("docker inspect -f {{.NetworkSettings.IPAddress}} web", "other docker inspect"),
            ("docker inspect web", "other docker inspect"),
            ("docker run -d --name web nginx", "make web"),
            ("docker run -itd --name=web --cap-add NET_ADMIN nginx", "make web"),
            ("docker create --name web nginx", "make web"),
            ("docker run --rm alpine ping a", "other docker run"),
            ("docker run -d nginx", "other docker run"),
            // These configure the host.
            ("docker run -d --name t --network host alpine", "other docker run"),
            ("docker run -d --name t alpine sh -c tc qdisc", "other docker run"),
            ("docker start web", "nothing"),
            ("docker rm -f web", "nothing"),
            ("docker compose up -d", "nothing"),
            ("docker ps -q", "other docker ps"),
            ("docker", "other docker"),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }
}
