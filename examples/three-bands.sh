#!/bin/sh
# Three bands by the TOS byte (RFC 1349, RFC 2474): packets that request low delay first, those that request throughput last.
# Needs no marks and no state: the sending program sets the byte.
#
# Try it: tidegate try examples/three-bands.sh --up 4mbit --down 30mbit

DEV=${1:-eth0}

tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc add dev "$DEV" root handle 1: htb default 20
tc class add dev "$DEV" parent 1: classid 1:1 htb rate 3800kbit ceil 3800kbit overhead 18
tc class add dev "$DEV" parent 1:1 classid 1:10 htb rate 1200kbit ceil 3800kbit prio 0 overhead 18
tc class add dev "$DEV" parent 1:1 classid 1:20 htb rate 2000kbit ceil 3800kbit prio 1 overhead 18
tc class add dev "$DEV" parent 1:1 classid 1:30 htb rate 600kbit ceil 3800kbit prio 2 overhead 18
tc qdisc add dev "$DEV" parent 1:10 handle 10 sfq perturb 60 limit 30
tc qdisc add dev "$DEV" parent 1:20 handle 20 sfq perturb 60 limit 60
tc qdisc add dev "$DEV" parent 1:30 handle 30 sfq perturb 60 limit 60

# Low delay (0x10), calls (EF), interactive SSH (AF21) and pings go first; throughput (0x08) and CS1 last.
band() {
    tc filter add dev "$DEV" parent 1:0 protocol ip prio "$1" u32 match ip tos "$2" "$3" flowid "1:$4"
}
band 10 0x10 0xfc 10
band 10 0xb8 0xfc 10
band 10 0x48 0xfc 10
tc filter add dev "$DEV" parent 1:0 protocol ip prio 11 u32 match ip protocol 1 0xff flowid 1:10
tc filter add dev "$DEV" parent 1:0 protocol ip prio 11 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:10
band 12 0x08 0xfc 30
band 12 0x20 0xfc 30
# Acknowledgements without data: a TCP segment of less than 64 bytes after a plain header.
tc filter add dev "$DEV" parent 1:0 protocol ip prio 13 u32 \
    match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 flowid 1:10
