#!/bin/sh
# Four virtual queues, chosen by the mark that a filter of dsmark's kind would set.
tc qdisc add dev eth0 root gred setup DPs 4 default 3 grio
tc qdisc change dev eth0 root gred DP 1 limit 60KB min 15KB max 25KB burst 20 avpkt 1000 bandwidth 10Mbit probability 0.02 prio 2
tc qdisc change dev eth0 root gred DP 3 limit 60KB min 15KB max 45KB burst 20 avpkt 1000 bandwidth 10Mbit probability 0.02 prio 4
