#!/bin/sh
# A loop that writes a batch, one process to carry it out.
RATE=9mbit
{
    echo "qdisc add dev eth0 root handle 1: htb default 1ff"
    echo "class add dev eth0 parent 1: classid 1:1 htb rate $RATE"
    for i in 1 2 3 4 5 6 7 8; do
        echo "class add dev eth0 parent 1:1 classid 1:1$i htb rate 1mbit ceil $RATE"
        echo "qdisc add dev eth0 parent 1:1$i pfifo limit 50"
        echo "filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip src 192.168.1.1$i flowid 1:1$i"
    done
    echo "class add dev eth0 parent 1:1 classid 1:1ff htb rate 1mbit ceil $RATE"
} | tc -b -
