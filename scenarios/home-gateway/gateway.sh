#!/bin/sh
# A home's uplink of 1.6 Mbit/s in five classes: calls and DNS, acknowledgements, SSH, the web, everything else.
# A connection is marked by its first packet and keeps the mark; acknowledgements without data are marked one by one.

WAN=${1:-eth0}
TC=$(command -v tc)
MANGLE="$(command -v iptables) -t mangle"

# number, guaranteed and maximum kbit/s, priority, then the queue of the class
branch() {
    id=$1 rate=$2 ceil=$3 prio=$4
    shift 4
    $TC class add dev "$WAN" parent 1:1 classid "1:$id" htb rate "${rate}kbit" ceil "${ceil}kbit" prio "$prio"
    $TC qdisc add dev "$WAN" parent "1:$id" handle "1$id:" "$@"
    $TC filter add dev "$WAN" parent 1:0 protocol ip prio "$prio" handle "$id" fw flowid "1:$id"
}

$TC qdisc del dev "$WAN" root 2>/dev/null
$TC qdisc add dev "$WAN" root handle 1: htb default 999 r2q 40
$TC class add dev "$WAN" parent 1: classid 1:1 htb rate 1560kbit
branch 100 160 1560 1 pfifo limit 10
branch 200 320 1560 2 pfifo limit 10
branch 300 160 1120 3 sfq perturb 10 limit 32
branch 400 800 1560 4 sfq perturb 10 limit 32
branch 999 120 1560 5 sfq perturb 10 limit 32

$MANGLE -F POSTROUTING
$MANGLE -A POSTROUTING -o "$WAN" -p udp -j CONNMARK --set-mark 100
$MANGLE -A POSTROUTING -o "$WAN" -p tcp --tcp-flags SYN SYN --dport 22 -j CONNMARK --set-mark 300
$MANGLE -A POSTROUTING -o "$WAN" -p tcp --tcp-flags SYN SYN -m multiport --dports 80,443 -j CONNMARK --set-mark 400
$MANGLE -A POSTROUTING -o "$WAN" -j CONNMARK --restore-mark
$MANGLE -A POSTROUTING -o "$WAN" -p tcp --tcp-flags SYN,ACK ACK -m length --length :100 -j MARK --set-mark 200
