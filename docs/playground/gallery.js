// Policies to begin with, and lines. A policy is made for the line that is set: shapers a little below its rates.
'use strict';
(() => {
  const TG = window.TG = window.TG || {};
  const rate = bits => bits >= 1e5 ? `${Math.round(bits / 1e3)}kbit` : `${Math.round(bits)}bit`;
  const share = (bits, part) => rate(bits * part);
  const ingress = down => `ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
${down}`;

  TG.gallery = [
    { id: 'cake', title: 'CAKE both ways', text: line => `# CAKE shapes a little below the line, both ways, fair between hosts.
tc qdisc add dev eth0 root cake bandwidth ${share(line.up, .95)} nat dual-srchost
${ingress(`tc qdisc add dev ifb0 root cake bandwidth ${share(line.down, .93)} nat dual-dsthost ingress`)}
` },
    { id: 'fq', title: 'HTB with fq_codel both ways', text: line => `# One class at the line's rate, fair queues with short delays in it.
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate ${share(line.up, .95)}
tc qdisc add dev eth0 parent 1:10 fq_codel
${ingress(`tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:10 htb rate ${share(line.down, .93)}
tc qdisc add dev ifb0 parent 1:10 fq_codel`)}
` },
    { id: 'classes', title: 'Four classes by rules', text: line => `# Calls and names first, then the web, long transfers last.
tc qdisc add dev eth0 root handle 1: htb default 40
tc class add dev eth0 parent 1: classid 1:1 htb rate ${share(line.up, .95)}
tc class add dev eth0 parent 1:1 classid 1:10 htb rate ${share(line.up, .25)} ceil ${share(line.up, .9)} prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate ${share(line.up, .2)} ceil ${share(line.up, .95)} prio 1
tc class add dev eth0 parent 1:1 classid 1:30 htb rate ${share(line.up, .3)} ceil ${share(line.up, .95)} prio 2
tc class add dev eth0 parent 1:1 classid 1:40 htb rate ${share(line.up, .2)} ceil ${share(line.up, .9)} prio 3
tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 50
tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel
tc qdisc add dev eth0 parent 1:30 handle 30: fq_codel
tc qdisc add dev eth0 parent 1:40 handle 40: fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 10 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 20 fw flowid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 3 handle 30 fw flowid 1:30
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 10
iptables -t mangle -A POSTROUTING -o eth0 -p icmp -j MARK --set-mark 10
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 20
iptables -t mangle -A POSTROUTING -o eth0 -p tcp -m multiport --dports 80,443 -j MARK --set-mark 30
` },
    { id: 'short', title: 'Short policy: calls, web, backups', text: line => `# Ten lines that tidegate compiles to tc and nft.
device = "eth0"
lan = "eth1"
up = "${rate(line.up)}"
down = "${rate(line.down)}"
fair = "host"

[classes.calls]
apps = ["voip", "rtp", "zoom", "teams"]
first = true

[classes.web]
apps = ["web", "ssh"]
share = "30%"

[classes.bulk]
apps = ["torrent", "backup"]
last = true
` },
    { id: 'tbf', title: 'A shaper with a short queue', text: line => `# No fairness: one queue, at most 50 ms long.
tc qdisc add dev eth0 root tbf rate ${share(line.up, .95)} burst 10k latency 50ms
` },
    { id: 'prio', title: 'Priorities without a shaper', text: () => `# Does nothing for latency: the queue is the modem's, behind it.
tc qdisc add dev eth0 root handle 1: prio bands 3
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:1
` },
    { id: 'sfq', title: 'SFQ below the line', text: line => `tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate ${share(line.up, .95)}
tc qdisc add dev eth0 parent 1:1 sfq perturb 10
` },
    { id: 'hfsc', title: 'HFSC: a delay for calls', text: line => `tc qdisc add dev eth0 root handle 1: hfsc default 20
tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate ${share(line.up, .95)} ul rate ${share(line.up, .95)}
tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt umax 1500b dmax 20ms rate ${share(line.up, .2)} ls rate ${share(line.up, .2)}
tc class add dev eth0 parent 1:1 classid 1:20 hfsc ls rate ${share(line.up, .75)}
tc qdisc add dev eth0 parent 1:20 fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10
` },
    { id: 'mistake', title: 'With mistakes: what check finds', text: line => `# Accepted by Linux, and wrong in several ways.
tc qdisc add dev eth0 root handle 1: htb default 99
tc class add dev eth0 parent 1: classid 1:1 htb rate ${share(line.up, .95)}
tc class add dev eth0 parent 1:1 classid 1:10 htb rate ${share(line.up, .7)} ceil ${share(line.up, .95)}
tc class add dev eth0 parent 1:1 classid 1:20 htb rate ${share(line.up, .7)} ceil ${share(line.up, .95)}
tc qdisc add dev eth0 parent 1:10 fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 7 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 22 0xffff flowid 1:30
` },
    { id: 'none', title: 'No shaper', text: () => `# The qdisc that is there anyway: the queue builds up in the modem.
tc qdisc add dev eth0 root pfifo_fast
` },
  ];

  const M = 1e6;
  TG.presets = [
    { title: 'Cable 20/100, bloated modem', up: 20 * M, down: 100 * M, rtt: 30, buffer: 1500 },
    { title: 'ADSL 1/16', up: 1 * M, down: 16 * M, rtt: 40, buffer: 1500 },
    { title: 'VDSL 10/50', up: 10 * M, down: 50 * M, rtt: 25, buffer: 500 },
    { title: 'Fibre 100/100', up: 100 * M, down: 100 * M, rtt: 12, buffer: 100 },
    { title: 'Symmetric 10/10', up: 10 * M, down: 10 * M, rtt: 30, buffer: 1000 },
  ];
  // Lines of the program that vary, by the names that `tidegate try --preset` has.
  TG.varying = [['lte', 'LTE, varies'], ['starlink', 'Starlink, varies']];
  TG.loads = [['both', 'uploads and downloads'], ['up', '2 uploads'], ['down', '3 downloads'], ['hosts', 'two hosts: 4 uploads and 1'],
    ['tcp_1up', '1 upload'], ['rrul', 'RRUL: 4 and 4, marked'], ['udp_flood', 'UDP flood'], ['idle', 'nothing']];
  TG.textOf = (id, line) => (TG.gallery.find(entry => entry.id === id) || TG.gallery[0]).text(line);
})();
