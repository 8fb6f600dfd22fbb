//! `tidegate man`: the manual pages, one for each command, from the same words as `--help`.

use crate::exit::CliExit;
use crate::left_out::{self, Groups, left_out};
use anyhow::Context as _;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where on the web, and in packages, the documents are.
const MORE: &str = "/usr/share/doc/tidegate, or docs/README.md in the source";

/// When the version in the pages was made: changed with the version.
const VERSION_DATE: &str = "November 2026";

/// Print the manual page of a command
#[derive(clap::Args)]
#[command(after_help = "\
Packages install these pages, so that `man tidegate-try` shows them.

Exit codes: 0 done; 2 wrong usage or input.

Examples:
  tidegate man try | man -l -
  tidegate man policy new
  tidegate man --dir ~/.local/share/man/man1")]
pub struct Options {
    /// The command; without it the page of tidegate itself
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Plays `tidegate man`. `groups`: the headings of commands and what they hold.
pub(crate) fn command(options: &Options, parser: clap::Command, groups: &Groups) -> ExitCode {
    match attempt(options, parser, groups) {
        Ok(()) => CliExit::Yes.into(),
        Err(error) => {
            eprintln!("tidegate man: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options, mut parser: clap::Command, groups: &Groups) -> anyhow::Result<()> {
    parser.build();
    if let Some(dir) = &options.dir {
        crate::output::directory(dir)?;
        return write_all(dir, &parser, groups);
    }
    let mut command = &parser;
    // `policy-new` is how `man` calls it.
    for word in options.command.iter().flat_map(|word| word.split([' ', '-'])) {
        command =
            command.find_subcommand(word).filter(|command| has_page(command)).with_context(
                || match left_out(&parser, groups).contains(&word) {
                    true => left_out::refusal(word),
                    false => {
                        format!(
                            "there is no command `{word}` in `{}`; `tidegate --help` lists all",
                            name(command)
                        )
                    }
                },
            )?;
    }
    crate::output::text(&page(command, groups)?);
    Ok(())
}

fn write_all(dir: &Path, command: &clap::Command, groups: &Groups) -> anyhow::Result<()> {
    let path = dir.join(format!("{}.1", name(command)));
    crate::output::file(&path, page(command, groups)?)?;
    command
        .get_subcommands()
        .filter(|command| has_page(command))
        .try_for_each(|command| write_all(dir, command, groups))
}

/// clap's own `help` shows what the pages show.
fn has_page(command: &clap::Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// `tidegate-policy-new`, as its page is called.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// A page, in the language of man.
fn page(command: &clap::Command, groups: &Groups) -> anyhow::Result<String> {
    let man = clap_mangen::Man::new(command.clone())
        .title(name(command).to_uppercase())
        .date(VERSION_DATE)
        .source(concat!("tidegate ", env!("CARGO_PKG_VERSION")))
        .manual("Linux traffic control");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    out.extend(synopsis(command).into_bytes());
    man.render_description_section(&mut out)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    let mut roff = Roff::new();
    if command.get_name() == "tidegate" {
        top(&mut roff, command, groups);
    } else if command.has_subcommands() {
        commands(&mut roff, "COMMANDS", command.get_subcommands());
    }
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        after(&mut roff, &text.to_string());
    }
    also(&mut roff, command);
    out.extend(roff.to_roff().into_bytes());
    Ok(String::from_utf8(out)?)
}

/// How the command is called, as its help says: names of options alone would not say what values they take.
fn synopsis(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for (n, line) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if n > 0 {
            roff.control("br", []);
        }
        // The command's own words, then what is to be filled in.
        let words: Vec<&str> = line.split(' ').collect();
        let own = words.iter().take_while(|word| word.starts_with(|first: char| first.is_ascii_lowercase()));
        let (own, rest) = words.split_at(own.count());
        roff.text([bold(own.join(" ")), roman(format!(" {}", rest.join(" ")))]);
    }
    roff.to_roff()
}

/// What the page of tidegate itself lists: commands in their groups.
fn top(roff: &mut Roff, command: &clap::Command, groups: &Groups) {
    for (heading, names) in groups {
        let found = names.iter().filter_map(|name| command.find_subcommand(name));
        commands(roff, &heading.to_uppercase(), found);
    }
    let missing = left_out(command, groups);
    if !missing.is_empty() {
        roff.control("SH", [left_out::HEADING.to_uppercase().as_str()]);
        roff.text([roman(left_out::listed(&missing))]);
    }
}

fn commands<'c>(roff: &mut Roff, heading: &str, all: impl Iterator<Item = &'c clap::Command>) {
    roff.control("SH", [heading]);
    for command in all.filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        roff.control("TP", []);
        roff.text([bold(format!("{}(1)", name(command)))]);
        roff.text([roman(command.get_about().map(ToString::to_string).unwrap_or_default())]);
    }
}

/// What help has behind the options: exit codes and examples get headings of their own.
fn after(roff: &mut Roff, text: &str) {
    let mut heading = "";
    for paragraph in text.split("\n\n").map(str::trim_end).filter(|paragraph| !paragraph.is_empty()) {
        let (found, rest) = match paragraph.split_once(':') {
            Some(("Exit codes", rest)) => ("EXIT STATUS", rest),
            Some(("Examples" | "Example", rest)) => ("EXAMPLES", rest),
            _ => ("NOTES", paragraph),
        };
        if found == heading {
            roff.control("PP", []);
        } else {
            roff.control("SH", [found]);
        }
        heading = found;
        // Lines that are indented are commands or tables, and stay as they are.
        let is_literal = |line: &str| line.starts_with("  ");
        let mut literal = false;
        for line in rest.trim_start_matches(' ').lines().filter(|line| !line.is_empty()) {
            if is_literal(line) != literal {
                literal = is_literal(line);
                roff.control(if literal { "nf" } else { "fi" }, []);
            }
            roff.text([roman(line)]);
        }
        if literal {
            roff.control("fi", []);
        }
    }
}

fn also(roff: &mut Roff, command: &clap::Command) {
    roff.control("SH", ["SEE ALSO"]);
    let others: &[&str] = match command.get_name() {
        "tidegate" => &["tc(8)", "nft(8)"],
        _ => &["tidegate(1)", "tc(8)"],
    };
    let mut line: Vec<_> = others.iter().flat_map(|other| [bold(*other), roman(", ")]).collect();
    line.push(roman(MORE));
    roff.text(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<(String, String)> {
        fn add(pages: &mut Vec<(String, String)>, command: &clap::Command) {
            pages.push((name(command).to_owned(), page(command, &[]).expect("a page")));
            command.get_subcommands().filter(|one| one.get_name() != "help").for_each(|one| add(pages, one));
        }
        let mut parser = crate::command_line::parser();
        parser.build();
        let mut pages = Vec::new();
        add(&mut pages, &parser);
        pages
    }

    #[test]
    fn every_command_has_a_page_with_the_usual_sections() {
        let pages = pages();
        for (name, page) in &pages {
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"] {
                let heading = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
                assert!(
                    heading.iter().any(|heading| page.contains(heading)),
                    "{name} has no {section}:\n{page}"
                );
            }
            assert!(!page.contains("] [\\fB"), "{name}: options without their values:\n{page}");
            let is_command = name != "tidegate" && !name.starts_with("tidegate-policy");
            assert!(!is_command || page.contains("EXAMPLES"), "{name} has no examples:\n{page}");
        }
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"tidegate-policy-new") && names.contains(&"tidegate-try"), "{names:?}");
    }

    #[test]
    fn a_smaller_build_names_the_commands_that_it_lacks() {
        let (smaller, groups) = (crate::left_out::tests::smaller(), crate::left_out::tests::GROUPS);
        let page = page(&smaller, groups).expect("a page");
        let heading = "NOT IN THIS SMALLER BUILD, BUT IN THE PACKAGES FOR LINUX COMPUTERS";
        assert!(page.contains(&format!(".SH \"{heading}\"\nsim\n")), "{page}");
        let options = Options { command: vec!["sim".to_owned()], dir: None };
        let error = attempt(&options, smaller, groups).expect_err("it has no page");
        assert_eq!(error.to_string(), left_out::refusal("sim"));
    }

    #[test]
    fn what_follows_the_options_becomes_sections() {
        let mut roff = Roff::new();
        after(&mut roff, "A note.\n\nExit codes: 0 done; 2 wrong.\n\nExamples:\n  tidegate x\n  tidegate y");
        let text = roff.to_roff();
        assert!(
            text.contains(".SH NOTES\nA note.\n.SH \"EXIT STATUS\"\n0 done; 2 wrong.\n.SH EXAMPLES\n.nf\n"),
            "{text}"
        );
    }
}
