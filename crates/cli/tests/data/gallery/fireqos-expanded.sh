#!/bin/bash
# What such a generator comes to: numbered classes, filters with preferences in tens, one ifb.
run() { "${@}" || { echo "FAILED: $*"; exit 1; }; }
out() {
    local dev=$1 total=$2 n=10
    run tc qdisc add dev "$dev" root handle 1: stab linklayer ethernet overhead 18 htb default 5000 r2q 8
    run tc class add dev "$dev" parent 1: classid 1:1 htb rate "${total}kbit" ceil "${total}kbit"
    for share in 10 30 60; do
        run tc class add dev "$dev" parent 1:1 classid 1:$n htb rate $((total * share / 100))kbit ceil "${total}kbit" prio $((n / 10 - 1))
        run tc qdisc add dev "$dev" parent 1:$n handle $n: fq_codel
        n=$((n + 10))
    done
    run tc filter add dev "$dev" parent 1: protocol ip prio 10 u32 match ip protocol 1 0xff flowid 1:10
    run tc filter add dev "$dev" parent 1: protocol ip prio 20 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:10
    run tc filter add dev "$dev" parent 1: protocol ip prio 30 u32 match ip protocol 6 0xff match ip dport 0x1bb 0xffff flowid 1:20
    run tc filter add dev "$dev" parent 1: protocol all prio 40 u32 match u32 0 0 flowid 1:30
}
ip link add dev ifb0 type ifb 2>/dev/null
ip link set ifb0 up
out eth0 9000
run tc qdisc add dev eth0 ingress
run tc filter add dev eth0 parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0
out ifb0 45000
