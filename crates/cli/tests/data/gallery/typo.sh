#!/bin/sh
# One word is misspelt, and everything behind it follows.
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rat 2mbit ceil 9mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 7mbit ceil 9mbit
tc qdisc add dev eth0 parent 1:10 fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
