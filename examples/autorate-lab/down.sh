# down.sh BASE MIN MAX CONTROLLER NAME LIMIT SECONDS: as lab.sh, for downloads: what comes in by eth0 is redirected to an
# ifb, whose root shapes it. Uploads are only acknowledgements here, and have a shaper that is left at its rate.
T=${TIDEGATE:-tidegate}
tc qdisc add dev eth0 root tbf rate 50mbit burst 30000 limit 150000
ip link add ifb0 type ifb && ip link set ifb0 up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:1 htb rate ${1}bit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate $(( $1 / 10 ))bit ceil ${1}bit prio 1 quantum 1514
tc class add dev ifb0 parent 1:1 classid 1:20 htb rate $(( $1 * 9 / 10 ))bit ceil ${1}bit prio 0 quantum 1514
tc qdisc add dev ifb0 parent 1:10 bfifo limit $6
tc qdisc add dev ifb0 parent 1:20 bfifo limit 20000
# The call and the replies to probes go first.
for protocol in 1 17; do
    tc filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip protocol $protocol 0xff flowid 1:20
done
$T autorate eth0 --down ifb0 --controller $4 --target server --min 50mbit,${2}bit --max 50mbit,${3}bit --json > $5.live & pid=$!
python3 fetch.py $7
tc -s qdisc show dev ifb0 > $5.shaper
cut -d' ' -f14,15 /proc/$pid/stat > $5.cpu; kill -TERM $pid; wait $pid
