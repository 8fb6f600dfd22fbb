#!/bin/sh
# Find and limit unresponsive flows.
tc qdisc replace dev eth0 root sfb increment 0.005 decrement 0.0001
