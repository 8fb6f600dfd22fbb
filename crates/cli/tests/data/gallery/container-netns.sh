#!/bin/sh
# Two namespaces and a cable between them, made worse at one end.
ip netns add left
ip netns add right
ip link add vl type veth peer name vr
ip link set vl netns left
ip link set vr netns right
ip netns exec left ip addr add 10.7.0.1/24 dev vl
ip netns exec right ip addr add 10.7.0.2/24 dev vr
ip netns exec left tc qdisc add dev vl root netem delay 40ms
