#!/bin/sh
# A home gateway. Five classes share the uplink; each connection gets a mark with its first packet, and all of its packets carry it.
#
#   home-gateway.sh [start|show|stop]
#
#   class  mark  for                         guaranteed at most
#   1:10     10  calls, games, DNS (UDP), ping   300      1500 kbit/s
#   1:20     20  acknowledgements of downloads   400      1500
#   1:30     30  SSH                             200      1000
#   1:40     40  the web                         450      1500
#   1:99     99  everything else, long transfers 150      1300
#
# Try it before it runs: tidegate try examples/home-gateway.sh --up 1600kbit --down 20mbit

WAN=${WAN:-eth0}
LINK=${LINK:-1500} # kbit/s: a little less than the modem sends, or the queue is the modem's

TC=$(command -v tc)
IPT="$(command -v iptables) -t mangle"

# class NUMBER RATE CEIL PRIO LEAF...: a class, the queue in it, and the filter that leads a mark there
class() {
    number=$1 rate=$2 ceil=$3 prio=$4
    shift 4
    $TC class add dev "$WAN" parent 1:1 classid "1:$number" htb rate "${rate}kbit" ceil "${ceil}kbit" burst 6k prio "$prio"
    $TC qdisc add dev "$WAN" parent "1:$number" handle "$number:" "$@"
    $TC filter add dev "$WAN" parent 1:0 protocol ip prio "$prio" handle "$number" fw flowid "1:$number"
}

# connections MARK MATCH...: whole connections get a mark
connections() {
    mark=$1
    shift
    $IPT -A POSTROUTING -o "$WAN" "$@" -j CONNMARK --set-mark "$mark"
}

stop() {
    $TC qdisc del dev "$WAN" root 2>/dev/null # fails when there is none
    # The table is this script's own here; elsewhere a chain of its own would be.
    $IPT -F # tidegate: allow foreign-rules
    $IPT -X
}

start() {
    stop
    $TC qdisc add dev "$WAN" root handle 1: htb default 99
    $TC class add dev "$WAN" parent 1: classid 1:1 htb rate "${LINK}kbit" ceil "${LINK}kbit" burst 6k

    class 10 300 1500 1 pfifo limit 20
    class 20 400 1500 2 pfifo limit 40
    class 30 200 1000 3 sfq perturb 10 limit 40
    class 40 450 1500 4 sfq perturb 10 limit 60
    class 99 150 1300 5 sfq perturb 10 limit 60

    # Calls and names; the web over UDP (QUIC) goes with the web.
    connections 10 -p udp
    connections 40 -p udp --dport 443
    connections 10 -p icmp
    connections 30 -p tcp --tcp-flags SYN SYN --dport 22
    connections 40 -p tcp --tcp-flags SYN SYN -m multiport --dports 80,443
    # What has carried more than 6 MB is no page: it waits with all else.
    connections 99 -p tcp -m connbytes --connbytes 6000000: --connbytes-mode bytes --connbytes-dir both
    $IPT -A POSTROUTING -o "$WAN" -j CONNMARK --restore-mark
    # An acknowledgement alone is short, also with SACK blocks, and has no other flag: whatever its connection, a download waits for it.
    $IPT -A POSTROUTING -o "$WAN" -p tcp --tcp-flags SYN,ACK,FIN,RST,PSH,URG ACK -m length --length 40:100 -j MARK --set-mark 20
}

show() {
    $TC -s qdisc show dev "$WAN"
    $TC -s class show dev "$WAN"
    $IPT -L POSTROUTING -v
}

case "${1:-start}" in
    start) start ;;
    show) show ;;
    stop) stop ;;
    *)
        echo "usage: $0 [start|show|stop]" >&2
        exit 2
        ;;
esac
