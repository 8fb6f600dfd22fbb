#!/bin/sh
# Marks of PREROUTING asked for on an ifb, which gets its packets before: class 1:3 there stays empty.
WAN=eth0
modprobe ifb numifbs=1
ip link set dev ifb0 up
tc qdisc add dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 9mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 4mbit ceil 9mbit
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 5mbit ceil 9mbit
tc filter add dev $WAN parent 1: protocol ip prio 1 handle 3 fw flowid 1:10
tc qdisc add dev $WAN handle ffff: ingress
tc filter add dev $WAN parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 20
tc class add dev ifb0 parent 1: classid 1:1 htb rate 45mbit
tc class add dev ifb0 parent 1:1 classid 1:3 htb rate 20mbit ceil 45mbit
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate 25mbit ceil 45mbit
tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 3 fw flowid 1:3
iptables -t mangle -A PREROUTING -p tcp --sport 443 -j MARK --set-mark 3
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 443 -j MARK --set-mark 3
ip6tables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 3
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark 4
tc filter add dev $WAN parent 1: protocol ipv6 prio 2 handle 4 fw flowid 1:10
