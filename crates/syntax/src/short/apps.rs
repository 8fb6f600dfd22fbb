//! Applications by the ports and DSCPs that they use.
//!
//! Ports are those of IANA's registry or of the makers' pages for firewalls. Whatever else uses them is taken
//! for the application too.

/// An application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct App {
    /// Its name in a policy.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// TCP ports, from one to another.
    pub tcp: &'static [(u16, u16)],
    /// UDP ports.
    pub udp: &'static [(u16, u16)],
    /// What its packets are marked with.
    pub dscp: &'static [u8],
}

const fn app(
    name: &'static str,
    about: &'static str,
    tcp: &'static [(u16, u16)],
    udp: &'static [(u16, u16)],
    dscp: &'static [u8],
) -> App {
    App { name, about, tcp, udp, dscp }
}

/// All that are known.
pub const APPS: [App; 24] = [
    app(
        "backup",
        "rsync, Syncthing, and packets with DSCP CS1 or LE",
        &[(873, 873), (22000, 22000)],
        &[(22000, 22000)],
        &[8, 1],
    ),
    app("discord", "Discord's voice", &[], &[(50000, 50100)], &[]),
    app("dns", "DNS, also over TLS", &[(53, 53), (853, 853)], &[(53, 53), (853, 853)], &[]),
    app(
        "facetime",
        "FaceTime and iMessage's calls",
        &[],
        &[(3478, 3497), (16384, 16387), (16393, 16402)],
        &[],
    ),
    app(
        "games",
        "consoles and Steam: 3074, 3659, 27000-27050",
        &[],
        &[(3074, 3074), (3659, 3659), (27000, 27050)],
        &[],
    ),
    app(
        "mail",
        "mail: SMTP, POP3, IMAP",
        &[(25, 25), (110, 110), (143, 143), (465, 465), (587, 587), (993, 993), (995, 995)],
        &[],
        &[],
    ),
    app("meet", "Google Meet", &[], &[(3478, 3478), (19302, 19309)], &[]),
    app("minecraft", "Minecraft", &[(25565, 25565)], &[(19132, 19133)], &[]),
    app("ntp", "NTP", &[], &[(123, 123)], &[]),
    app("quic", "the web over QUIC", &[], &[(443, 443)], &[]),
    app("rdp", "Windows' remote desktop", &[(3389, 3389)], &[(3389, 3389)], &[]),
    app("rtp", "voice and video by DSCP: EF, CS5, AF41 to AF43", &[], &[], &[46, 40, 34, 36, 38]),
    app("sip", "telephone signalling (SIP)", &[(5060, 5061)], &[(5060, 5061)], &[]),
    app("ssh", "SSH, including transfers over it", &[(22, 22)], &[], &[]),
    app("steam", "Steam's downloads and games", &[(27015, 27050)], &[(27000, 27050)], &[]),
    app("stun", "STUN, which calls use to pass NAT", &[(3478, 3479)], &[(3478, 3481)], &[]),
    app("syncthing", "Syncthing", &[(22000, 22000)], &[(21027, 21027), (22000, 22000)], &[]),
    app("teams", "Microsoft Teams", &[], &[(3478, 3481), (50000, 50059)], &[]),
    app(
        "torrent",
        "BitTorrent on its usual ports, and packets with DSCP CS1 or LE",
        &[(6881, 6999), (51413, 51413)],
        &[(6881, 6999), (51413, 51413)],
        &[8, 1],
    ),
    app("vnc", "VNC", &[(5900, 5910)], &[], &[]),
    app(
        "voip",
        "telephony: SIP, STUN, and packets with DSCP EF or CS5",
        &[(5060, 5061)],
        &[(5060, 5061), (3478, 3481)],
        &[46, 40],
    ),
    app(
        "vpn",
        "WireGuard, OpenVPN, IPsec",
        &[(1194, 1194)],
        &[(51820, 51820), (1194, 1194), (500, 500), (4500, 4500)],
        &[],
    ),
    app("web", "the web: 80, 443", &[(80, 80), (443, 443), (8080, 8080)], &[(443, 443)], &[]),
    app("zoom", "Zoom", &[(8801, 8802)], &[(3478, 3479), (8801, 8810)], &[]),
];

/// The application of that name.
pub fn app_named(name: &str) -> Option<&'static App> {
    APPS.iter().find(|app| app.name.eq_ignore_ascii_case(name))
}
