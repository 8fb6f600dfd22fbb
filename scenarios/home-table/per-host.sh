#!/bin/sh
# Every computer of a home gets the same share of the uplink: a class each, by its address behind NAT, with fq_codel in it.
# DEV KBIT: the device to the modem, and slightly less than the line rate.

DEV=${1:-eth1}
LINK=${2:-6200}
HOSTS=16

tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc add dev "$DEV" root handle 1: htb
tc class add dev "$DEV" parent 1: classid 1:1 htb rate "${LINK}kbit" quantum 1514 overhead 39
for n in $(seq 1 $HOSTS); do
    id=$(printf %x $((n + 15)))
    tc class add dev "$DEV" parent 1:1 classid "1:$id" htb rate "$((LINK / HOSTS))kbit" ceil "${LINK}kbit" quantum 1514 overhead 39
    tc qdisc add dev "$DEV" parent "1:$id" handle "$id:" fq_codel
done
tc filter add dev "$DEV" parent 1: protocol all prio 1 handle 1 flow hash keys nfct-src divisor $HOSTS baseclass 1:10
