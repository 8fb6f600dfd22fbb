# cpu.sh BASE MIN MAX CONTROLLER NAME LIMIT: as lab.sh, with CPU time and lines at both ends of 60 s
. ./controlled.sh
python3 load.py 70 & load=$!
read_both() { cut -d' ' -f1 /proc/$pid/schedstat; cut -d' ' -f14,15 /proc/$pid/stat; wc -l; }
sleep 5; read_both < $5.live > $5.a
sleep 60; read_both < $5.live > $5.b; grep VmHWM /proc/$pid/status >> $5.b
kill -TERM $pid; wait $pid; kill $load
