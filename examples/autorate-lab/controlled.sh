# controlled.sh BASE MIN MAX CONTROLLER NAME LIMIT: the shaper, and the controller on it in the background ($pid); for
# lab.sh and cpu.sh to read in
T=${TIDEGATE:-tidegate}
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate ${1}bit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate $(( $1 / 10 ))bit ceil ${1}bit prio 1 quantum 1514
tc class add dev eth0 parent 1:1 classid 1:20 htb rate $(( $1 * 9 / 10 ))bit ceil ${1}bit prio 0 quantum 1514
tc qdisc add dev eth0 parent 1:10 bfifo limit $6
tc qdisc add dev eth0 parent 1:20 bfifo limit 20000
$T autorate eth0 --controller $4 --target server --min ${2}bit --max ${3}bit --json > $5.live & pid=$!
