#!/bin/sh
# Marks kept on connections, HFSC below: the manner of the routers of 2012.
insmod sch_hfsc >/dev/null 2>&1
insmod cls_fw >/dev/null 2>&1
iptables -t mangle -N qos_default 2>/dev/null
iptables -t mangle -F qos_default
iptables -t mangle -N qos_main
iptables -t mangle -A qos_main -j CONNMARK --restore-mark --mask 0xff
iptables -t mangle -A qos_main -m mark --mark 0/0xff -j qos_default
iptables -t mangle -A qos_main -j CONNMARK --save-mark --mask 0xff
iptables -t mangle -A qos_default -p udp -m multiport --ports 53,123 -j MARK --set-mark 1/0xff
iptables -t mangle -A qos_default -p tcp -m multiport --ports 22 -j MARK --set-mark 1/0xff
iptables -t mangle -A qos_default -p tcp -m multiport --ports 80,443 -j MARK --set-mark 3/0xff
iptables -t mangle -A qos_default -m mark --mark 0/0xff -j MARK --set-mark 4/0xff
iptables -t mangle -A POSTROUTING -o eth0 -j qos_main

tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: hfsc default 30
tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 9000kbit ul rate 9000kbit
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m1 2500kbit d 5000us m2 900kbit ls m1 2500kbit d 5000us m2 4500kbit ul rate 9000kbit
tc class add dev eth0 parent 1:1 classid 1:30 hfsc ls m1 0kbit d 100000us m2 3000kbit ul rate 9000kbit
tc class add dev eth0 parent 1:1 classid 1:40 hfsc ls m1 0kbit d 200000us m2 500kbit ul rate 9000kbit
tc qdisc add dev eth0 parent 1:10 handle 100: fq_codel limit 800 quantum 300 noecn
tc qdisc add dev eth0 parent 1:30 handle 300: fq_codel limit 800 quantum 300 noecn
tc qdisc add dev eth0 parent 1:40 handle 400: fq_codel limit 800 quantum 300 noecn
tc filter add dev eth0 parent 1: prio 1 protocol ip handle 1/0xff fw flowid 1:10
tc filter add dev eth0 parent 1: prio 3 protocol ip handle 3/0xff fw flowid 1:30
tc filter add dev eth0 parent 1: prio 4 protocol ip handle 4/0xff fw flowid 1:40
