#!/bin/sh
# Ten lines whose truth is known, and what `tidegate quick` reports of each, as root:
#
#     sh crates/cli/tests/data/quick-lines.sh target/release/tidegate [LINE…]
#
# `quick` runs as an ordinary user who may send no echo requests. Seven lines are those of `tidegate shell`; the
# LAN, the two NATs and IPv6 are namespaces of this computer's kernel with tbf.
set -u
here=$(mktemp -d)
cp "$1" "$here/tidegate"
shift
lines=${*:-"symmetric one-to-twenty policer lossy varying fixed lan nats ipv6 fast"}
chmod 755 "$here"
tidegate=$here/tidegate
user="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
serve="$tidegate serve --quiet --open"

# A trace of mahimahi's: per line a millisecond in which a packet may go; $1 and $2 packets per ten milliseconds,
# in turns of a second.
trace() {
    awk -v a="$1" -v b="$2" 'BEGIN { for (t = 0; t < 2000; t += 10) { n = t < 1000 ? a : b
        for (k = 0; k < n; k++) print t + int(k * 10 / n) + 1 } }'
}

shell_line() {
    "$tidegate" shell "$@" --server-command "$serve" -- $user "$tidegate" quick server
}

# PC, home router, provider's router, server: rates of the LAN, and of the line up and down; $4: 4 or 6.
kernel_line() {
    for name in pc home isp server; do ip netns add "ql-$name"; ip -n "ql-$name" link set lo up; done
    join() {
        ip link add "$2" netns "ql-$1" type veth peer name "$5" netns "ql-$4"
        ip -n "ql-$1" addr add "$3" dev "$2" nodad 2>/dev/null || ip -n "ql-$1" addr add "$3" dev "$2"
        ip -n "ql-$4" addr add "$6" dev "$5" nodad 2>/dev/null || ip -n "ql-$4" addr add "$6" dev "$5"
        ip -n "ql-$1" link set "$2" up
        ip -n "ql-$4" link set "$5" up
        # Segments that are joined are more than tbf takes at once.
        for end in "$1 $2" "$4 $5"; do
            set -- $end
            ip netns exec "ql-$1" ethtool -K "$2" tso off gso off gro off >/dev/null 2>&1
            ip -n "ql-$1" link set "$2" gso_max_segs 1 2>/dev/null
        done
    }
    if [ "$4" = 6 ]; then
        join pc eth0 fd00:1::2/64 home lan fd00:1::1/64
        join home wan fd00:2::2/64 isp cust fd00:2::1/64
        join isp core fd00:3::1/64 server eth0 fd00:3::2/64
        ip -n ql-pc -6 route add default via fd00:1::1
        ip -n ql-home -6 route add default via fd00:2::1
        ip -n ql-isp -6 route add fd00:1::/64 via fd00:2::2
        ip -n ql-server -6 route add default via fd00:3::1
        server=fd00:3::2
    else
        join pc eth0 192.168.1.2/24 home lan 192.168.1.1/24
        join home wan 100.64.0.2/24 isp cust 100.64.0.1/24
        join isp core 203.0.113.1/24 server eth0 203.0.113.2/24
        ip -n ql-pc route add default via 192.168.1.1
        ip -n ql-home route add default via 100.64.0.1
        for name in home isp; do
            ip netns exec "ql-$name" nft add table ip nat
            ip netns exec "ql-$name" nft 'add chain ip nat post { type nat hook postrouting priority 100; }'
        done
        ip netns exec ql-home nft add rule ip nat post oif wan masquerade
        ip netns exec ql-isp nft add rule ip nat post oif core masquerade
        server=203.0.113.2
    fi
    for name in home isp; do
        ip netns exec "ql-$name" sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward
            echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
    done
    for end in "pc eth0 $1" "home lan $1" "home wan $2" "isp cust $3"; do
        set -- $end
        [ "$3" = any ] || ip netns exec "ql-$1" tc qdisc add dev "$2" root tbf rate "$3" burst 5k limit 200k
    done
    ip netns exec ql-server $serve >/dev/null 2>&1 &
    serving=$!
    ip netns exec ql-pc $user "$tidegate" quick "$server"
    kill "$serving"
    for name in pc home isp server; do ip netns del "ql-$name"; done
}

one() {
    case $1 in
    symmetric) shell_line --up 20mbit --down 20mbit ;;
    one-to-twenty) shell_line --up 2mbit --down 40mbit ;;
    policer)
        shell_line --up 100mbit --down 100mbit --tc 'tc qdisc add dev eth0 root handle 1: prio' \
            --tc 'tc filter add dev eth0 parent 1: protocol ip u32 match u32 0 0 police rate 5mbit burst 30k drop flowid 1:1' \
            --tc 'tc qdisc add dev eth0 handle ffff: ingress' \
            --tc 'tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 police rate 20mbit burst 100k drop flowid :1'
        ;;
    lossy) shell_line --up 20mbit --down 100mbit --up-line 'loss = "2%"' --down-line 'loss = "2%"' ;;
    varying)
        trace 2 6 >"$here/up"
        trace 4 16 >"$here/down"
        shell_line --up-line "trace = '$here/up'" --down-line "trace = '$here/down'"
        ;;
    fixed)
        printf '%s\n' 'device = "eth0"' 'up = "2mbit"' 'down = "20mbit"' 'preset = "home"' >"$here/fix.toml"
        shell_line --up 2mbit --down 20mbit --policy "$here/fix.toml"
        ;;
    lan) kernel_line 10mbit 50mbit 50mbit 4 ;;
    nats) kernel_line any 5mbit 20mbit 4 ;;
    ipv6) kernel_line any 5mbit 20mbit 6 ;;
    fast) shell_line --up 1gbit --down 1gbit --buffer 4MB ;;
    esac
}

for line in $lines; do
    echo "=== $line"
    one "$line" 2>&1
done
rm -r "$here"
