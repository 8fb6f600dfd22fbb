#!/bin/sh
# Filters of an inner class divide what the root led there.
tc qdisc add dev eth0 root handle 1: htb default 999
tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit ceil 20mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 15mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 10mbit ceil 20mbit
tc class add dev eth0 parent 1:10 classid 1:101 htb rate 5mbit ceil 15mbit
tc class add dev eth0 parent 1:10 classid 1:102 htb rate 5mbit ceil 15mbit
tc class add dev eth0 parent 1:20 classid 1:201 htb rate 5mbit ceil 20mbit
tc class add dev eth0 parent 1:20 classid 1:999 htb rate 5mbit ceil 20mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.1.0.0/16 flowid 1:10
tc filter add dev eth0 parent 1:10 protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:101
tc filter add dev eth0 parent 1:10 protocol ip prio 2 u32 match u32 0 0 flowid 1:102
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip src 10.2.0.0/16 flowid 1:201
