#!/bin/sh
# cake with tins in both directions; marks from before the ifb are kept.
tc qdisc replace dev eth0 root cake bandwidth 9mbit diffserv4 dual-srchost nat ack-filter
tc qdisc add dev eth0 ingress
ip link add name ifb4eth0 type ifb
ip link set ifb4eth0 up
tc qdisc replace dev ifb4eth0 root cake bandwidth 45mbit diffserv4 dual-dsthost nat ingress
tc filter add dev eth0 ingress protocol all matchall action mirred egress redirect dev ifb4eth0
