# fq_pie with a limit of five packets, and pie beside it.
tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1
tc qdisc add dev eth0 parent 1:1 pie limit 1000 target 15ms
tc qdisc add dev eth0 parent 1:2 fq_pie limit 5
