#!/bin/sh
# Fair queueing between flows, with a delay target of 5 ms in each.
tc qdisc replace dev eth0 root fq_codel
