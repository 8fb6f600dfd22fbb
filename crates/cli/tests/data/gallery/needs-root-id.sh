#!/bin/bash
# Asks who runs it, where its tools are, and which device leads out, as published scripts do.
[ "$(id -u)" -eq 0 ] || { echo "run this as root"; exit 1; }
TC=$(which tc)
IF=$(ip route show default | awk '{print $5; exit}')
[ -n "$IF" ] || { echo "no default route"; exit 1; }
MTU=$(cat /sys/class/net/$IF/mtu)
$TC qdisc del dev $IF root 2>/dev/null
$TC qdisc add dev $IF root handle 1: htb default 10
$TC class add dev $IF parent 1: classid 1:10 htb rate 9mbit quantum $MTU
$TC qdisc add dev $IF parent 1:10 sfq perturb 10 quantum $MTU
