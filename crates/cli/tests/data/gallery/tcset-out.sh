# What a generator of the tcconfig kind writes for: outgoing 1 Mbit/s, 100 ms, of IPv4 only.
tc qdisc add dev eth0 root handle 1a1a: htb default 1
tc class add dev eth0 parent 1a1a: classid 1a1a:1 htb rate 32000000.0kbit
tc class add dev eth0 parent 1a1a: classid 1a1a:100 htb rate 1000.0Kbit ceil 1000.0Kbit burst 12.5KB cburst 12.5KB
tc qdisc add dev eth0 parent 1a1a:100 handle 2a2a: netem delay 100.0ms
tc filter add dev eth0 protocol ip parent 1a1a: prio 5 u32 match ip dst 0.0.0.0/0 match ip src 0.0.0.0/0 flowid 1a1a:100
