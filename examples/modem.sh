#!/bin/sh
# A home gateway behind a cable modem.
#
# eth1 leads to the modem, which sends 128 kbit/s and buffers seconds of packets. This script shapes slightly below that
# rate, so that the queue stays here, where it is short.

TC=/sbin/tc
WAN=eth1
UPLINK=127kbit

# Remove the policy of an earlier run; after a boot there is none, and tc says so.
$TC qdisc del dev $WAN root 2>/dev/null

# The bucket holds little more than one full packet, so no burst reaches the modem's buffer.
/sbin/tc qdisc add dev $WAN root tbf rate $UPLINK burst 2048 latency 50ms
