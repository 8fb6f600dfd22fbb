#!/bin/sh
# The same house with nft: a table of its own, replaced whole.
nft -f - <<RULES
table inet shaper
delete table inet shaper
table inet shaper {
	chain out {
		type filter hook postrouting priority mangle; policy accept;
		oifname "eth0" udp dport { 53, 123 } meta mark set 0x1
		oifname "eth0" tcp dport 22 meta mark set 0x1
		oifname "eth0" meta l4proto icmp meta mark set 0x1
		oifname "eth0" tcp sport 51413 meta mark set 0x4
	}
}
RULES
tc qdisc replace dev eth0 root handle 1: htb default 2
tc class add dev eth0 parent 1: classid 1:f htb rate 9mbit
tc class add dev eth0 parent 1:f classid 1:1 htb rate 1mbit ceil 9mbit prio 0
tc class add dev eth0 parent 1:f classid 1:2 htb rate 7mbit ceil 9mbit prio 1
tc class add dev eth0 parent 1:f classid 1:4 htb rate 1mbit ceil 9mbit prio 2
for n in 1 2 4; do
    tc qdisc add dev eth0 parent 1:$n fq_codel
    tc filter add dev eth0 parent 1: protocol all prio $n handle $n fw classid 1:$n
done
