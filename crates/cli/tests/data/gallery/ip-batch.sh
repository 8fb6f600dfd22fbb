#!/bin/sh
# Links made by ip -batch, traffic control by tc -batch.
ip -batch - <<LINKS
link add dev ifb0 type ifb
link set dev ifb0 up
link add link eth0 name eth0.7 type vlan id 7
link set dev eth0.7 up
LINKS
tc -batch - <<TREES
qdisc add dev eth0.7 root handle 1: tbf rate 9mbit burst 20k latency 100ms
qdisc add dev eth0.7 ingress
filter add dev eth0.7 parent ffff: protocol all matchall action mirred egress redirect dev ifb0
qdisc add dev ifb0 root handle 2: tbf rate 45mbit burst 90k latency 60ms
TREES
