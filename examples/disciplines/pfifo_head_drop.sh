#!/bin/sh
# A queue of 60 packets that loses its oldest.
tc qdisc replace dev eth0 root pfifo_head_drop limit 60
