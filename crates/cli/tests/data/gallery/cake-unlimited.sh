# cake at the line's own speed: it has no queue to manage.
tc qdisc replace dev eth0 root cake unlimited diffserv3
