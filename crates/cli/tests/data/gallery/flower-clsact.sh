#!/bin/sh
# Modern hooks: clsact, flower, chains and a policer.
tc qdisc add dev eth0 clsact
tc filter add dev eth0 egress protocol ip pref 10 flower ip_proto tcp dst_port 25 action drop
tc filter add dev eth0 egress protocol ip pref 20 flower ip_proto udp action skbedit priority 6
tc filter add dev eth0 ingress protocol ip pref 10 chain 0 flower src_ip 198.51.100.0/24 action goto chain 5
tc filter add dev eth0 ingress protocol ip pref 10 chain 5 flower ip_proto udp action police rate 5mbit burst 64k conform-exceed drop
