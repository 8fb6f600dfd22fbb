#!/bin/sh
# The mark is set by iptables only, the filter asks IPv6.
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 9mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 9mbit
tc filter add dev eth0 parent 1: protocol ipv6 prio 1 handle 7 fw flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 7
