//! `[sweep]` in a scenario's file.

use crate::axis::SweepAxis;
use crate::plan::{Method, SweepPlan};
use tidegate_scenario::CaseChoice;
use tidegate_scenario::settings::full_path;
use tidegate_scenario::tables::{
    self, Diagnostic, Keys, TableValue, in_order, list, number, plain, text, texts,
};
use toml::de::DeValue;

/// A sweep as a file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepFile {
    /// What is varied.
    pub plan: SweepPlan,
    /// How many repeats each case has; `None`: as many as the scenario says.
    pub repeats: Option<u32>,
    /// The figures that are kept; empty: all.
    pub figures: Vec<String>,
    /// Which cases of the scenario are run: nothing of the file's.
    pub choice: CaseChoice,
}

/// The most repeats, and samples of a Latin hypercube.
pub const MAX_REPEATS: u64 = 10_000;
const MAX_SAMPLES: u64 = 1_000_000;

/// The sweep of a scenario's text; without `[sweep]` one that varies nothing.
///
/// # Errors
/// What is wrong with the table, and where.
///
/// ```
/// let text = "[sweep]\nset = { 'home.rtt' = '10..160ms:log5', 'home.up' = ['1mbit', '5mbit'] }\n\
///     repeats = 3\n";
/// let sweep = tidegate_sweep::read(text).unwrap();
/// assert_eq!((sweep.plan.cases().unwrap().len(), sweep.repeats), (10, Some(3)));
/// ```
pub fn read(text_of: &str) -> Result<SweepFile, Diagnostic> {
    let parsed = tables::parse(text_of)?;
    let mut all = Keys::new(parsed.get_ref(), 0..0);
    let Some(table) = all.get("sweep") else { return Ok(SweepFile::default()) };
    let mut keys = Keys::of(table)?;
    let mut sweep = SweepFile::default();
    if let Some(value) = keys.get("set") {
        let DeValue::Table(axes) = value.get_ref() else {
            let how = "write `set = { \"home.rtt\" = \"10..160ms:log5\" }`, or `[sweep.set]`";
            return Err(Diagnostic::new(value.span(), "expected a table of paths and values", how));
        };
        for (path, values) in in_order(axes) {
            sweep.plan.axes.push(axis(&full_path(text_of, path.get_ref()), values)?);
        }
    }
    let samples = keys.read("samples", |value| Ok((number(value, 1, MAX_SAMPLES)? as u32, value.span())))?;
    let method = keys.get("method");
    sweep.plan.method = match (method.map(text).transpose()?, samples) {
        (None | Some("grid"), None) => Method::Grid,
        (Some("paired"), None) => Method::Paired,
        (None | Some("latin"), Some((samples, _))) => Method::Latin(samples),
        (Some("latin"), None) => {
            let at = method.map_or(0..0, |value| value.span());
            return Err(Diagnostic::new(at, "a Latin hypercube needs its number", "add `samples = 100`"));
        }
        (Some("grid" | "paired"), Some((_, at))) => {
            let how = "take it away, or write `method = \"latin\"`";
            return Err(Diagnostic::new(at, "only a Latin hypercube has samples", how));
        }
        (Some(other), _) => {
            let at = method.map_or(0..0, |value| value.span());
            return Err(Diagnostic::new(
                at,
                format!("`{other}` is no method"),
                "there are grid, paired, latin",
            ));
        }
    };
    let words = |value: Option<Vec<&str>>| value.unwrap_or_default().into_iter().map(str::to_owned).collect();
    sweep.plan.only = words(keys.read("only", texts)?);
    sweep.plan.skip = words(keys.read("skip", texts)?);
    sweep.figures = words(keys.read("figures", texts)?);
    sweep.repeats = keys.read("repeats", |value| number(value, 1, MAX_REPEATS))?.map(|n| n as u32);
    keys.finish()?;
    Ok(sweep)
}

fn axis(path: &str, value: TableValue<'_>) -> Result<SweepAxis, Diagnostic> {
    let parts: Vec<String> = match value.get_ref() {
        DeValue::Array(_) => list(value)?.iter().map(plain).collect::<Result<_, _>>()?,
        _ => plain(value)?.split(',').map(|part| part.trim().to_owned()).collect(),
    };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    SweepAxis::of(path, &parts)
        .map_err(|wrong| Diagnostic::new(value.span(), wrong.0, "docs/sweep.md has the forms of values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_a_plan() {
        let text = "[values]\ntarget = '5ms'\n[sweep]\nmethod = 'paired'\nskip = ['target = 1ms']\n\
            figures = ['ping.p95']\n[sweep.set]\ntarget = ['1ms', '2ms']\n'traffic.0.count' = [1, 2]\n";
        let sweep = read(text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let paths: Vec<&str> = sweep.plan.axes.iter().map(|axis| axis.path.as_str()).collect();
        assert_eq!((paths, sweep.plan.method), (vec!["values.target", "traffic.0.count"], Method::Paired));
        let cases = sweep.plan.cases().unwrap_or_default();
        assert_eq!((cases.len(), cases[0].settings[1].value.as_str()), (1, "2"));
        assert_eq!(read("[home]\n"), Ok(SweepFile::default()));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let wrong = |text: &str| match read(&format!("[sweep]\n{text}\n")) {
            Err(wrong) => format!("{} at {}", wrong.reason, &format!("[sweep]\n{text}\n")[wrong.at]),
            Ok(_) => String::new(),
        };
        assert_eq!(wrong("method = 'x'"), "`x` is no method at 'x'");
        assert_eq!(wrong("method = 'latin'"), "a Latin hypercube needs its number at 'latin'");
        assert_eq!(wrong("method = 'grid'\nsamples = 3"), "only a Latin hypercube has samples at 3");
        assert!(wrong("set = 3").starts_with("expected a table of paths"));
        assert!(wrong("set = { a = '2..1:3' }").ends_with("go upwards at '2..1:3'"));
        assert!(wrong("sett = 3").contains("sett"));
    }
}
