//! Reading: what is wrong is told with its place in the document.

use super::FORM;
use serde_json::{Map, Value};
use std::fmt;
use tidegate_measure::trial::{BufferSeries, ClassSeries, Flow, LinkFacts, Probe, Run, TreeNode, Trial};

/// Why a text is no trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Where: `runs[3].probes[0].answers[17]`, or line and column of what is no JSON.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; a trial is written by `tidegate try SCRIPT --json`", self.place, self.what)
    }
}

impl std::error::Error for ReadError {}

type Read<T> = Result<T, ReadError>;

/// Reads what [`to_json`](super::to_json) wrote. Members it does not know are passed over.
///
/// # Errors
///
/// The text is no JSON, of another form, or a member is missing, of another type or out of its range; the error names the place.
pub fn from_json(text: &str) -> Read<Trial> {
    let document: Value = serde_json::from_str(text).map_err(|error| ReadError {
        place: format!("line {}, column {}", error.line(), error.column()),
        what: format!("no valid JSON ({})", reason(&error)),
    })?;
    let root = At { value: &document, place: String::new() };
    let form = root.member("tidegate_trial", At::u64)?;
    if form != FORM {
        return Err(root.at("tidegate_trial").wrong(format!("form {form}, where this version reads form {FORM}")));
    }
    trial(&root)
}

/// serde_json's reason, without the place it adds.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// A value and where it stands.
#[derive(Clone)]
struct At<'v> {
    value: &'v Value,
    place: String,
}

impl<'v> At<'v> {
    fn at(&self, name: &str) -> At<'v> {
        let dot = if self.place.is_empty() { "" } else { "." };
        At { value: &self.value[name], place: format!("{}{dot}{name}", self.place) }
    }

    fn wrong(&self, what: impl Into<String>) -> ReadError {
        let place = if self.place.is_empty() { "the document".to_owned() } else { self.place.clone() };
        ReadError { place, what: what.into() }
    }

    fn expected(&self, what: &str) -> ReadError {
        let found = match self.value {
            Value::Array(items) => format!("a list of {}", items.len()),
            Value::Object(_) => "an object".to_owned(),
            plain => plain.to_string().chars().take(40).collect(),
        };
        self.wrong(format!("{what} expected, found {found}"))
    }

    fn object(&self) -> Read<&'v Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.expected("an object"))
    }

    fn member<T>(&self, name: &str, read: impl Fn(&At<'v>) -> Read<T>) -> Read<T> {
        if !self.object()?.contains_key(name) {
            return Err(self.at(name).wrong("missing"));
        }
        read(&self.at(name))
    }

    fn list<T>(&self, read: impl Fn(&At<'v>) -> Read<T>) -> Read<Vec<T>> {
        let items = self.value.as_array().ok_or_else(|| self.expected("a list"))?;
        let item = |(n, value)| read(&At { value, place: format!("{}[{n}]", self.place) });
        items.iter().enumerate().map(item).collect()
    }

    fn maybe<T>(&self, read: impl Fn(&At<'v>) -> Read<T>) -> Read<Option<T>> {
        if self.value.is_null() { Ok(None) } else { read(self).map(Some) }
    }

    fn u64(&self) -> Read<u64> {
        self.value.as_u64().ok_or_else(|| self.expected("a whole number of at least 0"))
    }

    fn u32(&self) -> Read<u32> {
        self.u64()?.try_into().map_err(|_| self.expected("a number of at most 4294967295"))
    }

    fn i64(&self) -> Read<i64> {
        self.value.as_i64().ok_or_else(|| self.expected("a whole number"))
    }

    fn bool(&self) -> Read<bool> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    fn string(&self) -> Read<String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.expected("a text"))
    }

    fn pair<T>(&self, second: impl Fn(&At<'v>) -> Read<T>) -> Read<(u64, T)> {
        match self.value.as_array().map(Vec::as_slice) {
            Some([a, b]) => {
                let at = |value, n: usize| At { value, place: format!("{}[{n}]", self.place) };
                Ok((at(a, 0).u64()?, second(&at(b, 1))?))
            }
            _ => Err(self.expected("a pair")),
        }
    }
}

fn trial(at: &At<'_>) -> Read<Trial> {
    Ok(Trial {
        version: at.member("version", At::string)?,
        again: at.member("again", At::string)?,
        script: at.member("script", At::string)?,
        device: at.member("device", At::string)?,
        commands: at.member("commands", At::u64)?,
        seed: at.member("seed", At::u64)?,
        link: at.member("link", link)?,
        runs: at.member("runs", |list| list.list(run))?,
        tree: at.member("tree", |list| list.list(node))?,
        verdict: at.member("verdict", |list| list.list(At::string))?,
        notes: at.member("notes", |list| list.list(At::string))?,
    })
}

fn link(at: &At<'_>) -> Read<LinkFacts> {
    Ok(LinkFacts {
        up_bits: at.member("up_bits", At::u64)?,
        down_bits: at.member("down_bits", At::u64)?,
        rtt_ns: at.member("rtt_ns", At::u64)?,
        up_buffer_bytes: at.member("up_buffer_bytes", At::u64)?,
        down_buffer_bytes: at.member("down_buffer_bytes", At::u64)?,
    })
}

fn run(at: &At<'_>) -> Read<Run> {
    let step_ns = at.member("step_ns", At::u64)?;
    if step_ns == 0 {
        return Err(at.at("step_ns").wrong("a step of no length"));
    }
    Ok(Run {
        load: at.member("load", At::string)?,
        title: at.member("title", At::string)?,
        policy: at.member("policy", At::bool)?,
        window: at.member("window", |pair| pair.pair(At::u64))?,
        step_ns,
        probes: at.member("probes", |list| list.list(probe))?,
        flows: at.member("flows", |list| list.list(flow))?,
        classes: at.member("classes", |list| list.list(class))?,
        buffers: at.member("buffers", |list| list.list(buffer))?,
    })
}

fn probe(at: &At<'_>) -> Read<Probe> {
    Ok(Probe {
        id: at.member("id", At::string)?,
        title: at.member("title", At::string)?,
        unit: at.member("unit", At::string)?,
        class: at.member("class", |class| class.maybe(At::string))?,
        answers: at.member("answers", |list| list.list(|pair| pair.pair(|took| took.maybe(At::u64))))?,
    })
}

fn flow(at: &At<'_>) -> Read<Flow> {
    Ok(Flow {
        title: at.member("title", At::string)?,
        up: at.member("up", At::bool)?,
        class: at.member("class", |class| class.maybe(At::string))?,
        bytes: at.member("bytes", At::u64)?,
        retransmissions: at.member("retransmissions", At::u64)?,
        lost: at.member("lost", At::u64)?,
        series: at.member("series", |list| list.list(At::u64))?,
    })
}

fn class(at: &At<'_>) -> Read<ClassSeries> {
    Ok(ClassSeries {
        id: at.member("id", At::string)?,
        title: at.member("title", At::string)?,
        leaf: at.member("leaf", At::bool)?,
        sent: at.member("sent", |list| list.list(At::u64))?,
        backlog: at.member("backlog", |list| list.list(At::u64))?,
        qlen: at.member("qlen", |list| list.list(At::u32))?,
        dropped: at.member("dropped", |list| list.list(At::u32))?,
        tokens_us: at.member("tokens_us", |list| list.list(At::i64))?,
        ctokens_us: at.member("ctokens_us", |list| list.list(At::i64))?,
    })
}

fn buffer(at: &At<'_>) -> Read<BufferSeries> {
    Ok(BufferSeries {
        title: at.member("title", At::string)?,
        limit: at.member("limit", At::u64)?,
        backlog: at.member("backlog", |list| list.list(At::u64))?,
        dropped: at.member("dropped", At::u64)?,
    })
}

fn node(at: &At<'_>) -> Read<TreeNode> {
    Ok(TreeNode {
        device: at.member("device", At::string)?,
        id: at.member("id", At::string)?,
        parent: at.member("parent", At::string)?,
        is_class: at.member("is_class", At::bool)?,
        kind: at.member("kind", At::string)?,
        options: at.member("options", At::string)?,
        rate_bits: at.member("rate_bits", |bits| bits.maybe(At::u64))?,
        ceil_bits: at.member("ceil_bits", |bits| bits.maybe(At::u64))?,
        prio: at.member("prio", |prio| prio.maybe(At::u32))?,
        title: at.member("title", At::string)?,
        filters: at.member("filters", |list| list.list(At::string))?,
        unreachable: at.member("unreachable", |why| why.maybe(At::string))?,
    })
}
