#!/bin/bash
# A testbed's walk through delays; each step only changes the last.
dev=${1:-eth0}
tc qdisc add dev "$dev" root netem delay 1ms
for ms in 5 20 80; do
    tc qdisc change dev "$dev" root netem delay "${ms}ms" loss 0.1%
    tc qdisc show dev "$dev" | grep -q "delay ${ms}ms" || { echo "step $ms failed"; exit 1; }
done
