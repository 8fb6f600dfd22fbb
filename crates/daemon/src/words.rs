//! The command line that applies a policy by a daemon, for people to paste.

use serde_json::Value;
use tidegate_text::shell_word as quoted;

/// `tidegate apply --backend user …` for these files, with the options in `document`: a state of `tidegate
/// apply`, or its request to a daemon (`args`, `dev`, `packet_io`, `realtime`, `force`).
///
/// ```
/// use serde_json::json;
///
/// let command = tidegate_daemon::apply_command(&["home.toml".into()], &json!({"dev": "eth0",
/// "packet_io": "auto"})); assert_eq!(command, "tidegate apply --backend user --dev eth0 home.toml");
/// ```
pub fn apply_command(files: &[String], document: &Value) -> String {
    let mut words: Vec<String> = ["tidegate", "apply", "--backend", "user"].map(String::from).to_vec();
    let mut option = |name: &str, value: &Value| {
        words.extend(value.as_str().into_iter().flat_map(|value| [name.to_owned(), value.to_owned()]));
    };
    option("--dev", &document["dev"]);
    if document["packet_io"] != "auto" {
        option("--packet-io", &document["packet_io"]);
    }
    for (member, switch) in [("realtime", "--realtime"), ("force", "--force")] {
        words.extend((document[member] == true).then(|| switch.to_owned()));
    }
    words.extend(files.iter().cloned());
    let args: Vec<&str> =
        document["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !args.is_empty() {
        words.push("--".to_owned());
        words.extend(args.into_iter().map(str::to_owned));
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_has_all_its_words() {
        let files = ["/etc/tidegate/eth0".to_owned()];
        let document =
            json!({"args": ["a b"], "dev": "wan0", "packet_io": "nfqueue", "realtime": true, "force": false});
        assert_eq!(
            apply_command(&files, &document),
            "tidegate apply --backend user --dev wan0 --packet-io nfqueue --realtime /etc/tidegate/eth0 -- 'a b'"
        );
        let plain = json!({"args": [], "dev": null, "packet_io": "auto"});
        assert_eq!(apply_command(&files, &plain), "tidegate apply --backend user /etc/tidegate/eth0");
    }
}
