#!/bin/sh
# Web traffic into a class of its own by a mark, four years later with a second rule that undoes it.
tc qdisc add dev eth0 root handle 1: htb default 12
tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit ceil 8mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 8mbit
tc class add dev eth0 parent 1:1 classid 1:12 htb rate 3mbit ceil 8mbit
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 80 -j MARK --set-mark 6
iptables -t mangle -A POSTROUTING -o eth0 -p tcp -j MARK --set-mark 7
tc filter add dev eth0 protocol ip parent 1: prio 1 handle 6 fw flowid 1:10
