#!/bin/sh
# Each flow in its turn.
tc qdisc replace dev eth0 root fq
