#!/bin/sh
# QFQ by weights below a shaper; the fourth class is never used.
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc qdisc add dev eth0 parent 1:1 handle 2: qfq
tc class add dev eth0 parent 2: classid 2:1 qfq weight 1
tc class add dev eth0 parent 2: classid 2:2 qfq weight 4
tc class add dev eth0 parent 2: classid 2:3 qfq weight 10 maxpkt 1514
tc class add dev eth0 parent 2: classid 2:4 qfq weight 2
tc filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 2:3
tc filter add dev eth0 parent 2: protocol ip prio 2 u32 match ip dport 443 0xffff flowid 2:2
tc filter add dev eth0 parent 2: protocol all prio 9 u32 match u32 0 0 flowid 2:1
