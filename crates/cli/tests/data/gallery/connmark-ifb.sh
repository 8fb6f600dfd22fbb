#!/bin/sh
# connmark brings the mark of the connection along to the ifb.
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:20 htb rate 9mbit
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 10 u32 match u32 0 0 action connmark action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:1 htb rate 45mbit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 20mbit ceil 45mbit
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 25mbit ceil 45mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 6 fw flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 443 -j CONNMARK --set-mark 6
