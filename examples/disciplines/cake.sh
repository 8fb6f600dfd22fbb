#!/bin/sh
# Five percent below the link; a call's packets go first, and people share before their connections do.
tc qdisc replace dev eth0 root cake bandwidth 9500kbit diffserv4 dual-srchost
