#!/bin/sh
# A variable that is never set.
tc qdisc add dev $WAN_IF root tbf rate 9mbit burst 20k latency 50ms
