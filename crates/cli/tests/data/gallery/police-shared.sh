#!/bin/sh
# One policer for two networks, by its index.
tc qdisc add dev eth0 handle ffff: ingress
tc actions add action police rate 10mbit burst 64k conform-exceed drop/pass index 7
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip src 198.51.100.0/24 action police index 7
tc filter add dev eth0 parent ffff: protocol ip prio 2 u32 match ip src 203.0.113.0/24 action police index 7
