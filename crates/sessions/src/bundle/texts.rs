//! The texts of a bundle for people and their tools: how to do it again, how to cite it, what is where.

use super::commands::{BundleCommand, quoted};
use super::document::Provenance;
use std::fmt::Write as _;

/// Who made a bundle, and what it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation {
    /// The title.
    pub title: String,
    /// Its authors, each `Family, Given` or the name of an organisation; empty: none is named.
    pub authors: Vec<String>,
}

/// The script that does everything again. It uses what POSIX has, and `sha256sum`.
pub(super) fn reproduce(provenance: &Provenance) -> String {
    let line = |command: &BundleCommand| {
        let words: Vec<String> = command.words.iter().map(|word| quoted(word)).collect();
        let accepted = if command.exit == 1 { " || [ $? -eq 1 ]" } else { "" };
        format!("\"$tidegate\" --quiet {} > /dev/null{accepted}\n", words.join(" "))
    };
    let commands: String = provenance.commands.iter().map(line).collect();
    format!(
        "\
#!/bin/sh
# Checks this bundle, does everything in it again in another directory, and compares each result to the byte.
#
#   ./reproduce.sh [NEW-DIRECTORY]      without it, a temporary one, which is kept only where results differ
#
# It needs sha256sum, and tidegate {version}: from the PATH, or as TIDEGATE=/path/to/tidegate.
# `tidegate bundle --check DIRECTORY` does the same, refuses links and files that are not listed, and runs nothing but
# tidegate: use that for the bundle of a stranger, which may have another script in this place.
set -eu
unset CDPATH
tidegate=$(command -v \"${{TIDEGATE:-tidegate}}\") || {{
    echo 'reproduce.sh: tidegate is not found; set TIDEGATE to its path' >&2
    exit 2
}}
case $tidegate in
    /*) ;;
    *) tidegate=$PWD/$tidegate ;;
esac
here=$(cd -- \"$(dirname -- \"$0\")\" && pwd -P)
if [ $# -gt 0 ]; then
    mkdir -- \"$1\"
    again=$(cd -- \"$1\" && pwd -P)
else
    again=$(mktemp -d)
    trap 'rm -rf -- \"$again\"' EXIT
    trap 'exit 1' HUP INT TERM
fi

cd -- \"$here\"
sha256sum -c SHA256SUMS > \"$again/sums.txt\" || {{
    grep -v ': OK$' \"$again/sums.txt\" >&2 || true
    echo 'reproduce.sh: the bundle was changed since it was made' >&2
    exit 1
}}
if [ \"$(sha256sum < \"$tidegate\")\" != '{program}  -' ]; then
    echo 'reproduce.sh: this is another build of tidegate than the one that made the bundle' >&2
fi

cp -R inputs \"$again/inputs\"
mkdir \"$again/results\" \"$again/figures\"
cd -- \"$again\"
{commands}
grep -E '^[0-9a-f]{{64}}  (results|figures)/' \"$here/SHA256SUMS\" > expected.txt
sha256sum -c expected.txt > sums.txt || {{
    grep -v ': OK$' sums.txt >&2 || true
    trap - EXIT
    echo \"reproduce.sh: results differ; the new ones are in $again\" >&2
    exit 1
}}
echo \"All $(wc -l < expected.txt | tr -d ' ') results are the same to the byte\"
",
        version = provenance.version,
        program = provenance.program.sha256,
    )
}

/// How the bundle is cited, in the Citation File Format 1.2.0.
pub(super) fn citation(citation: &Citation, version: &str) -> String {
    let mut out = format!(
        "cff-version: 1.2.0\nmessage: If you use these results, please cite them as below.\ntype: dataset\n\
        title: {}\nauthors:\n",
        yaml(&citation.title)
    );
    for author in &citation.authors {
        let _ = match author.split_once(',').map(|(family, given)| (family.trim(), given.trim())) {
            Some((family, given)) => {
                writeln!(out, "  - family-names: {}\n    given-names: {}", yaml(family), yaml(given))
            }
            None => writeln!(out, "  - name: {}", yaml(author.trim())),
        };
    }
    if citation.authors.is_empty() {
        out.push_str("  - name: Anonymous\n");
    }
    let _ = write!(
        out,
        "references:\n  - type: software\n    title: tidegate\n    version: {}\n    authors:\n      \
        - name: The tidegate authors\n",
        yaml(version)
    );
    out
}

/// Text as YAML has it in double quotes, which is as JSON has it.
fn yaml(text: &str) -> String {
    tidegate_text::json(&serde_json::Value::from(text).to_string()).to_string()
}

/// What is where, for people.
pub(super) fn readme(provenance: &Provenance, title: &str) -> String {
    let mut out = format!("# {}\n\n", markdown(title));
    let seeds = &provenance.seeds;
    let seeds = match (seeds.first(), seeds.last()) {
        (Some(first), Some(last)) if first == last => format!("the seed {first}"),
        (Some(first), Some(last)) => format!("{} seeds from {first} to {last}", seeds.len()),
        _ => "no seed".to_owned(),
    };
    let _ = writeln!(
        out,
        "Results of tidegate {}, simulated: {} with {seeds}.\n\n\
        | | |\n|---|---|\n\
        | `inputs/` | the scenario (`{}`) and the files that it reads |\n\
        | `results/`, `figures/` | what the commands below wrote |\n\
        | `provenance.json` | the program, inputs, seeds, commands and results, with their SHA-256 |\n\
        | `SHA256SUMS` | of all other files, for `sha256sum -c SHA256SUMS` |\n\
        | `CITATION.cff` | how to cite this |\n\n\
        `./reproduce.sh` and `tidegate bundle --check .` do everything again in another directory, and compare\n\
        the results to the byte. The commands, in this directory:\n\n```sh",
        provenance.version,
        counted(provenance.runs, "run"),
        provenance.scenario
    );
    for command in &provenance.commands {
        let words: Vec<String> = command.words.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(out, "tidegate {}", words.join(" "));
    }
    out.push_str("```\n");
    if !provenance.outside.is_empty() {
        out.push_str(
            "\nFiles that scripts name, or that tidegate reads, and that are not in here; where results depend on \
            them, they\ncan be had again only where these files are the same:\n\n",
        );
        for file in &provenance.outside {
            let _ = writeln!(out, "- {}", markdown(&file.path));
        }
    }
    out
}

/// A number of things.
pub(super) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Text without meaning for Markdown.
fn markdown(text: &str) -> String {
    tidegate_text::line(text).to_string().chars().fold(String::new(), |mut out, letter| {
        if letter.is_ascii_punctuation() && !",.:/-()".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_is_yaml_whatever_is_in_it() {
        let of = Citation {
            title: "A \"title\": {x}\n# no comment\u{1b}\u{85}".into(),
            authors: vec!["Lovelace, Ada".into(), "ACME: Labs".into()],
        };
        let text = citation(&of, "0.2.0");
        assert!(text.contains(r#"title: "A \"title\": {x}\n# no comment\u001b\u0085""#), "{text}");
        assert!(text.contains("  - family-names: \"Lovelace\"\n    given-names: \"Ada\"\n"), "{text}");
        assert!(text.contains("  - name: \"ACME: Labs\"\n"), "{text}");
        assert!(citation(&Citation::default(), "1").contains("authors:\n  - name: Anonymous\n"));
    }

    #[test]
    fn text_means_nothing_in_markdown() {
        assert_eq!(markdown("a_b <i> [x](y) `z`\n"), r"a\_b \<i\> \[x\](y) \`z\`\\n");
    }
}
