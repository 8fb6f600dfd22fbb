#!/bin/sh
# Both directions of a link, with cake if the kernel has it, otherwise with HTB and fq_codel.
#   both-ways.sh DEVICE UP DOWN      rates in kbit/s, a little below what the link carries
DEV=${1:-eth0}
UP=${2:-9500}
DOWN=${3:-47500}
IFB=ifb4$DEV

# Does the kernel have this qdisc? Tested on a temporary device.
knows() {
    ip link add name probe0 type ifb || return 1
    tc qdisc replace dev probe0 root "$@" 2>/dev/null
    answer=$?
    ip link del probe0
    return $answer
}

# One direction: device, rate, further options for cake.
shape() {
    dev=$1 rate=$2
    shift 2
    if [ "$KIND" = cake ]; then
        tc qdisc replace dev "$dev" root cake bandwidth "${rate}kbit" overhead 44 "$@"
        return
    fi
    mtu=$(cat "/sys/class/net/$dev/mtu")
    tc qdisc replace dev "$dev" root handle 1: stab overhead 44 htb default 10
    tc class replace dev "$dev" parent 1: classid 1:10 htb rate "${rate}kbit" quantum $((mtu + 14))
    tc qdisc replace dev "$dev" parent 1:10 fq_codel limit 1001
}

if knows cake; then KIND=cake; else KIND=htb; fi
tc -V
echo "shaping $DEV with $KIND, mtu $(cat "/sys/class/net/$DEV/mtu")"

tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc del dev "$DEV" ingress 2>/dev/null
ip link show "$IFB" >/dev/null 2>&1 || ip link add name "$IFB" type ifb
ip link set dev "$IFB" up

shape "$DEV" "$UP" diffserv3 nat ack-filter
shape "$IFB" "$DOWN" besteffort nat wash ingress

tc qdisc add dev "$DEV" handle ffff: ingress
tc filter add dev "$DEV" parent ffff: protocol all prio 10 matchall action mirred egress redirect dev "$IFB"
tc -p filter show parent ffff: dev "$DEV" | grep -q "$IFB" || exit 1
