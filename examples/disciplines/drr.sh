#!/bin/sh
# Two classes that share the link equally.
tc qdisc replace dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:10 drr quantum 1514
tc class add dev eth0 parent 1: classid 1:20 drr quantum 1514
# Calls, DNS and pings first; everything else is bulk.
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol all prio 3 u32 match u32 0 0 flowid 1:20
