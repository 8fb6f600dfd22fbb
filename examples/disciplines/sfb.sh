#!/bin/sh
# Find the flows that do not give way.
tc qdisc replace dev eth0 root sfb increment 0.005 decrement 0.0001
