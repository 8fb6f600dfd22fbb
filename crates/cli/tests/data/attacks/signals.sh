# Signals to the process group, to everybody, and to the processes above.
(trap 'kill 0' EXIT; trap '' TERM; kill -TERM 0)
perl -e 'setpgrp; kill "STOP", -$_ for 2 .. 300; kill "KILL", -getpgrp(getppid())' &
for pid in $PPID 1 2 3; do kill -9 "$pid" 2>/dev/null; done
setsid sleep 98765 > /dev/null 2>&1 &
trap 'kill 0' EXIT
echo done
