#!/bin/sh
# A server's card with four queues, fq on each for pacing.
DEV=eth0
tc qdisc replace dev $DEV root handle 1: mq
for q in 1 2 3 4; do
    tc qdisc replace dev $DEV parent 1:$q handle 1$q: fq
done
