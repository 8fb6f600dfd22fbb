#!/bin/sh
# Low latency for those that ask for it, beside everybody else.
tc qdisc replace dev eth0 root dualpi2 min_qlen_step 2
