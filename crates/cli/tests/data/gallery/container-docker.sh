#!/bin/bash
# A delay inside a container.
for name in web db; do
    docker exec --privileged "$name" tc qdisc add dev eth0 root netem delay 50ms
done
