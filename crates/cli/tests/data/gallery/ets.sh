#!/bin/sh
# Two strict bands, three that share by weight, below a shaper.
tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 15k latency 400ms
tc qdisc add dev eth0 parent 1:1 handle 2: ets bands 5 strict 2 quanta 4500 3000 1514 priomap 4 4 3 3 2 2 1 0 4 4 4 4 4 4 4 4
tc qdisc add dev eth0 parent 2:1 fq_codel
tc qdisc add dev eth0 parent 2:5 fq_codel
