#!/bin/sh
# When the queue is full, the packet of the lowest priority is dropped; calls and pings get a higher priority.
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j CLASSIFY --set-class 0:6
iptables -t mangle -A POSTROUTING -o eth0 -p icmp -j CLASSIFY --set-class 0:6
tc qdisc replace dev eth0 root skbprio limit 80
