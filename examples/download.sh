#!/bin/sh
# Both directions: upload on the device to the modem, download on an ifb to which all arriving packets are redirected.
# You cannot configure the provider's queue, but a download shaped just below its rate never fills it.
#
# Try it: tidegate try examples/download.sh --up 4mbit --down 20mbit

WAN=${1:-eth0}
IFB=ifb4$WAN
UP=3800   # kbit/s
DOWN=18500

tc qdisc del dev "$WAN" root 2>/dev/null
tc qdisc del dev "$WAN" ingress 2>/dev/null
ip link del "$IFB" 2>/dev/null
modprobe ifb numifbs=0 2>/dev/null

tc qdisc add dev "$WAN" root handle 1: htb default 1
tc class add dev "$WAN" parent 1: classid 1:1 htb rate ${UP}kbit overhead 18
tc qdisc add dev "$WAN" parent 1:1 fq_codel

ip link add name "$IFB" type ifb
ip link set dev "$IFB" up
tc qdisc add dev "$IFB" root handle 1: htb default 1
tc class add dev "$IFB" parent 1: classid 1:1 htb rate ${DOWN}kbit quantum 3028 overhead 18
tc qdisc add dev "$IFB" parent 1:1 fq_codel

tc qdisc add dev "$WAN" handle ffff: ingress
tc filter add dev "$WAN" parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev "$IFB"
