#!/bin/sh
# The shortest controller there is: half of the highest rate, for ever.
read -r start
rate() {
    printf '%s' "$start" | sed "s/.*\"most\":{[^}]*\"$1\":\([0-9]*\).*/\1/"
}
echo "{\"up\": $(($(rate up) / 2)), \"down\": $(($(rate down) / 2)), \"reason\": \"fixed\"}"
while read -r _; do
    echo '{}'
done
