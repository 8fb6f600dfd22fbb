#!/bin/sh
# Hold the delay at 15 ms by dropping just so many.
tc qdisc replace dev eth0 root pie
