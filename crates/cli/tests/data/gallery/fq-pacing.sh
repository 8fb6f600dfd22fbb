# A sender's own pacing, capped.
sysctl -w net.core.default_qdisc=fq
tc qdisc replace dev eth0 root fq maxrate 8mbit flow_limit 200 quantum 3028
