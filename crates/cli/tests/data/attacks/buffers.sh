# Takes the kernel's memory, which is in no process's pages: 2.6 GiB of socket buffers, held by 120 processes.
# Tried only where a control group bounds it: elsewhere it would take that much.
n=0
while [ $n -lt 120 ]; do
    perl -e 'use Socket; my @kept;
        for (1 .. 110) {
            socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or last;
            $a->blocking(0); 1 while syswrite($a, "x" x 65536);
            push @kept, $a, $b;
        }
        kill "STOP", $$' &
    n=$((n + 1))
done
while [ "$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c "(perl) T")" -lt 120 ]; do sleep 0.1; done
echo "ESCAPED: all buffers are full"
kill -9 -1
