#!/bin/sh
# When the queue is full, the least important packet makes room; calls and pings are given a higher priority than the rest.
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j CLASSIFY --set-class 0:6
iptables -t mangle -A POSTROUTING -o eth0 -p icmp -j CLASSIFY --set-class 0:6
tc qdisc replace dev eth0 root skbprio limit 80
