//! Parsers of text.

use std::path::PathBuf;

use tidegate::fuzzing;
use tidegate_control::LearnedLimits;
use tidegate_inspect::Packet;
use tidegate_loader::InputFormat;
use tidegate_shims::Call;
use tidegate_sim::Trace;
use tidegate_syntax::Env;

/// The most calls of one input: what they add up to is bounded by the model, not by this.
const MAX_CALLS: usize = 64;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One call a line, its arguments between blanks.
fn one_call_a_line(tool: &str, bytes: &[u8]) -> Vec<Call> {
    let call = |line: &str| Call {
        tool: tool.to_owned(),
        args: line.split_whitespace().map(str::to_owned).collect(),
        stdin: None,
        cwd: PathBuf::from("/"),
        netns: None,
    };
    text(bytes).lines().take(MAX_CALLS).map(call).collect()
}

pub(crate) fn tc_words(bytes: &[u8]) {
    let calls = one_call_a_line("tc", bytes);
    for call in &calls {
        let _ = tidegate_syntax::tc::parse(&call.args, &Env::default());
    }
    fuzzing::calls(&calls);
}

pub(crate) fn limit_record(bytes: &[u8]) {
    if let Ok(learned) = LearnedLimits::read(&text(bytes)) {
        assert_eq!(LearnedLimits::read(&learned.text()), Ok(learned), "what is written is read again");
    }
}

pub(crate) fn ip_words(bytes: &[u8]) {
    fuzzing::calls(&one_call_a_line("ip", bytes));
}

pub(crate) fn iptables_words(bytes: &[u8]) {
    fuzzing::calls(&one_call_a_line("iptables", bytes));
    fuzzing::calls(&one_call_a_line("ip6tables", bytes));
}

pub(crate) fn tc_batch(bytes: &[u8]) {
    fuzzing::policy(InputFormat::Batch, &text(bytes));
}

pub(crate) fn iptables_save(bytes: &[u8]) {
    for ipv6 in [false, true] {
        fuzzing::policy(InputFormat::IptablesSave(ipv6), &text(bytes));
    }
}

pub(crate) fn nft(bytes: &[u8]) {
    fuzzing::policy(InputFormat::Nft, &text(bytes));
}

pub(crate) fn short_policy(bytes: &[u8]) {
    fuzzing::policy(InputFormat::Short, &text(bytes));
}

pub(crate) fn uci(bytes: &[u8]) {
    fuzzing::policy(InputFormat::Uci, &text(bytes));
}

pub(crate) fn sqm_conf(bytes: &[u8]) {
    fuzzing::policy(InputFormat::SqmConf, &text(bytes));
}

pub(crate) fn fireqos(bytes: &[u8]) {
    fuzzing::policy(InputFormat::FireQos, &text(bytes));
}

pub(crate) fn networkd(bytes: &[u8]) {
    fuzzing::policy(InputFormat::Networkd, &text(bytes));
}

pub(crate) fn chaos_mesh(bytes: &[u8]) {
    fuzzing::policy(InputFormat::ChaosMesh, &text(bytes));
}

pub(crate) fn pod_bandwidth(bytes: &[u8]) {
    fuzzing::policy(InputFormat::PodBandwidth, &text(bytes));
}

pub(crate) fn listing(bytes: &[u8]) {
    fuzzing::policy(InputFormat::Listing, &text(bytes));
}

pub(crate) fn listing_json(bytes: &[u8]) {
    fuzzing::policy(InputFormat::TcJson, &text(bytes));
}

pub(crate) fn recognise(bytes: &[u8]) {
    fuzzing::recognised(bytes);
}

pub(crate) fn scenario(bytes: &[u8]) {
    fuzzing::scenario(&text(bytes));
}

pub(crate) fn expectations(bytes: &[u8]) {
    fuzzing::expectations(&text(bytes));
}

pub(crate) fn packet_words(bytes: &[u8]) {
    if let Err(error) = Packet::parse(&text(bytes)) {
        let _ = error.to_string();
    }
}

pub(crate) fn trace(bytes: &[u8]) {
    fuzzing::recording(&text(bytes));
    if let Ok(trace) = Trace::parse(&text(bytes)) {
        trace.mean_rate();
        let text = trace.to_text().expect("opportunities");
        assert_eq!(Trace::parse(&text).as_ref(), Ok(&trace));
    }
}

/// Calls with standard input: the tool and its arguments in one line, the input behind it up to a line of
/// `%%`.
pub(crate) fn tool_calls(bytes: &[u8]) {
    let text = text(bytes);
    let call = |part: &str| {
        let (line, input) = part.split_once('\n').unwrap_or((part, ""));
        let mut words = line.split(' ').map(str::to_owned);
        let tool = words.next().unwrap_or_default();
        let stdin = Some(input.as_bytes().to_vec());
        Call { tool, args: words.collect(), stdin, cwd: PathBuf::from("/"), netns: None }
    };
    let calls: Vec<Call> = text.split("%%\n").take(MAX_CALLS).map(call).collect();
    fuzzing::calls(&calls);
}
