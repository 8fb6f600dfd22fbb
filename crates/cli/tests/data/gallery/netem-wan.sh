#!/bin/sh
# A satellite for the laboratory, at both ends of a bridge.
for dev in eth0 eth1; do
    tc qdisc replace dev $dev root netem delay 270ms 5ms distribution normal rate 4mbit limit 200
done
