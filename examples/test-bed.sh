#!/bin/sh
# A test-bed in network namespaces: a client, a router with a slow link, and a server 40 ms away.
set -e

for name in client router server; do
    ip netns add $name
done
ip link add c0 type veth peer name r0
ip link add s0 type veth peer name r1
ip link set c0 netns client
ip link set r0 netns router
ip link set r1 netns router
ip link set s0 netns server

ip -n client addr add 10.0.1.1/24 dev c0
ip -n router addr add 10.0.1.254/24 dev r0
ip -n router addr add 10.0.2.254/24 dev r1
ip -n server addr add 10.0.2.1/24 dev s0
for link in client:c0 router:r0 router:r1 server:s0; do
    ip -n ${link%:*} link set ${link#*:} up
done
ip -n client route add default via 10.0.1.254
ip -n server route add default via 10.0.2.254
ip netns exec router sysctl -qw net.ipv4.ip_forward=1

ip netns exec router tc qdisc add dev r1 root handle 1: htb default 10
ip netns exec router tc class add dev r1 parent 1: classid 1:10 htb rate 10mbit
ip netns exec router tc qdisc add dev r1 parent 1:10 handle 10: fq_codel
ip netns exec router tc qdisc add dev r0 root netem delay 40ms

ip netns exec server iperf3 -s -D
ip netns exec client ping -i 0.2 10.0.2.1 > ping.log &
ip netns exec client iperf3 -c 10.0.2.1 -t 20
