#!/bin/sh
# A hash table for many addresses, as the howtos advise for large networks.
tc qdisc add dev eth1 root handle 1: htb default 2
tc class add dev eth1 parent 1: classid 1:2 htb rate 1mbit ceil 20mbit
tc class add dev eth1 parent 1: classid 1:123 htb rate 5mbit ceil 20mbit
tc class add dev eth1 parent 1: classid 1:124 htb rate 5mbit ceil 20mbit
tc filter add dev eth1 parent 1:0 prio 5 protocol ip u32
tc filter add dev eth1 parent 1:0 prio 5 handle 2: protocol ip u32 divisor 256
tc filter add dev eth1 protocol ip parent 1:0 prio 5 u32 ht 2:7b: match ip src 10.2.0.123 flowid 1:123
tc filter add dev eth1 protocol ip parent 1:0 prio 5 u32 ht 2:7c: match ip src 10.2.0.124 flowid 1:124
tc filter add dev eth1 protocol ip parent 1:0 prio 5 u32 ht 800:: match ip src 10.2.0.0/16 hashkey mask 0x000000ff at 12 link 2:
