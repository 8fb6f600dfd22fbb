#!/bin/sh
# SYNs, marked by iptables where they arrive, may come at a small rate only.
iptables -A PREROUTING -i eth0 -t mangle -p tcp --syn -j MARK --set-mark 1
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 50 handle 1 fw police rate 15kbit burst 4500 mtu 9k drop flowid :1
