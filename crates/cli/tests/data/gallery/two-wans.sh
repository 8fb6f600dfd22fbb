#!/bin/sh
# Two providers, one function for both.
shape() {
    tc qdisc del dev "$1" root 2>/dev/null
    tc qdisc add dev "$1" root handle 1: htb default 20
    tc class add dev "$1" parent 1: classid 1:1 htb rate "$2"
    tc class add dev "$1" parent 1:1 classid 1:10 htb rate "$3" ceil "$2" prio 0
    tc class add dev "$1" parent 1:1 classid 1:20 htb rate "$4" ceil "$2" prio 1
    tc qdisc add dev "$1" parent 1:10 fq_codel
    tc qdisc add dev "$1" parent 1:20 fq_codel
    tc filter add dev "$1" parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10
}
shape eth1 9mbit 2mbit 7mbit
shape eth2 2mbit 512kbit 2mbit
