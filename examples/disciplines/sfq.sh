#!/bin/sh
# Every flow its turn; the key of the hash changes every ten seconds.
tc qdisc replace dev eth0 root sfq perturb 10
