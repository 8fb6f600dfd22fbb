# Many processes, each with much memory: the caller ends the run.
for n in $(seq 40); do perl -e 'my $x = "x" x (120 << 20); sleep 60' & done
wait
echo ESCAPED: 4.8 GB
