#!/bin/sh
# Drop outgoing mail (port 25) in a class, so that its counters appear in the tree.
tc qdisc replace dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:3 handle 30: blackhole
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dport 25 0xffff flowid 1:3
