reset() { tc qdisc del dev "$1" root 2>/dev/null || true; }
root() { tc qdisc add dev "$1" root handle 1: htb default "$2"; }
top() { tc class add dev "$1" parent 1: classid 1:1 htb rate "$2" ceil "$2"; }
leaf() {
    tc class add dev "$1" parent 1:1 classid 1:"$2" htb rate "$3" ceil "$4" prio "$5"
    tc qdisc add dev "$1" parent 1:"$2" handle "$2": sfq perturb 10
}
by_port() { tc filter add dev "$1" parent 1: protocol ip prio 5 u32 match ip dport "$2" 0xffff flowid 1:"$3"; }
