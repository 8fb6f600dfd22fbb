#!/bin/sh
# 9.5 Mbit/s in all. Calls: 1 Mbit/s guaranteed, each packet within 5 ms. Everything else gets the rest.
tc qdisc replace dev eth0 root handle 1: hfsc default 20
tc class add dev eth0 parent 1: classid 1:1 hfsc ls rate 9500kbit ul rate 9500kbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt umax 300 dmax 5ms rate 1mbit ls rate 1mbit
tc class add dev eth0 parent 1:1 classid 1:20 hfsc ls rate 8500kbit
tc qdisc add dev eth0 parent 1:10 pfifo limit 20
tc qdisc add dev eth0 parent 1:20 fq_codel
# Calls, DNS and pings first; everything else is bulk.
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match u32 0 0 flowid 1:20
