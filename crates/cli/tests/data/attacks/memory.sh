# Takes more memory than a policy needs: files without names, shared memory, files in memory, one large process.
perl -I"${0%/*}" -MAttack -e '
attempt("memfd_create", "x", 0);
attempt("shmget", 0, 1 << 30, 0666 | 512);
$| = 1; my $size = 3 << 30; my $text = "x" x $size; escaped("3 GiB in one process");' 2>&1 | head -5
for dir in /tmp /dev/shm /run /var/tmp "$1" /; do
    head -c 2000000000 /dev/zero 2>/dev/null > "$dir/large"
    [ "$(wc -c < "$dir/large" 2>/dev/null || echo 0)" -gt 400000000 ] && echo "ESCAPED: $dir holds a large file"
done
total=$(du -cb /tmp/large /dev/shm/large /run/large /var/tmp/large "$1/large" /large 2>/dev/null | tail -1 | cut -f1)
[ "${total:-0}" -gt 400000000 ] && echo "ESCAPED: files of $total bytes in memory"
for n in 1 2 3 4 5; do rm -f /tmp/large /dev/shm/large /run/large /var/tmp/large "$1/large" /large; done
echo done
