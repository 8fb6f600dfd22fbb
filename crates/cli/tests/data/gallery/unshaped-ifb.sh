#!/bin/sh
# Redirected to an ifb that is never brought up.
ip link add ifb1 type ifb
tc qdisc add dev eth0 root fq_codel
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb1
tc qdisc add dev ifb1 root tbf rate 45mbit burst 64k latency 50ms
