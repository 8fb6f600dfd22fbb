#!/bin/sh
# A container host: both ends of a veth are made, and one is shaped.
ip link add veth1 type veth peer name pveth1
ip link set veth1 up
ip link set pveth1 up
tc qdisc add dev veth1 root tbf rate 5mbit burst 32kbit latency 400ms
