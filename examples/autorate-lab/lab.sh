# lab.sh BASE MIN MAX CONTROLLER NAME LIMIT SECONDS
. ./controlled.sh
python3 load.py $7
cut -d' ' -f14,15 /proc/$pid/stat > $5.cpu; kill -TERM $pid; wait $pid
