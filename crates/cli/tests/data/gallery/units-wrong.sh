#!/bin/sh
# Kilobytes for kilobits, everywhere.
tc qdisc add dev eth0 root handle 1: htb default 2
tc class add dev eth0 parent 1: classid 1:1 htb rate 9000kbps
tc class add dev eth0 parent 1:1 classid 1:2 htb rate 8000kbps burst 1k
tc qdisc add dev eth0 parent 1:2 tbf rate 1000 burst 1500 latency 50
