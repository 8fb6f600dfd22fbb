#!/bin/sh
# CAKE at a fixed rate, the first argument, before the line on eth0.
set -eu
tc qdisc add dev eth0 root cake bandwidth "${1:-2mbit}"
