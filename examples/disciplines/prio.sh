#!/bin/sh
# Three bands; unmatched packets go into the second.
tc qdisc replace dev eth0 root handle 1: prio
# Calls, DNS and pings first; everything else is bulk.
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match u32 0 0 flowid 1:2
