//! What a page may ask for.

use crate::refusal::Refusal;
use crate::{loaded, simulated, tried};
use serde::Deserialize;

/// The most that one request may ask for.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits;

impl RequestLimits {
    /// Bytes of a request: its texts, and the quotes around them.
    pub const REQUEST: usize = 6 << 20;
    /// Bytes of a policy or a scenario.
    pub const TEXT: usize = 5 << 20;
    /// Bits that the lines of a trial carry, all runs together.
    pub const BITS: u64 = 100 << 30;
    /// Simulated seconds of a scenario, all runs together.
    pub const SECONDS: u64 = 3600;
    /// Transfers each way.
    pub const FLOWS: u16 = 100;
}

/// A request: what to do, and its texts.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request {
    /// `tidegate check --json`
    Check(PolicyRequest),
    /// `tidegate explain --json`
    Explain(ExplainRequest),
    /// `tidegate try --json`
    Try(TryRequest),
    /// `tidegate sim --json`
    Sim(SimRequest),
    /// The commands that a policy comes to.
    Commands(PolicyRequest),
}

/// A policy, as a file of that name would have it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PolicyRequest {
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) dev: Option<String>,
    pub(crate) seed: Option<u64>,
}

/// A packet in words, and the policy that it meets.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExplainRequest {
    #[serde(flatten)]
    pub(crate) policy: PolicyRequest,
    pub(crate) packet: String,
    pub(crate) reply: bool,
}

/// A policy and the line that it is tried on: members are named as the options of `tidegate try` are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TryRequest {
    #[serde(flatten)]
    pub(crate) policy: PolicyRequest,
    pub(crate) up: Option<String>,
    pub(crate) down: Option<String>,
    pub(crate) preset: Option<String>,
    pub(crate) rtt: Option<String>,
    pub(crate) buffer: Option<String>,
    pub(crate) down_buffer: Option<String>,
    pub(crate) duration: Option<String>,
    pub(crate) lan: Option<String>,
    pub(crate) load: Vec<String>,
    pub(crate) flows: Option<u16>,
    pub(crate) probes: Option<Vec<String>>,
    pub(crate) ipv6: bool,
    pub(crate) keep_going: bool,
}

/// A scenario, as a file of that name would have it, and which of its cases are run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SimRequest {
    pub(crate) name: String,
    pub(crate) scenario: String,
    pub(crate) policies: Vec<String>,
    pub(crate) loads: Vec<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) repeats: Option<u32>,
    pub(crate) duration: Option<String>,
}

/// Answers a request: the document that the command line prints with `--json` for the same input.
///
/// ```
/// let request = r#"{"do": "try", "name": "a.batch", "up": "2mbit", "down": "10mbit", "duration": "2s",
///     "policy": "qdisc add dev eth0 root cake bandwidth 1800kbit\n", "load": ["up"]}"#;
/// assert!(tidegate_web::answer(request).unwrap().contains("\"verdict\""));
/// ```
///
/// # Errors
/// A document, too: `refused`, with reason, remedy and places (line, columns in characters from 0).
pub fn answer(request: &str) -> Result<String, String> {
    carry_out(request).map_err(|refusal| refusal.to_json())
}

fn carry_out(request: &str) -> Result<String, Refusal> {
    let request: Request = serde_json::from_str(request)
        .map_err(|error| Refusal::new(format!("the request cannot be read: {error}")))?;
    let text = match &request {
        Request::Check(of) | Request::Commands(of) => &of.policy,
        Request::Explain(of) => &of.policy.policy,
        Request::Try(of) => &of.policy.policy,
        Request::Sim(of) => &of.scenario,
    };
    if text.len() > RequestLimits::TEXT {
        let why = format!("the text is longer than {} MB, the most in a page", RequestLimits::TEXT >> 20);
        return Err(Refusal::with(why, "shorten it, or use `tidegate` on your computer"));
    }
    match request {
        Request::Check(of) => tried::check(&of),
        Request::Explain(of) => tried::explain(&of),
        Request::Try(of) => tried::attempt(&of),
        Request::Sim(of) => simulated::sim(&of),
        Request::Commands(of) => loaded::commands(&of),
    }
}
