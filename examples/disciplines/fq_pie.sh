#!/bin/sh
# Each flow in its turn, and its own delay held at 15 ms.
tc qdisc replace dev eth0 root fq_pie
