#!/bin/sh
# Makes crates/netlink/tests/data/sent.txt.gz anew: xtask/record/record.sh OUT SCRIPT…
#
# Each script is carried out by sh in a network namespace of its own making, where `tc` is the real one and writes down what it sends
# (sent.c) and every other tool does nothing. The devices are always there and always have the same numbers.
set -e
[ "$RECORDING" ] || exec env -u HZ RECORDING=1 unshare --net --mount "$0" "$@"
out=$1; shift
here=$(dirname "$(realpath "$0")"); tc=$(command -v tc); ip=$(command -v ip); work=$(mktemp -d)
gcc -O2 -Wall -shared -fPIC -o "$work/sent.so" "$here/sent.c" -ldl
number=2
for device in link0 link1 link2 link3 d0 ifb0 ifb1 ifb2 ifb3 ifb4 in1 v0 v1 eth0 eth1 eth2 ppp0; do
    $ip link del $device 2>/dev/null || true
    $ip link add $device index $number type ifb
    number=$((number + 1))
done
mkdir "$work/bin"
printf '#!/bin/sh\nLD_PRELOAD=%s %s "$@" >/dev/null 2>&1 </dev/null\nexit 0\n' "$work/sent.so" "$tc" >"$work/bin/tc"
printf '#!/bin/sh\nexit 0\n' >"$work/bin/ip"
chmod +x "$work"/bin/*
for tool in iptables ip6tables iptables-legacy nft sleep ethtool; do ln -s ip "$work/bin/$tool"; done
for script; do
    (cd "$work"; SENT_TO=$work/raw PATH=$work/bin:/usr/bin:/bin timeout 60 sh "$(realpath "$script")" >/dev/null 2>&1) || true
done
{
    echo '# What tc 6.1 sends for its words, which tabs part. Tables of 1024 octets stand as their FNV-1a hash; see xtask/record/sent.c.'
    echo "@ $($ip -o link | sed 's/^\([0-9]*\): \([^:@]*\).*/\2=\1/' | tr '\n' ' ' | sed 's/ $//')"
    LC_ALL=C sort -u "$work/raw"
} | gzip -9n >"$out"
rm -r "$work"
