#!/bin/sh
# Drop when the sojourn time stays above 5 ms.
tc qdisc replace dev eth0 root codel
