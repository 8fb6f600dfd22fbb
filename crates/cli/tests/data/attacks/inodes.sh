# Changes what can be seen of the host's inodes: mode, owner, times, attributes.
for path in /dev/null /dev/zero /dev/full /dev/random /dev/urandom /run/tidegate/bin/tc "$2" /proc/1/exe /proc/$PPID/exe; do
    chmod 4777 "$path" 2>/dev/null && [ -e "/dev/${path#/dev/}" ] && echo "ESCAPED: chmod $path"
    chown 65534:65534 "$path" 2>/dev/null
    touch -d 2001-01-01 "$path" 2>/dev/null
    perl -e 'utime(1, 1, $ARGV[0])' "$path"
    perl -e 'syscall(188, $ARGV[0], "user.tidegate", "x", 1, 0)' "$path"
    chattr +a "$path" 2>/dev/null
    (: >> "$path") 2>/dev/null
done
for path in /run/tidegate/bin/tc /proc/1/exe; do
    chmod 6777 "$path" 2>/dev/null && echo "ESCAPED: chmod $path"
    echo x >> "$path" 2>/dev/null && echo "ESCAPED: write $path"
done
tc qdisc show | perl -e 'my $tool = <STDIN>' &
for exe in /proc/[0-9]*/exe; do chmod 4755 "$exe" 2>/dev/null; done
perl -e 'opendir(my $d, "/dev"); for (readdir $d) { next if /^\./; system("ls", "-l", "/dev/$_") }'
echo done
