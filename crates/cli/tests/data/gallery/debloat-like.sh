#!/bin/bash
# For hosts, not gateways: byte limits at the driver, fair queues on every hardware queue.
IFACE=${1:-eth0}
LIMIT=${LIMIT:-3028}
ethtool -K "$IFACE" tso off gso off gro off 2>/dev/null
ethtool -G "$IFACE" tx 64 2>/dev/null
for q in /sys/class/net/"$IFACE"/queues/tx-*; do
    [ -w "$q/byte_queue_limits/limit_max" ] && echo "$LIMIT" >"$q/byte_queue_limits/limit_max"
done
ifconfig "$IFACE" txqueuelen 100
tc qdisc del dev "$IFACE" root 2>/dev/null
tc qdisc add dev "$IFACE" root fq_codel limit 600 quantum 500 noecn
