# cpu.sh BASE MIN MAX CONTROLLER NAME LIMIT: as lab.sh, with CPU time and lines at both ends of 30 s
. ./controlled.sh
python3 load.py 40 & load=$!
sleep 5; cut -d' ' -f1 /proc/$pid/schedstat > $5.a; wc -l < $5.live >> $5.a
sleep 30; cut -d' ' -f1 /proc/$pid/schedstat > $5.b; wc -l < $5.live >> $5.b; grep VmHWM /proc/$pid/status >> $5.b
kill -TERM $pid; wait $pid; kill $load
