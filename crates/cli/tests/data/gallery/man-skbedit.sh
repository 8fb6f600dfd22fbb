# The action changes priorities, the prio reads them.
tc qdisc add dev eth0 root handle 1: prio bands 3
tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 22 0xffff action skbedit priority 1:1
tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 5201 0xffff flowid 1:3
