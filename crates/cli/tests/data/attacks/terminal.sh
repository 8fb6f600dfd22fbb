# Types into the caller's terminal (TIOCSTI), and changes its modes.
perl -I"${0%/*}" -MAttack -e '
for my $path ("/dev/tty", "/dev/console", "/dev/stdin", "/dev/stdout", "/dev/stderr", glob("/dev/pts/* /dev/tty?*")) {
    open(my $terminal, "+<", $path) or refused("open $path"), next;
    for my $letter (split //, "touch typed\n") {
        ioctl($terminal, 0x5412, $letter) ? escaped("TIOCSTI on $path") : refused("TIOCSTI on $path"), last;
    }
}
for my $fd (0 .. 2) {
    open(my $terminal, "<&=", $fd) or next;
    my $letter = "x";
    ioctl($terminal, 0x5412, $letter) ? escaped("TIOCSTI on descriptor $fd") : refused("TIOCSTI on descriptor $fd");
    ioctl($terminal, 0x540e, 1) ? escaped("TIOCSCTTY on descriptor $fd") : refused("TIOCSCTTY on descriptor $fd");
}'
stty -echo < /dev/tty && echo "ESCAPED: stty"
setsid -c true < /dev/stdin 2>/dev/null
echo done
