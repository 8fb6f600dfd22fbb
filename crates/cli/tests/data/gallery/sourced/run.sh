#!/bin/sh
# A program in three files: this one, its settings, and its library.
here=$(dirname "$0")
. "$here/settings.conf"
. "$here/library.sh"

reset "$WAN"
root "$WAN" 40
top "$WAN" "$UPLINK"
leaf "$WAN" 10 "$VOICE" "$UPLINK" 0
leaf "$WAN" 20 "$WORK" "$UPLINK" 1
leaf "$WAN" 30 "$REST" "$UPLINK" 2
by_port "$WAN" 5060 10
by_port "$WAN" 22 20
