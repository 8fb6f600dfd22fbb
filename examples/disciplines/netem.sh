#!/bin/sh
# Emulate a slower and more distant link.
tc qdisc replace dev eth0 root netem delay 20ms rate 9mbit limit 80
