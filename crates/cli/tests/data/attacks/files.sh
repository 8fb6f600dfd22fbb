# Writes, removes and renames the host's files: by name, by link, by the old working directory.
echo changed > "$1/canary"; rm -f "$1/canary"; mv "$1/fd9" "$1/moved"; ln -s /etc/passwd "$1/link"; mkdir "$1/new"
echo changed >> "$2"; rm -f "$2"
echo canary > /etc/tidegate-canary; echo canary > /var/tmp/tidegate-canary; echo canary > /tmp/tidegate-canary
cd /proc/self/cwd && echo x > written-here
for path in /proc/*/root /proc/*/cwd; do [ -e "$path/.old" ] && echo "ESCAPED: $path/.old"; done
[ -e /.old ] && echo "ESCAPED: /.old"
[ -e /.upper ] && echo "ESCAPED: /.upper"
ls /proc | grep -c '^[0-9]' | { read count; [ "$count" -lt 20 ] || echo "ESCAPED: $count processes seen"; }
echo done
