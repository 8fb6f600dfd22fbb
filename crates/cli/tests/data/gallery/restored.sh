#!/bin/sh
# Rules restored at boot, and the tree that reads their marks.
iptables-restore -n <<RULES
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:SHAPE - [0:0]
-A POSTROUTING -o eth0 -j SHAPE
-A SHAPE -p icmp -j MARK --set-xmark 0x10/0xffffffff
-A SHAPE -p tcp -m tcp --dport 22 -j MARK --set-xmark 0x10/0xffffffff
-A SHAPE -p tcp -m length --length 0:128 -m tcp --tcp-flags FIN,SYN,RST,ACK ACK -j MARK --set-xmark 0x10/0xffffffff
-A SHAPE -p udp -m udp --sport 6881:6999 -j MARK --set-xmark 0x30/0xffffffff
COMMIT
RULES
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 9mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 6mbit ceil 9mbit prio 2
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 8mbit prio 3
tc filter add dev eth0 parent 1: protocol ip handle 0x10 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip handle 0x30 fw flowid 1:30
