//! What a filter's file contains, as its row lists it, and what those files share.

use crate::number::u32_in;
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use crate::units::parse_classid;
use crate::{Env, Refusal};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, U32Hits};
use tidegate_policy::{Action, FilterParams, Indev};

/// A kind of filter: how tc reads its options, and how it lists it.
pub(in crate::tc) struct Row {
    /// The kind's name in `tc filter add … KIND`.
    pub(super) name: &'static str,
    /// Reads the handle in the kind's notation and the words behind the kind; the filter is for packets of an
    /// EtherType.
    pub(super) parse: fn(Given<'_>, u16, &mut Words<'_>, &Env) -> Result<Read, Refusal>,
    /// Its options, with its actions behind them. `None`: the kernel dumps no options of it.
    pub(in crate::tc) show: fn(&ListedFilter<'_>) -> Option<Entry>,
}

/// The handle that was given, and the argument that gave it.
pub(in crate::tc) type Given<'a> = Option<(&'a str, usize)>;

/// The options after the kind.
#[derive(Default)]
pub(in crate::tc) struct Read {
    pub(in crate::tc) handle: u32,
    pub(in crate::tc) params: Option<FilterParams>,
    pub(in crate::tc) actions: Vec<Action>,
}

/// A filter that is listed.
pub(in crate::tc) struct ListedFilter<'a> {
    pub(in crate::tc) handle: u32,
    pub(in crate::tc) params: &'a FilterParams,
    pub(in crate::tc) hits: Option<&'a U32Hits>,
    pub(in crate::tc) actions: &'a [ActionDump],
    /// The EtherType of the packets that it is for.
    pub(in crate::tc) protocol: u16,
    pub(in crate::tc) flags: &'a ShowFlags,
}

pub(super) fn illegal(name: &str, more: &str, text: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("Illegal \"{name}\"{more}")).at(place).remedy(format!(
        "\"{text}\" is not a value for {name}: a number is wanted (0x for hexadecimal), for classes 1:10."
    ))
}

/// A handle that is a plain number; 0 where none is given.
pub(super) fn number(handle: Given<'_>) -> Result<u32, Refusal> {
    let Some((text, place)) = handle else { return Ok(0) };
    u32_in(text, 0).ok_or_else(|| illegal("handle", "", text, place))
}

/// A handle of which the number that it begins with counts, whatever follows; 0 where none is given: `5:` is
/// 5, `ffff:1` is 0 (asked of tc 6.1).
pub(super) fn leading_number(handle: Given<'_>) -> u32 {
    handle.map_or(0, |(text, _)| beginning(text))
}

/// The number that a handle begins with: tc does not ask what follows it. One that does not fit is cut.
fn beginning(text: &str) -> u32 {
    let (minus, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let hex = text.strip_prefix("0x").filter(|rest| rest.starts_with(|next: char| next.is_ascii_hexdigit()));
    let (base, digits) = match hex {
        Some(rest) => (16, rest),
        None if text.starts_with('0') => (8, text),
        None => (10, text),
    };
    let digits = digits.chars().map_while(|digit| digit.to_digit(base));
    let number =
        digits.fold(0u64, |number, digit| number.saturating_mul(base.into()).saturating_add(digit.into()));
    if minus { (number as u32).wrapping_neg() } else { number as u32 }
}

/// The class after `classid` or `flowid`.
pub(super) fn class(words: &mut Words<'_>) -> Result<Handle, Refusal> {
    let text = words.need()?;
    parse_classid(text).ok_or_else(|| illegal("classid", "", text, words.last()))
}

/// `skip_sw`: only a card would look at it, and there is none that can.
pub(super) fn no_card(place: usize) -> Refusal {
    Refusal::new(2, "RTNETLINK answers: Operation not supported")
        .then("We have an error talking to the kernel")
        .at(place)
        .remedy(NO_CARD)
}

/// What to do about `skip_sw`.
pub(super) const NO_CARD: &str = "No card here takes filters over: leave skip_sw out.";

/// `skip_sw` and `skip_hw` of a filter for which tc itself sees that both are there.
pub(super) fn both_skipped(place: usize) -> Refusal {
    Refusal::new(1, "skip_hw and skip_sw are mutually exclusive").at(place).remedy(NO_CARD)
}

/// Is it a policer that was written without `action`?
pub(super) fn old_style(actions: &[ActionDump]) -> bool {
    actions.iter().any(|action| action.action.old_style)
}

/// The device that packets must have come in by, if it is still there.
pub(super) fn came_in(indev: Option<&Indev>) -> Option<&str> {
    indev.map(|indev| indev.name.as_str()).filter(|name| !name.is_empty())
}
