#!/bin/sh
# A home gateway behind a cable modem.
#
# eth1 goes to the modem, which sends 128 kbit/s and keeps everything else in a buffer of seconds. Sending a little
# less than it can, the queue stays here, where it is short.

TC=/sbin/tc
WAN=eth1
UPLINK=127kbit

# What an earlier run left; on a fresh boot there is nothing, and tc says so.
$TC qdisc del dev $WAN root 2>/dev/null

# The bucket holds one full packet and a bit, so no burst reaches the modem's buffer.
/sbin/tc qdisc add dev $WAN root tbf rate $UPLINK burst 2048 latency 50ms
