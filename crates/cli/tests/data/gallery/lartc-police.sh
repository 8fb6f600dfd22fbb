#!/bin/sh
# Downloads policed where they arrive.
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 40mbit burst 100k drop flowid :1
