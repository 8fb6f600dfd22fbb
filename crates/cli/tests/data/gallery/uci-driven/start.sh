#!/bin/sh
# Settings in UCI's notation, read by the shell itself as init scripts on small routers do.
cd "$(dirname "$0")" || exit 1
setting() { sed -n "s/^[[:space:]]*option $1 '\(.*\)'/\1/p" shaper.config | head -n 1; }

iface=$(setting interface)
up=$(setting upload)
down=$(setting download)
queue=$(setting qdisc)
[ "$(setting enabled)" = 1 ] || exit 0

tc qdisc del dev "$iface" root 2>/dev/null
tc qdisc del dev "$iface" ingress 2>/dev/null
ip link add name ifb4wan type ifb 2>/dev/null
ip link set dev ifb4wan up

tc qdisc add dev "$iface" root handle 1: htb default 11
tc class add dev "$iface" parent 1: classid 1:1 htb rate "${up}kbit" ceil "${up}kbit"
tc class add dev "$iface" parent 1:1 classid 1:11 htb rate "${up}kbit" ceil "${up}kbit" prio 0
tc qdisc add dev "$iface" parent 1:11 handle 110: "$queue" limit 1001

tc qdisc add dev "$iface" handle ffff: ingress
tc filter add dev "$iface" parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb4wan
tc qdisc add dev ifb4wan root handle 1: htb default 10
tc class add dev ifb4wan parent 1: classid 1:1 htb rate "${down}kbit" ceil "${down}kbit"
tc class add dev ifb4wan parent 1:1 classid 1:10 htb rate "${down}kbit" ceil "${down}kbit"
tc qdisc add dev ifb4wan parent 1:10 handle 110: "$queue" limit 1001
