# CHOKe keeps a flood down without knowing whose it is.
tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 10k limit 200k
tc qdisc add dev eth0 parent 1:1 choke limit 1000 bandwidth 9mbit min 40 max 120 burst 60 ecn
