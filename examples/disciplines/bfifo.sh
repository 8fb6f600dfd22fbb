#!/bin/sh
# A queue of 90 kB.
tc qdisc replace dev eth0 root bfifo limit 90k
