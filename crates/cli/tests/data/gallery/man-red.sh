# RED by the manual's rule of thumb, below a shaper.
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc qdisc add dev eth0 parent 1:1 handle 2: red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn adaptive bandwidth 9mbit
