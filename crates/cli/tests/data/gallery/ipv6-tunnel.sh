#!/bin/sh
# IPv4, IPv6 and 6in4 in one tree.
D=eth0
tc qdisc add dev $D root handle 1: htb default 30
tc class add dev $D parent 1: classid 1:1 htb rate 9mbit
tc class add dev $D parent 1:1 classid 1:10 htb rate 1mbit ceil 9mbit prio 0
tc class add dev $D parent 1:1 classid 1:30 htb rate 8mbit ceil 9mbit prio 1
tc qdisc add dev $D parent 1:10 fq_codel
tc qdisc add dev $D parent 1:30 fq_codel
tc filter add dev $D parent 1: protocol ip prio 1 u32 match ip protocol 41 0xff flowid 1:10
tc filter add dev $D parent 1: protocol ipv6 prio 2 u32 match ip6 dport 22 0xffff flowid 1:10
tc filter add dev $D parent 1: protocol ip prio 3 u32 match ip dport 22 0xffff flowid 1:10
