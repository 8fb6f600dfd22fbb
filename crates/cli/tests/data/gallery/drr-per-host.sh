#!/bin/sh
# A share for each computer: DRR under a shaper, hosts told apart by the flow filter.
DEV=eth0
HOSTS=16
tc qdisc add dev $DEV root handle 1: tbf rate 9mbit burst 20k latency 300ms
tc qdisc add dev $DEV parent 1:1 handle 2: drr
for i in $(seq 1 $HOSTS); do
    id=$(printf %x "$i")
    tc class add dev $DEV parent 2: classid 2:"$id" drr quantum 1514
    tc qdisc add dev $DEV parent 2:"$id" fq_codel
done
tc filter add dev $DEV parent 2: protocol all prio 1 handle 1 flow hash keys nfct-src divisor $HOSTS baseclass 2:1
