#!/bin/sh
# An init script: usage without an argument.
DEV=eth0
start() {
    tc qdisc add dev $DEV root handle 1: htb default 10
    tc class add dev $DEV parent 1: classid 1:10 htb rate 9mbit
    tc qdisc add dev $DEV parent 1:10 fq_codel
}
stop() { tc qdisc del dev $DEV root; }
case "$1" in
start) start ;;
stop) stop ;;
restart) stop; start ;;
*) echo "Usage: $0 {start|stop|restart}"; exit 1 ;;
esac
