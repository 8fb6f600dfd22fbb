#!/bin/sh
# 9.5 Mbit/s in all; calls have a guaranteed rate and priority.
tc qdisc replace dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 9500kbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 9500kbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8mbit ceil 9500kbit prio 1
tc qdisc add dev eth0 parent 1:10 fq_codel
tc qdisc add dev eth0 parent 1:20 fq_codel
# Calls, DNS and pings first; everything else is bulk.
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match u32 0 0 flowid 1:20
