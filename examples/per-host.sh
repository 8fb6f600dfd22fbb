#!/bin/sh
# Fair sharing between hosts, then between the flows of each: HTB with a class for each of sixteen groups of hosts, with three bands
# and fq_codel in each band. Hosts are identified by their address on the LAN, also behind NAT, so that a host with forty connections
# gets no more than one with a single connection. (Two hosts with the same hash share a class, with a probability of one in
# sixteen.)
#
# Try it: tidegate try examples/per-host.sh --up 6mbit --down 50mbit --load hosts

DEV=${1:-eth0}
LINK=5700 # kbit/s
HOSTS=16

tc qdisc del dev "$DEV" root 2>/dev/null
tc qdisc add dev "$DEV" root handle 1: htb
tc class add dev "$DEV" parent 1: classid 1:1 htb rate ${LINK}kbit quantum 1514 overhead 22
share=$((LINK / HOSTS))
for n in $(seq 1 $HOSTS); do
    id=$(printf %x $((n + 15)))
    tc class add dev "$DEV" parent 1:1 classid "1:$id" htb rate ${share}kbit ceil ${LINK}kbit quantum 1514 overhead 22
    major=$(printf %x $((n + 255)))
    tc qdisc add dev "$DEV" parent "1:$id" handle "$major:" drr
    for band in 1 2 3; do
        tc class add dev "$DEV" parent "$major:" classid "$major:$band" drr quantum $((1514 * (4 - band)))
        tc qdisc add dev "$DEV" parent "$major:$band" fq_codel quantum 1514 flows 256
    done
    # Low delay and telephones, throughput and CS1, the rest.
    for tos in 0x10 0xb8 0x48; do
        tc filter add dev "$DEV" parent "$major:" protocol ip prio 1 u32 match ip tos $tos 0xfc flowid "$major:1"
    done
    for tos in 0x08 0x20; do
        tc filter add dev "$DEV" parent "$major:" protocol ip prio 1 u32 match ip tos $tos 0xfc flowid "$major:3"
    done
    tc filter add dev "$DEV" parent "$major:" protocol all prio 9 u32 match u32 0 0 flowid "$major:2"
done
tc filter add dev "$DEV" parent 1: protocol all prio 1 handle 1 flow hash keys nfct-src divisor $HOSTS baseclass 1:10
