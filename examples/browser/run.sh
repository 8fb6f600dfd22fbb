#!/bin/sh
# Chromium loads a page behind an LTE line while another host of the LAN downloads: without and with fq_codel.
#   run.sh [OUT]        OUT (out): a directory for times, documents and screenshots
# It needs chromium, python3 and curl; tidegate from the PATH or $TIDEGATE.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
tidegate=${TIDEGATE:-tidegate}
out=${1:-out}
mkdir -p "$out"
out=$(cd -- "$out" && pwd)
pages=${PAGES:-5}

browse() {
    "$tidegate" --quiet shell --preset lte --seed 2 --realtime --hosts tv -o "$out/$1.json" \
        --server-command "exec python3 '$here/server.py' 8080 '$out/$1.times'" \
        --run "tv=sleep 1; exec curl -s -o /dev/null http://server:8080/endless" \
        ${2:+--policy "$2"} \
        -- sh -c '
            sleep 4
            for page in $(seq "$1"); do
                profile=$(mktemp -d)
                timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
                    --disable-background-networking --user-data-dir="$profile" --window-size=760,560 \
                    --timeout=30000 --screenshot="$2.png" http://server:8080/ 2> /dev/null || true
                rm -rf "$profile"
            done' sh "$pages" "$out/$1" || echo "$1: exit code $?"
}

for name in without fq_codel; do
    rm -f "$out/$name.times"
    case $name in
        without) browse without "" ;;
        # Below what the line carries most of the time: where it carries less, the queue is in front of it again.
        fq_codel) browse fq_codel "$here/fq_codel.sh eth0 1000 2500" ;;
    esac
    echo "$name: load, first byte, first paint, ms"
    cat "$out/$name.times"
done
