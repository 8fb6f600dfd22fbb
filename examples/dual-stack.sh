#!/bin/sh
# IPv4 and IPv6 with the same three classes; each rule is written twice, because each protocol has its own tables.
#
# Try it: tidegate try examples/dual-stack.sh --up 5mbit --down 40mbit

WAN=${1:-eth0}

tc qdisc del dev "$WAN" root 2>/dev/null
tc qdisc add dev "$WAN" root handle 1: htb default 20
tc class add dev "$WAN" parent 1: classid 1:1 htb rate 4700kbit
tc class add dev "$WAN" parent 1:1 classid 1:10 htb rate 1500kbit ceil 4700kbit prio 0
tc class add dev "$WAN" parent 1:1 classid 1:20 htb rate 2500kbit ceil 4700kbit prio 1
tc class add dev "$WAN" parent 1:1 classid 1:30 htb rate 700kbit ceil 4700kbit prio 2
for class in 10 20 30; do
    tc qdisc add dev "$WAN" parent 1:$class handle $class: fq_codel
done
# A preference belongs to one protocol: IPv4 has 1 and 2, IPv6 the others.
tc filter add dev "$WAN" parent 1: protocol ip pref 1 handle 1 fw classid 1:10
tc filter add dev "$WAN" parent 1: protocol ip pref 2 handle 3 fw classid 1:30
tc filter add dev "$WAN" parent 1: protocol ipv6 pref 4 handle 1 fw classid 1:10
tc filter add dev "$WAN" parent 1: protocol ipv6 pref 5 handle 3 fw classid 1:30
# Neighbour and router discovery (RFC 4861) go first, whatever their mark: IPv6 does not work without them.
tc filter add dev "$WAN" parent 1: protocol ipv6 pref 3 u32 match ip6 protocol 58 0xff flowid 1:10

for tables in iptables ip6tables; do
    $tables -t mangle -F FORWARD
    $tables -t mangle -A FORWARD -o "$WAN" -j CONNMARK --restore-mark
    $tables -t mangle -A FORWARD -o "$WAN" -m mark ! --mark 0 -j RETURN
    $tables -t mangle -A FORWARD -o "$WAN" -p udp ! --dport 443 -j MARK --set-mark 1
    $tables -t mangle -A FORWARD -o "$WAN" -p tcp -m multiport --dports 22,53 -j MARK --set-mark 1
    $tables -t mangle -A FORWARD -o "$WAN" -m dscp --dscp-class CS1 -j MARK --set-mark 3
    $tables -t mangle -A FORWARD -o "$WAN" -p tcp --dport 51413 -j MARK --set-mark 3
    $tables -t mangle -A FORWARD -o "$WAN" -j CONNMARK --save-mark
done
