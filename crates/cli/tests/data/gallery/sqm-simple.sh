#!/bin/sh
# The three-tier script's manner: marks by DSCP, HTB, fq_codel, quantum and burst by rate, both directions.
IFACE=eth0
DEV=ifb4eth0
UPLINK=9000
DOWNLINK=45000
TC=$(command -v tc)
tc_run() { "$TC" "$@" || logger -t qos "tc $* failed"; }
quantum() { [ "$1" -lt 20000 ] && echo 300 || echo 1514; }

diff_filter() {
    tc_run filter add dev "$1" protocol ip parent 1:0 prio "$4" u32 match ip tos "$2" 0xfc flowid "$3"
    tc_run filter add dev "$1" protocol ipv6 parent 1:0 prio $(($4 + 1)) u32 match ip6 priority "$2" 0xfc flowid "$3"
}
tree() {
    dev=$1 ceil=$2
    express=$((ceil / 3)) best=$((ceil / 6)) back=$((ceil / 6)) top=$((ceil - 16))
    tc_run qdisc add dev "$dev" root handle 1: htb default 12
    tc_run class add dev "$dev" parent 1: classid 1:1 htb quantum "$(quantum "$ceil")" rate "${ceil}kbit" ceil "${ceil}kbit"
    tc_run class add dev "$dev" parent 1:1 classid 1:11 htb quantum 300 rate 128kbit ceil "${express}kbit" prio 1
    tc_run class add dev "$dev" parent 1:1 classid 1:12 htb quantum 1514 rate "${best}kbit" ceil "${top}kbit" prio 2
    tc_run class add dev "$dev" parent 1:1 classid 1:13 htb quantum 1514 rate "${back}kbit" ceil "${top}kbit" prio 3
    for c in 11 12 13; do
        tc_run qdisc add dev "$dev" parent 1:$c handle ${c}0: fq_codel limit 1001 quantum 300 target 5ms interval 100ms
    done
    diff_filter "$dev" 0xb8 1:11 10
    diff_filter "$dev" 0xc0 1:11 12
    diff_filter "$dev" 0x20 1:13 14
    tc_run filter add dev "$dev" parent 1:0 protocol arp prio 20 u32 match u32 0 0 flowid 1:11
    tc_run filter add dev "$dev" parent 1:0 protocol all prio 999 u32 match u32 0 0 flowid 1:12
}
$TC qdisc del dev $IFACE root 2>/dev/null
$TC qdisc del dev $IFACE ingress 2>/dev/null
ip link add $DEV type ifb 2>/dev/null
ip link set dev $DEV up
tree $IFACE $UPLINK
tc_run qdisc add dev $IFACE handle ffff: ingress
tree $DEV $DOWNLINK
tc_run filter add dev $IFACE parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev $DEV
