#!/bin/sh
# A gateway that runs PPPoE itself: ppp0 is on top of eth2, and packets pass the queues of both. The policy belongs on ppp0, where
# packets are still IP; the queue on eth2 sees only PPPoE frames and should be short.
#
# Try it: tidegate try examples/pppoe.sh --up 5mbit --down 40mbit --over ppp0=eth2

PPP=${PPP:-ppp0}
CARD=${CARD:-eth2}

tc qdisc del dev "$PPP" root 2>/dev/null
tc qdisc del dev "$CARD" root 2>/dev/null

# Each packet has an overhead of 8 bytes of PPPoE, 14 of Ethernet and 4 of checksum, which the rate counts.
tc qdisc add dev "$PPP" root handle 1: htb default 20
tc class add dev "$PPP" parent 1: classid 1:1 htb rate 4700kbit overhead 26
tc class add dev "$PPP" parent 1:1 classid 1:10 htb rate 1500kbit ceil 4700kbit prio 0 overhead 26
tc class add dev "$PPP" parent 1:1 classid 1:20 htb rate 3200kbit ceil 4700kbit prio 1 overhead 26
tc qdisc add dev "$PPP" parent 1:10 handle 10: pfifo limit 20
tc qdisc add dev "$PPP" parent 1:20 handle 20: fq_codel
tc filter add dev "$PPP" parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev "$PPP" parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:10
tc filter add dev "$PPP" parent 1: protocol ip prio 3 u32 match ip dport 53 0xffff flowid 1:10

# Nothing waits here if the rate above is right.
ip link set dev "$CARD" txqueuelen 20
tc qdisc add dev "$CARD" root handle 2: pfifo limit 20
