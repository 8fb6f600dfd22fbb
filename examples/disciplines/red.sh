#!/bin/sh
# Drop with growing probability between 15 and 45 kB of average queue.
tc qdisc replace dev eth0 root red limit 200k min 15k max 45k avpkt 1000 burst 25 bandwidth 10mbit probability 0.05 ecn
