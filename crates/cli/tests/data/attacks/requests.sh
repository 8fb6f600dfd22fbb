# Nonsense on the tools' port: cut, huge, with lengths that lie, and words that no parser expects.
perl -MSocket -e '
$SIG{PIPE} = "IGNORE";
sub speak {
    socket(my $s, AF_INET, SOCK_STREAM, 0) or return;
    connect($s, pack_sockaddr_in(5, inet_aton("127.0.0.1"))) or return;
    my $sent = 0;
    for my $piece (@_) { my $n = syswrite($s, $piece); last unless $n; $sent += $n }
    return $sent;
}
speak("GET / HTTP/1.0\r\n\r\n"); speak("TGC2"); speak("TGC2\xff" . pack("V", 0xffffffff));
my $field = pack("V", 32 << 20) . "x" x (1 << 20);
# 65,536 arguments of 32 MiB each, as far as they are taken.
my $sent = speak("TGC2\0", pack("V", 2) . "tc", pack("V", 1) . "/", pack("V", 0), pack("V", 65536), map { $field } 1 .. 200);
print "ESCAPED: $sent bytes of one request\n" if ($sent // 0) > 120 << 20;'
printf '\303\244mangle\n:\303\251 ACCEPT\n-A \303\266\nCOMMIT\n' | iptables-restore
printf '\377\376\n' | iptables-restore
printf '*\303\244\n:\303\244\n\303\244A\nCOMMIT\n' | ip6tables-restore
for word in 'ä' '1€:' '0xä' '10äkbit' "$(printf '\377')"; do
    for tool in tc ip iptables nft ifconfig ethtool sysctl modprobe; do
        "$tool" "$word" "$word"
    done
    tc qdisc add dev eth0 root handle "$word" htb; tc qdisc add dev "$word" root "$word"; tc qdisc add dev eth0 root htb default "$word"
    tc class add dev eth0 parent "$word" classid "$word" htb rate "$word" burst "$word"
    tc filter add dev eth0 parent 1: protocol "$word" prio "$word" u32 match "$word" "$word" "$word" flowid "$word"
    tc filter add dev eth0 protocol ip u32 match ip src "$word" match u8 "$word" "$word" at "$word" action "$word"
    tc qdisc add dev eth0 root netem delay "$word" "$word" loss "$word"; tc qdisc add dev eth0 root tbf rate "$word" latency "$word"
    iptables -t "$word" -A "$word" -s "$word" -p "$word" --dport "$word" -j "$word"; iptables -A FORWARD -m "$word" --mark "$word"
    ip link add "$word" type "$word"; ip addr add "$word" dev "$word"; ip route add "$word" via "$word"
    nft add rule "$word" "$word" "$word" "$word"; sysctl -w "$word=$word"; ethtool -K "$word" "$word" "$word"
    echo "add rule $word" | nft -f -; echo "qdisc add dev $word" | tc -batch -
done > /dev/null 2>&1
echo done
