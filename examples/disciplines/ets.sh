#!/bin/sh
# Calls and pings first; the rest shares by quantum.
tc qdisc replace dev eth0 root handle 1: ets bands 3 strict 1 quanta 6000 3000 priomap 1
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match u32 0 0 flowid 1:2
