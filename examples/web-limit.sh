#!/bin/sh
# Limit a web server on the gateway itself to part of the uplink; the rest is for everything else.

DEV=eth0

tc qdisc del dev $DEV root 2>/dev/null
iptables -t mangle -F OUTPUT

# Packets of the server get mark 8.
iptables -t mangle -A OUTPUT -o $DEV -p tcp --sport 80 -j MARK --set-mark 8

# Two classes: the web server's, limited to its rate, and the default class, which may use what the first leaves.
tc qdisc add dev $DEV root handle 1: htb default 30
tc class add dev $DEV parent 1: classid 1:1 htb rate 1mbit
tc class add dev $DEV parent 1:1 classid 1:20 htb rate 300kbit ceil 300kbit prio 1
tc class add dev $DEV parent 1:1 classid 1:30 htb rate 700kbit ceil 1mbit prio 0
tc qdisc add dev $DEV parent 1:20 sfq perturb 10 limit 10
tc qdisc add dev $DEV parent 1:30 sfq perturb 10 limit 20

# Packets with mark 8 go to the first class.
tc filter add dev $DEV parent 1: protocol ip prio 1 handle 8 fw flowid 1:20
