#!/bin/sh
# A queue of 60 packets instead of 1000: only shorter.
tc qdisc replace dev eth0 root pfifo limit 60
