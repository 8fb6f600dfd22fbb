#!/bin/sh
# Fair queueing between flows, with pacing.
tc qdisc replace dev eth0 root fq
