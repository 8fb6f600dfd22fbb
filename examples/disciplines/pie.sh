#!/bin/sh
# Keep the delay at 15 ms by random drops.
tc qdisc replace dev eth0 root pie
