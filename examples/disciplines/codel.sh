#!/bin/sh
# Drop when packets keep waiting longer than 5 ms.
tc qdisc replace dev eth0 root codel
