//! `-o FILE`: what a result is written as follows from the extension of the file's name.

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// Are there pages, pictures and files for flent in this build?
pub(crate) const PAGES: bool = cfg!(feature = "pages");

/// A form that a result is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A document for programs.
    Json,
    /// A page: one file that needs no network.
    Html,
    /// A picture.
    Svg,
    /// A picture of pixels.
    Png,
    /// A picture for papers.
    Pdf,
    /// A run as flent reads it.
    Flent,
    /// A graph for Graphviz.
    Dot,
    /// A graph for Mermaid.
    Mermaid,
    /// Plain text.
    Text,
    /// Findings for code hosts and editors (SARIF 2.1.0).
    Sarif,
    /// Outcomes of tests for CI systems (JUnit).
    JUnit,
    /// Outcomes of tests (Test Anything Protocol).
    Tap,
    /// Rows of figures.
    Csv,
}

impl Form {
    /// The extensions that ask for it, the usual one first.
    const fn extensions(self) -> &'static [&'static str] {
        match self {
            Form::Json => &["json"],
            Form::Html => &["html"],
            Form::Svg => &["svg"],
            Form::Png => &["png"],
            Form::Pdf => &["pdf"],
            Form::Flent => &["flent.gz"],
            Form::Dot => &["dot", "gv"],
            Form::Mermaid => &["mmd", "mermaid"],
            Form::Text => &["txt"],
            Form::Sarif => &["sarif"],
            Form::JUnit => &["xml"],
            Form::Tap => &["tap"],
            Form::Csv => &["csv"],
        }
    }

    /// The one of these forms that a file name chooses: for standard output, a device or a pipe, which have
    /// no extension, the first. (A directory is refused where it is written.)
    pub(crate) fn of(path: &Path, forms: &[Form]) -> Option<Form> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let fits = |extension: &&str| name.strip_suffix(*extension).is_some_and(|stem| stem.ends_with('.'));
        let mut forms = forms.iter().copied().filter(|form| form.is_built()).peekable();
        let first = forms.peek().copied().filter(|_| is_special(path));
        forms.find(|form| form.extensions().iter().any(&fits)).or(first)
    }

    /// Does this build write it?
    const fn is_built(self) -> bool {
        PAGES || !matches!(self, Form::Html | Form::Svg | Form::Png | Form::Pdf | Form::Flent)
    }
}

/// Is this standard output, a device, a pipe or a directory?
fn is_special(path: &Path) -> bool {
    crate::output::is_stdout(path)
        || path.to_string_lossy().ends_with('/')
        || path.metadata().is_ok_and(|metadata| !metadata.is_file())
}

/// A file for a result, and the form that its name chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// Where it is written.
    pub path: PathBuf,
    /// As what.
    pub form: Form,
}

/// Reads the value of `-o`: a name with the extension of one of these forms. Others are refused with the
/// list, before anything runs.
pub(crate) fn output_file(forms: &'static [Form]) -> impl TypedValueParser<Value = ReportFile> {
    OsStringValueParser::new().try_map(move |name| {
        let path = PathBuf::from(name);
        Form::of(&path, forms).map(|form| ReportFile { path, form }).ok_or_else(|| unknown(forms))
    })
}

/// The error for any other name.
pub(crate) fn unknown(forms: &[Form]) -> String {
    let built = forms.iter().filter(|form| form.is_built());
    let all: Vec<String> =
        built.flat_map(|form| form.extensions()).map(|extension| format!(".{extension}")).collect();
    let known = match all.split_last() {
        Some((last, [])) => format!("the name must end in {last}"),
        Some((last, others)) => {
            format!("unknown extension; the name must end in {} or {last}", others.join(", "))
        }
        None => "nothing can be written".into(),
    };
    match forms.iter().all(|form| form.is_built()) {
        true => known,
        false => format!("{known}: others are not in this smaller build"),
    }
}

/// The paths of these files.
pub(crate) fn paths(files: &[ReportFile]) -> impl Iterator<Item = &Path> {
    files.iter().map(|file| file.path.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_a_form() {
        let forms = [Form::Json, Form::Html, Form::Flent, Form::Dot];
        let rows = [
            ("a.json", Some(Form::Json)),
            ("dir.d/A.HTML", Some(Form::Html)),
            ("a.b.flent.gz", Some(Form::Flent)),
            ("a.gv", Some(Form::Dot)),
            ("a.gz", None),
            ("a.svg", None),
            ("json", None),
            ("ajson", None),
            ("-", Some(Form::Json)),
            ("/dev/stdout", Some(Form::Json)),
            ("/dev/null", Some(Form::Json)),
            ("new/", Some(Form::Json)),
            (".", Some(Form::Json)),
            ("..", Some(Form::Json)),
        ];
        for (name, form) in rows {
            assert_eq!(Form::of(Path::new(name), &forms), form, "{name}");
        }
        assert_eq!(unknown(&forms[..2]), "unknown extension; the name must end in .json or .html");
        assert_eq!(unknown(&forms[..1]), "the name must end in .json");
    }
}
