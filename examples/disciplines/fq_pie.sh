#!/bin/sh
# Fair queueing between flows, with a delay target of 15 ms in each.
tc qdisc replace dev eth0 root fq_pie
