#!/bin/sh
# A queue per flow inside a tunnel: 780 kbit/s, 32 queues in turn, selected by the hash of the given keys.
# DEV KEYS: the device to the modem, and the keys that identify flows.

DEV=${1:-eth1}
KEYS=${2:-src,dst,proto,proto-src,proto-dst}
QUEUES=32

tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc add dev "$DEV" root handle 1: htb default 10
tc class add dev "$DEV" parent 1: classid 1:10 htb rate 780kbit
tc qdisc add dev "$DEV" parent 1:10 handle 10: drr
for n in $(seq 1 $QUEUES); do
    id=$(printf %x "$n")
    tc class add dev "$DEV" parent 10: classid "10:$id" drr quantum 1514
    tc qdisc add dev "$DEV" parent "10:$id" pfifo limit 20
done
tc filter add dev "$DEV" parent 10: protocol all prio 1 handle 1 flow hash keys "$KEYS" divisor $QUEUES baseclass 10:1
