#!/bin/sh
# RED that also drops from the flow that fills the queue.
tc qdisc replace dev eth0 root choke limit 200 bandwidth 10mbit min 10 max 30 burst 20 probability 0.05
