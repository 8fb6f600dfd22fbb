//! Commands that a smaller build leaves out: help, manual pages and errors name them, and say where they are.

/// The headings of commands, and what they hold.
pub(crate) type Groups = [(&'static str, &'static [&'static str])];

/// Above the names of what is left out.
pub(crate) const HEADING: &str = "Not in this smaller build, but in the packages for Linux computers";

/// The commands that the program has when nothing is left out, and this parser lacks.
pub(crate) fn left_out(parser: &clap::Command, groups: &Groups) -> Vec<&'static str> {
    let names = groups.iter().flat_map(|(_, names)| names.iter().copied());
    // clap adds its own `help` later.
    names.filter(|name| *name != "help" && parser.find_subcommand(name).is_none()).collect()
}

/// What is left out, in a list.
pub(crate) fn listed(commands: &[&str]) -> String {
    let pages = if crate::outputs::PAGES { "" } else { "; pages and pictures" };
    format!("{}{pages}", commands.join(", "))
}

/// The error for a command that is left out.
pub(crate) fn refusal(name: &str) -> String {
    format!(
        "`tidegate {name}` is not in this smaller build; the packages for Linux computers (.deb, .rpm, \
        linux.tar.gz) have it"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const GROUPS: &Groups = &[("Look", &["check", "sim"]), ("Other", &["help"])];

    /// A program that has one of these commands.
    pub(crate) fn smaller() -> clap::Command {
        clap::Command::new("tidegate").subcommand(clap::Command::new("check").about("Find mistakes"))
    }

    #[test]
    fn what_the_parser_lacks_is_left_out() {
        assert_eq!(left_out(&smaller(), GROUPS), ["sim"]);
        assert_eq!(left_out(&smaller().subcommand(clap::Command::new("sim")), GROUPS), [""; 0]);
    }
}
