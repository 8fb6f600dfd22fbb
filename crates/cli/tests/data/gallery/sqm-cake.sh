#!/bin/sh
# One cake each way, with what the probe says the kernel knows.
IFACE=${IFACE:-eth0}
UP=9300
DOWN=46500
knows_cake() { tc qdisc add dev "$1" root cake 2>/dev/null && tc qdisc del dev "$1" root 2>/dev/null; }
ip link add TESTIFB type ifb && ip link set dev TESTIFB up
knows_cake TESTIFB || { echo "this kernel has no cake" >&2; exit 1; }
ip link del TESTIFB
ip link add ifb4$IFACE type ifb
ip link set ifb4$IFACE up
tc qdisc del dev $IFACE root 2>/dev/null
tc qdisc add dev $IFACE root cake bandwidth ${UP}kbit besteffort overhead 44 mpu 84
tc qdisc add dev $IFACE handle ffff: ingress
tc qdisc add dev ifb4$IFACE root cake bandwidth ${DOWN}kbit besteffort wash ingress overhead 44 mpu 84
tc filter add dev $IFACE parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb4$IFACE
