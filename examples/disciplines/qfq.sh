#!/bin/sh
# Calls have three times the weight of everything else.
tc qdisc replace dev eth0 root handle 1: qfq
tc class add dev eth0 parent 1: classid 1:10 qfq weight 30
tc class add dev eth0 parent 1: classid 1:20 qfq weight 10
# Calls, DNS and pings first; everything else is bulk.
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol all prio 3 u32 match u32 0 0 flowid 1:20
