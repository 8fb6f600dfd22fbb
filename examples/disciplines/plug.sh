#!/bin/sh
# An opened plug: a queue limited in bytes that commands can stop and release.
tc qdisc replace dev eth0 root handle 1: plug limit 60k
tc qdisc change dev eth0 root handle 1: plug release_indefinite
