#!/bin/sh -e
# Both directions of a cable modem with cake; started and stopped by the interface's hooks.
WAN=eth0
case "${1:-up}" in
up)
    tc qdisc replace dev $WAN root cake bandwidth 9500kbit docsis nat dual-srchost ack-filter
    ip link add ifb0 type ifb || true
    ip link set ifb0 up txqueuelen 1000
    tc qdisc replace dev $WAN ingress
    tc qdisc replace dev ifb0 root cake bandwidth 47mbit docsis nat dual-dsthost ingress wash
    tc filter add dev $WAN parent ffff: matchall action mirred egress redirect dev ifb0
    ;;
down)
    tc qdisc del dev $WAN root
    tc qdisc del dev $WAN ingress
    ip link del ifb0
    ;;
esac
