#!/bin/sh
# Both directions of the gateway's line with HTB and fq_codel: rates in kbit/s.
#   fq_codel.sh DEVICE UP DOWN
DEV=$1 UP=$2 DOWN=$3
ip link add name ifb0 type ifb
ip link set dev ifb0 up
tc qdisc add dev "$DEV" handle ffff: ingress
tc filter add dev "$DEV" parent ffff: protocol all matchall action mirred egress redirect dev ifb0
for way in "$DEV $UP" "ifb0 $DOWN"; do
    set -- $way
    tc qdisc add dev "$1" root handle 1: htb default 1
    tc class add dev "$1" parent 1: classid 1:1 htb rate "${2}kbit"
    tc qdisc add dev "$1" parent 1:1 fq_codel
done
