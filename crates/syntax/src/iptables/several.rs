//! `-s A,B` and `-d C,D`: one command line for a rule of each pair, as iptables has it.

use super::refused::complain;
use crate::Refusal;

/// Rules of one command line at most.
const MOST_RULES: usize = 1024;

/// The command lines that one stands for: itself, unless it names several sources or destinations.
///
/// # Errors
/// Where iptables takes one address only: in a rule that replaces another, and behind a `!`.
pub fn spread(tool: &str, args: &[String]) -> Result<Vec<Vec<String>>, Refusal> {
    let mut lines = vec![args.to_vec()];
    // All destinations of the first source come first (asked of Linux 6.1, iptables 1.8.9).
    for flags in [["-s", "--source", "--src"], ["-d", "--destination", "--dst"]] {
        let Some(at) = args.iter().position(|word| flags.contains(&word.as_str())).map(|at| at + 1) else {
            continue;
        };
        let Some(text) = args.get(at).filter(|text| text.contains(',')) else { continue };
        if at >= 2 && args[at - 2] == "!" {
            let what = "! not allowed with multiple source or destination IP addresses";
            return Err(complain(tool, what).at(at));
        }
        if args.iter().any(|word| word == "-R" || word == "--replace") {
            return Err(complain(tool, "Replacement rule does not specify a unique address").at(at));
        }
        let addresses: Vec<&str> = text.split(',').collect();
        if lines.len() * addresses.len() > MOST_RULES {
            return Err(Refusal::new(2, format!("tidegate: more than {MOST_RULES} rules in one command"))
                .at(at)
                .remedy("Write several commands, with fewer addresses each."));
        }
        let with = |line: &Vec<String>, address: &str| {
            let mut line = line.clone();
            address.clone_into(&mut line[at]);
            line
        };
        lines = lines.iter().flat_map(|line| addresses.iter().map(|one| with(line, one))).collect();
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Vec<String>, String> {
        let args: Vec<String> = text.split(' ').map(str::to_owned).collect();
        match spread("iptables", &args) {
            Ok(lines) => Ok(lines.into_iter().map(|line| line.join(" ")).collect()),
            Err(refusal) => Err(refusal.stderr.lines().next().unwrap_or_default().to_owned()),
        }
    }

    #[test]
    fn each_pair_of_addresses_is_a_rule() {
        assert_eq!(lines("-A FORWARD -s 10.0.0.1"), Ok(vec!["-A FORWARD -s 10.0.0.1".to_owned()]));
        let pairs = ["1 -d 3", "1 -d 4", "2 -d 3", "2 -d 4"].map(|pair| format!("-A FORWARD -s {pair} -j X"));
        assert_eq!(lines("-A FORWARD -s 1,2 -d 3,4 -j X"), Ok(pairs.to_vec()));
        let refused = |what: &str| Err(format!("iptables v1.8.9 (nf_tables): {what}"));
        let not = "! not allowed with multiple source or destination IP addresses";
        assert_eq!(lines("-A FORWARD ! -s 1,2"), refused(not));
        assert_eq!(
            lines("-R FORWARD 1 --src 1,2"),
            refused("Replacement rule does not specify a unique address")
        );
        let many = vec!["1"; 33].join(",");
        assert!(lines(&format!("-A FORWARD -s {many} -d {many}")).is_err());
    }
}
