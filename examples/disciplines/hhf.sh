#!/bin/sh
# Who sends most waits in a queue of its own.
tc qdisc replace dev eth0 root hhf
