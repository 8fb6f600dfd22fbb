#!/bin/bash
# Guests of a hotspot by their hardware addresses, downloads on the radio's side.
WLAN=wlan0
guests="02:00:5e:10:00:01 02:00:5e:10:00:02"
tc qdisc add dev $WLAN root handle 1: htb default 99
tc class add dev $WLAN parent 1: classid 1:1 htb rate 20mbit
tc class add dev $WLAN parent 1:1 classid 1:99 htb rate 64kbit ceil 256kbit
n=10
for mac in $guests; do
    m=${mac//:/}
    tc class add dev $WLAN parent 1:1 classid 1:$n htb rate 2mbit ceil 4mbit
    tc filter add dev $WLAN parent 1: protocol ip prio 5 u32 match u16 0x0800 0xffff at -2 \
        match u32 0x${m:4} 0xffffffff at -12 match u16 0x${m:0:4} 0xffff at -14 flowid 1:$n
    n=$((n + 1))
done
