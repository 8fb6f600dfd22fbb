# Speaks to the host: Unix sockets by path and by abstract name, the hypervisor, raw packets, a pipe.
perl -I"${0%/*}" -MAttack -MSocket -e '
my ($arena) = @ARGV;
for my $path ("$arena/socket", "/run/dbus/system_bus_socket", "/run/systemd/private", "/tmp/.X11-unix/X0",
              "/run/tidegate/control", "\0tidegate-canary") {
    my $unix;
    socket($unix, AF_UNIX, $_, 0) ? escaped("a Unix socket") : refused("a Unix socket") for SOCK_STREAM, SOCK_DGRAM;
    connect($unix, pack_sockaddr_un($path)) ? escaped("connected $path") : refused("connect") if $unix;
}
# Protocols and requests at which the kernel would load a module: SCTP, DCCP, UDP-Lite, bridges, VLANs, iptables.
for my $protocol (132, 33, 136) {
    for my $kind (SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET) {
        socket(my $s, AF_INET, $kind, $protocol) ? escaped("protocol $protocol") : refused("protocol $protocol");
        $!{ENOSYS} or escaped("protocol $protocol reached the kernel: $!");
    }
}
socket(my $inet, AF_INET, SOCK_DGRAM, 0) or die;
for my $request (0x8940, 0x8941, 0x89a0, 0x89a1, 0x8982, 0x8983, 0x8980, 0x8981) {
    my $argument = "tidegate\0" . "\0" x 64;
    ioctl($inet, $request, $argument) ? escaped("ioctl $request") : refused("ioctl $request");
    $!{ENOSYS} or escaped("ioctl $request reached the kernel: $!");
}
for my $level ([0, 64], [0, 65], [0, 66], [0, 67], [0, 96], [0, 128], [41, 64], [41, 65], [41, 68], [41, 69]) {
    my $value = getsockopt($inet, $level->[0], $level->[1]);
    defined $value ? escaped("getsockopt") : refused("getsockopt @$level");
    $!{ENOSYS} or escaped("getsockopt @$level reached the kernel: $!");
    setsockopt($inet, $level->[0], $level->[1], "\0" x 84) ? escaped("setsockopt") : refused("setsockopt @$level");
    $!{ENOSYS} or escaped("setsockopt @$level reached the kernel: $!");
}
# A pair of datagrams could be sent to a path; connected pairs cannot.
socketpair(my $one, my $other, AF_UNIX, SOCK_DGRAM, 0) ? escaped("a pair of datagrams") : refused("a pair of datagrams");
for my $kind (SOCK_STREAM, SOCK_SEQPACKET) {
    socketpair($one, $other, AF_UNIX, $kind, 0) or escaped("no pair: $!");
    connect($one, pack_sockaddr_un("$arena/socket")) ? escaped("a pair connected") : refused("connect a pair");
    send($one, "x", 0, pack_sockaddr_un("$arena/socket"));
}
# packet, vsock, alg, bluetooth, kcm, xdp, can, tipc, smc, qipcrtr
for my $family (17, 40, 38, 31, 41, 44, 29, 30, 43, 42, 16) {
    for my $kind (SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET) {
        for my $protocol ($family == 16 ? (0, 4, 9, 12, 15, 16) : 0) {
            socket(my $s, $family, $kind, $protocol) ? escaped("family $family") : refused("family $family");
        }
    }
}
socket(my $raw, AF_INET, SOCK_RAW, 1) ? escaped("a raw socket") : refused("a raw socket");'  "$1"
(echo reached > "$1/pipe") & sleep 1; kill $! 2>/dev/null
echo done
