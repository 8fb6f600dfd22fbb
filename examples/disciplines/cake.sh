#!/bin/sh
# Shape 5 % below the link's rate; calls have priority, and hosts share before flows.
tc qdisc replace dev eth0 root cake bandwidth 9500kbit diffserv4 dual-srchost
