#!/bin/sh
# A device with four transmit queues and a band for each; voice goes into the first.
ip link add d0 numtxqueues 4 type dummy
ip link set d0 up
tc qdisc replace dev d0 root handle 1: multiq
tc filter add dev d0 parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc action skbedit queue_mapping 0
