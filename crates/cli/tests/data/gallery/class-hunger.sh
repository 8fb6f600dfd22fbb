#!/bin/sh
# The default class may never send more than a fiftieth of the line.
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 8mbit ceil 9mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 100kbit ceil 180kbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 8443 0xffff flowid 1:10
