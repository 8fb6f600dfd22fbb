#!/bin/sh
# Loss in bursts, doubled and reordered packets.
tc qdisc add dev eth0 root handle 1:0 netem delay 10ms loss gemodel 1% 10% 70% 0.1% duplicate 0.5% reorder 25% 50%
tc -s qdisc show dev eth0
