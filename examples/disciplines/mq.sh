#!/bin/sh
# A device with four transmit queues and fq_codel for each.
ip link add d0 numtxqueues 4 type dummy
ip link set d0 up
tc qdisc replace dev d0 root handle 1: mq
for queue in 1 2 3 4; do
    tc qdisc replace dev d0 parent 1:$queue fq_codel
done
