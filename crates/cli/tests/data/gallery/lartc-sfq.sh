# Fair queueing where nothing queues.
tc qdisc add dev eth0 root sfq perturb 10
tc -s -d qdisc ls
