#!/bin/sh
# quinn's client downloads 3 MB from quinn's server behind five lines that vary.
#   run.sh [OUT]        OUT (out): a directory for what was asked of each line and what was measured of it
# It needs cargo; tidegate from the PATH or $TIDEGATE.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
tidegate=${TIDEGATE:-tidegate}
out=${1:-out}
mkdir -p "$out"
cargo build --quiet --release --manifest-path "$here/Cargo.toml"
quic=$here/target/release/quic-lab
for preset in lte 5g-driving starlink cable-evening dsl-retrain; do
    printf '%s: ' "$preset"
    "$tidegate" --quiet shell --preset "$preset" --realtime -o "$out/$preset.json" \
        --server-command "exec '$quic' server" -- sh -c 'sleep 0.3; exec "$@"' sh "$quic" client server 3000000
done
