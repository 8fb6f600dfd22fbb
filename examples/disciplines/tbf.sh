#!/bin/sh
# A little below the link's rate, so that the queue stands here, and a short queue.
tc qdisc replace dev eth0 root tbf rate 9500kbit burst 5k latency 50ms
