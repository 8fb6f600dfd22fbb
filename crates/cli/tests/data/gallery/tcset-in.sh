# The same kind of generator for incoming traffic: everything of IPv4 to an ifb, and loss there.
modprobe ifb
ip link add ifb6682 type ifb
ip link set dev ifb6682 up
tc qdisc add dev eth0 ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 flowid 1a1a: action mirred egress redirect dev ifb6682
tc qdisc add dev ifb6682 root handle 1a1a: htb default 1
tc class add dev ifb6682 parent 1a1a: classid 1a1a:1 htb rate 32000000.0kbit
tc class add dev ifb6682 parent 1a1a: classid 1a1a:212 htb rate 20.0Mbit ceil 20.0Mbit burst 250KB cburst 250KB
tc qdisc add dev ifb6682 parent 1a1a:212 handle 2a2a: netem loss 1% delay 20ms 2ms
tc filter add dev ifb6682 protocol ip parent 1a1a: prio 5 u32 match ip src 198.51.100.0/24 flowid 1a1a:212
