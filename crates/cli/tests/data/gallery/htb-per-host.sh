#!/bin/bash
# One HTB class for each address of the LAN, by a loop; 20 addresses share 6 Mbit/s.
LAN=br-lan
NET=192.168.1
tc qdisc del dev $LAN root 2>/dev/null
tc qdisc add dev $LAN root handle 1: htb default 999
tc class add dev $LAN parent 1: classid 1:1 htb rate 6mbit
for n in {10..29}; do
    tc class add dev $LAN parent 1:1 classid 1:$n htb rate 500kbit ceil 6mbit
    tc qdisc add dev $LAN parent 1:$n handle $n: sfq perturb 10
    tc filter add dev $LAN parent 1: protocol ip prio 1 u32 match ip dst $NET.$n/32 flowid 1:$n
done
tc class add dev $LAN parent 1:1 classid 1:999 htb rate 100kbit ceil 1mbit prio 7
