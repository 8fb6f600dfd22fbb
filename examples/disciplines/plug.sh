#!/bin/sh
# A plug that has been opened: a queue limited in bytes, that a command can stop and start again.
tc qdisc replace dev eth0 root handle 1: plug limit 60k
tc qdisc change dev eth0 root handle 1: plug release_indefinite
