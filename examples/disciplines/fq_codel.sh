#!/bin/sh
# Flows take turns, and each is held to 5 ms.
tc qdisc replace dev eth0 root fq_codel
