#!/bin/bash
# HFSC for one who plays: games and voice get a steep first slope, the rest what is left.
WAN=eth0
UP=9000
game=$((UP * 20 / 100))
web=$((UP * 50 / 100))
bulk=$((UP * 30 / 100))

tc qdisc del dev $WAN root >/dev/null 2>&1
tc qdisc add dev $WAN root handle 1: hfsc default 30
tc class add dev $WAN parent 1: classid 1:1 hfsc ls m2 ${UP}kbit ul m2 ${UP}kbit
tc class add dev $WAN parent 1:1 classid 1:10 hfsc rt m1 $((game * 2))kbit d 20ms m2 ${game}kbit ls m2 ${game}kbit
tc class add dev $WAN parent 1:1 classid 1:20 hfsc ls m2 ${web}kbit
tc class add dev $WAN parent 1:1 classid 1:30 hfsc ls m2 ${bulk}kbit
tc qdisc add dev $WAN parent 1:10 handle 10: pfifo limit 64
tc qdisc add dev $WAN parent 1:20 handle 20: fq_codel
tc qdisc add dev $WAN parent 1:30 handle 30: fq_codel

tc filter add dev $WAN parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 27015 0xffff flowid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 2 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev $WAN parent 1: protocol ip prio 3 u32 match ip dport 443 0xffff flowid 1:20
tc filter add dev $WAN parent 1: protocol ip prio 3 u32 match ip dport 80 0xffff flowid 1:20
