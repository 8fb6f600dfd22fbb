//! The word of a command that a complaint is about, by what the complaint says.

/// The argument that an error message names: of those that it quotes the first that there is, or failing that
/// the last that it mentions as a word.
#[must_use]
pub fn blamed(args: &[String], complaint: &str) -> Option<usize> {
    let quoted: Vec<&str> = complaint
        .split(['"', '\'', '`', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'])
        .skip(1)
        .step_by(2)
        .collect();
    let position = |wanted: &&str| args.iter().rposition(|arg| arg == wanted);
    // Of a value that is there twice, the one behind a keyword that is named, too.
    let first = complaint.lines().next().unwrap_or_default();
    let is_named = |word: &str| first.split([' ', '"', ':', '.']).any(|one| one == word);
    let behind = |wanted: &&str| {
        let mut places = (1..args.len()).filter(|at| args[*at] == **wanted);
        (places.clone().count() > 1).then(|| places.find(|at| is_named(&args[at - 1])))?
    };
    let of_keyword = quoted.iter().find_map(behind);
    of_keyword.or_else(|| quoted.iter().find_map(position)).or_else(|| {
        // What is said to the reader behind the tool's own words (`tc: add it first: …`) names other words.
        let said =
            complaint.lines().take_while(|line| !line.starts_with("tc: ") && !line.starts_with("ip: "));
        // Short words occur in many a sentence by chance, and so does the object of tc and ip.
        let position = |wanted: &&str| position(wanted).filter(|at| *at > 0);
        said.collect::<Vec<_>>()
            .join(" ")
            .split([' ', '\n', ':', ',', '.', '"', '\''])
            .filter(|word| word.chars().count() > 3)
            .collect::<Vec<_>>()
            .iter()
            .rev()
            .find_map(position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_word_at_fault() {
        let args: Vec<String> =
            "qdisc add dev eth0 root tbf rate 12k burst 12k latency 5q".split(' ').map(Into::into).collect();
        let rows = [
            // Of what is quoted the first that is there.
            ("Illegal \"latency\": \"5q\"", Some(10)),
            ("What is \"5q\"?", Some(11)),
            // Of a value that is there twice, the one behind the keyword that is named.
            ("Illegal \"rate\": \"12k\"", Some(7)),
            ("burst: \"12k\" is none", Some(9)),
            // Without quotes, the last word of some length; not what our own line says, nor the object.
            ("Cannot find device eth0", Some(3)),
            ("No such qdisc\ntc: burst comes later", None),
            ("RTNETLINK answers: Invalid argument", None),
        ];
        for (said, expected) in rows {
            assert_eq!(blamed(&args, said), expected, "{said}");
        }
    }
}
