#!/bin/sh
# Fair queueing between flows; the hash key changes every ten seconds.
tc qdisc replace dev eth0 root sfq perturb 10
