#!/bin/sh
# One virtual queue with a RED curve.
tc qdisc replace dev eth0 root handle 1: gred setup vqs 1 default 0
tc qdisc change dev eth0 root handle 1: gred vq 0 limit 120k min 15k max 45k avpkt 1000 burst 25 bandwidth 10mbit probability 0.1
