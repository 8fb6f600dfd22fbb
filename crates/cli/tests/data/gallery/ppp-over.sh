#!/bin/sh
# An ADSL line behind PPPoE, cells and all.
UP=1000
tc qdisc replace dev ppp0 root handle 1: stab mtu 2048 tsize 512 mpu 68 overhead 40 linklayer atm hfsc default 2
tc class add dev ppp0 parent 1: classid 1:1 hfsc ls m2 ${UP}kbit ul m2 ${UP}kbit
tc class add dev ppp0 parent 1:1 classid 1:2 hfsc ls m2 800kbit
tc class add dev ppp0 parent 1:1 classid 1:3 hfsc rt m2 200kbit ls m2 200kbit
tc qdisc add dev ppp0 parent 1:2 fq_codel target 15ms interval 110ms
tc qdisc add dev ppp0 parent 1:3 pfifo limit 10
tc filter add dev ppp0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:3
