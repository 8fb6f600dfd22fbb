#!/bin/sh
# HFSC without a default class: what no filter takes is dropped, ARP and all.
tc qdisc add dev eth0 root handle 1: hfsc
tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 8mbit ul rate 8mbit
tc class add dev eth0 parent 1:1 classid 1:2 hfsc sc umax 1500b dmax 10ms rate 2mbit
tc class add dev eth0 parent 1:1 classid 1:3 hfsc sc rate 9mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 1 0xff flowid 1:2
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff flowid 1:3
