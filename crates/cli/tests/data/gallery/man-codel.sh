# CoDel for a slow line, its target below what one frame takes.
tc qdisc add dev ppp0 root handle 1: htb default 1
tc class add dev ppp0 parent 1: classid 1:1 htb rate 512kbit
tc qdisc add dev ppp0 parent 1:1 codel limit 100 target 4ms interval 30ms ecn
