#!/bin/sh
# A fault injector's tree: prio with four bands, the fourth for the victims.
tc qdisc add dev eth0 root handle 1: prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
tc qdisc add dev eth0 parent 1:1 handle 2: sfq
tc qdisc add dev eth0 parent 1:2 handle 3: sfq
tc qdisc add dev eth0 parent 1:3 handle 4: sfq
tc qdisc add dev eth0 parent 1:4 handle 5: netem delay 90ms
iptables -A OUTPUT -t mangle -d 198.51.100.0/24 -j CLASSIFY --set-class 1:4
