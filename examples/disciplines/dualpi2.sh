#!/bin/sh
# Low latency for L4S senders, beside ordinary ones.
tc qdisc replace dev eth0 root dualpi2 min_qlen_step 2
