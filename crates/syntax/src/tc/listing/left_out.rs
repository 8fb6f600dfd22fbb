//! What a listing says that is no configuration: counters, numbers that the kernel gives, and what cards do.
//! One list each for words and for members of JSON; the comparison looks at everything else.

/// Words of qdiscs and classes with a value behind them.
pub(super) const PAIRS: [&str; 6] = ["refcnt", "direct_packets_stat", "ver", "level", "seed", "multiqueue:"];
/// Words of theirs that are alone.
pub(super) const ALONE: [&str; 2] = ["offloaded", "----------------"];
/// Words of filters and actions with a value behind them.
pub(super) const FILTER_PAIRS: [&str; 6] = ["index", "ref", "bind", "order", "in_hw_count", "used_hw_stats"];
/// Words of theirs with a number of seconds behind them.
pub(super) const FILTER_TIMES: [&str; 4] = ["installed", "used", "firstused", "expires"];
/// Counters of ctinfo, each with the number of words that it is.
pub(super) const FILTER_COUNTS: [(&str, usize); 2] = [("DSCP", 5), ("CPMARK", 3)];
/// Words of theirs that are alone.
pub(super) const FILTER_ALONE: [&str; 2] = ["not_in_hw", "in_hw"];

/// Members of qdiscs and classes, wherever they are. With `-s` sfq and gred count among their options.
pub(super) const MEMBERS: [&str; 20] = [
    "refcnt",
    "direct_packets_stat",
    "ver",
    "level",
    "seed",
    "offloaded",
    "stats",
    "prob_mark",
    "prob_mark_head",
    "prob_drop",
    "forced_mark",
    "forced_mark_head",
    "forced_drop",
    "pdrop",
    "other",
    "qave",
    "backlog",
    "packets",
    "bytes",
    "multiqueue",
];
/// Counters of classes, which tc writes beside their options.
pub(super) const CLASS_MEMBERS: [&str; 14] = [
    "lended",
    "borrowed",
    "giants",
    "tokens",
    "ctokens",
    "deficit",
    "allot",
    "period",
    "work",
    "rtwork",
    "count",
    "lastcount",
    "ldelay",
    "drop_next",
];
/// Members of filters and actions.
pub(super) const FILTER_MEMBERS: [&str; 24] = [
    "index",
    "ref",
    "bind",
    "order",
    "installed",
    "last_used",
    "first_used",
    "expires",
    "stats",
    "rule_hit",
    "success",
    "fwmark_success",
    "not_in_hw",
    "in_hw",
    "in_hw_count",
    "used_hw_stats",
    "fh",
    "key_ht",
    "bkt",
    "terminal",
    "nkeys",
    "dscpset",
    "dscperror",
    "cpmarkset",
];
