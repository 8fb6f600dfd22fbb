#!/bin/sh
# Every command goes through a function that keeps a journal; the fast class is given too little.
TC=${TC:-tc}
DEV=eth0
t() { echo "+ $*" >>/tmp/journal; $TC "$@"; }
clear_all() { t qdisc del dev $DEV root 2>/dev/null; }

clear_all
t qdisc add dev $DEV root handle 1: htb default 30
t class add dev $DEV parent 1: classid 1:1 htb rate 9mbit
t class add dev $DEV parent 1:1 classid 1:10 htb rate 4mbit ceil 2mbit prio 0
t class add dev $DEV parent 1:1 classid 1:30 htb rate 5mbit ceil 9mbit prio 1
t qdisc add dev $DEV parent 1:10 fq_codel
t qdisc add dev $DEV parent 1:30 pfifo limit 2000
t filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff flowid 1:10
