#!/bin/sh
# The device's default: three bands by the packets' type of service.
tc qdisc replace dev eth0 root pfifo_fast
