#!/bin/sh
# A queue of 60 packets that drops the oldest when full.
tc qdisc replace dev eth0 root pfifo_head_drop limit 60
