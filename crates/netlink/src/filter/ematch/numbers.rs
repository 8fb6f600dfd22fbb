//! The kernel's numbers of what `meta` compares.

use tidegate_policy::MetaId;

/// The number of it.
pub(super) fn meta_number(what: MetaId) -> u16 {
    match what {
        MetaId::Number(_) => 0,
        MetaId::Random => 1,
        MetaId::Loadavg(1) => 2,
        MetaId::Loadavg(5) => 3,
        MetaId::Loadavg(_) => 4,
        MetaId::Dev => 5,
        MetaId::Priority => 6,
        MetaId::Protocol => 7,
        MetaId::PktType => 8,
        MetaId::PktLen => 9,
        MetaId::DataLen => 10,
        MetaId::MacLen => 11,
        MetaId::Mark => 12,
        MetaId::TcIndex => 13,
        MetaId::RtClassid => 14,
        MetaId::RtIif => 15,
        MetaId::Vlan => 46,
        MetaId::Socket(name) => socket(name),
    }
}

/// The fields of a socket, in the kernel's numbers.
fn socket(name: &str) -> u16 {
    const NUMBERS: [(&str, u16); 18] = [
        ("sk_family", 16),
        ("sk_state", 17),
        ("sk_reuse", 18),
        ("sk_bind_if", 19),
        ("sk_refcnt", 20),
        ("sk_shutdown", 21),
        ("sk_proto", 22),
        ("sk_type", 23),
        ("sk_rcvbuf", 24),
        ("sk_rmem", 25),
        ("sk_wmem", 26),
        ("sk_omem", 27),
        ("sk_wmem_queue", 28),
        ("sk_rcv_queue", 29),
        ("sk_snd_queue", 30),
        ("sk_err_queue", 31),
        ("sk_fwd_alloc", 32),
        ("sk_sndbuf", 33),
    ];
    NUMBERS.into_iter().find(|(known, _)| *known == name).map_or(0, |(_, number)| number)
}
