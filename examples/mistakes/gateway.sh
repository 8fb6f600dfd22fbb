#!/bin/sh
# A gateway's script with mistakes that every kernel accepts. `tidegate check` finds them.

WAN=eth0
TC=/sbin/tc

$TC qdisc del dev $WAN root 2>/dev/null
$TC qdisc add dev $WAN root handle 1: htb default 40
$TC class add dev $WAN parent 1: classid 1:1 htb rate 9mbit
# Calls, acknowledgements, the web, everything else.
$TC class add dev $WAN parent 1:1 classid 1:10 htb rate 500kbps ceil 9mbit prio 1
$TC class add dev $WAN parent 1:1 classid 1:20 htb rate 600kbit ceil 300kbit prio 2
$TC class add dev $WAN parent 1:1 classid 1:30 htb rate 5mbit ceil 9mbit prio 3
$TC class add dev $WAN parent 1:1 classid 1:50 htb rate 1mbit ceil 9mbit prio 9
$TC qdisc add dev $WAN parent 1:10 pfifo limit 20
$TC qdisc add dev $WAN parent 1:20 pfifo limit 20
$TC qdisc add dev $WAN parent 1:30 fq_codel
$TC qdisc add dev $WAN parent 1:50 pfifo limit 1000

for mark in 10 20 30; do
    $TC filter add dev $WAN parent 1: protocol ip prio $mark handle $mark fw flowid 1:$mark
done

iptables -t mangle -F
iptables -t mangle -A POSTROUTING -o $WAN -p tcp --tcp-flags SYN,ACK,FIN,RST ACK -m length --length 40:64 -j MARK --set-mark 20
iptables -t mangle -A POSTROUTING -o $WAN -p tcp -m multiport --dports 80,443 -j MARK --set-mark 30
iptables -t mangle -A POSTROUTING -o $WAN -p udp --dport 5060 -j MARK --set-mark 11
