#!/bin/sh
# A bad network for tests: rate, latency and loss for chosen ports; undone with "stop".
DEV=eth0
if [ "$1" = stop ]; then
    tc qdisc del dev $DEV handle 10: root
    exit 0
fi
tc qdisc add dev $DEV handle 10: root htb
tc class add dev $DEV parent 10: classid 10:1 htb rate 1000000kbit
tc class add dev $DEV parent 10: classid 10:10 htb rate 1000000kbit
tc qdisc add dev $DEV parent 10:10 handle 100: netem delay 250ms rate 1000kbit loss 10%
iptables -A POSTROUTING -t mangle -j CLASSIFY --set-class 10:10 -p tcp --match multiport --dports 80,443
