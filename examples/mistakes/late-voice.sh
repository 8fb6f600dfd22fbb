#!/bin/sh
# Three bands by the TOS byte, with two mistakes that every kernel accepts:
# the rule for calls comes after one that matches their packets, and current SSH is classified as a bulk transfer.
#
# See it: tidegate explain examples/mistakes/late-voice.sh 'udp 192.168.1.7:16384 > 203.0.113.9:16384 dscp EF len 200'

DEV=${1:-eth0}

tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc add dev "$DEV" root handle 1: htb default 20
tc class add dev "$DEV" parent 1: classid 1:1 htb rate 960kbit ceil 960kbit
tc class add dev "$DEV" parent 1:1 classid 1:10 htb rate 480kbit ceil 960kbit prio 0
tc class add dev "$DEV" parent 1:1 classid 1:20 htb rate 320kbit ceil 960kbit prio 1
tc class add dev "$DEV" parent 1:1 classid 1:30 htb rate 160kbit ceil 960kbit prio 2
tc qdisc add dev "$DEV" parent 1:10 handle 10: pfifo limit 20
tc qdisc add dev "$DEV" parent 1:20 handle 20: sfq perturb 60 limit 60
tc qdisc add dev "$DEV" parent 1:30 handle 30: sfq perturb 60 limit 60

tos() {
    tc filter add dev "$DEV" parent 1: protocol ip prio 10 u32 match ip tos "$1" "$2" flowid "1:$3"
}
# RFC 1349: low delay, throughput; packets that request both get neither.
tos 0x10 0x1c 10
tos 0x08 0x1c 30
tos 0x18 0x1c 20
# Calls. But 0xb8 & 0x1c is 0x18: the rule above matches them all.
tos 0xb8 0xfc 10
