#!/bin/sh
# Shape slightly below the link's rate, with a short queue.
tc qdisc replace dev eth0 root tbf rate 9500kbit burst 5k latency 50ms
