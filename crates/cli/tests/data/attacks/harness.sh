# Runs an attack beside canaries: harness.sh TIDEGATE ARENA SCRIPT [OPTION...]. Prints what the attack printed, then what changed.
tidegate=$1 arena=$2 script=$3
shift 3
cd "$arena" || exit 1
echo content > canary
: > fd9
mkfifo pipe 2>/dev/null
perl -MSocket -e '
socket(my $s, AF_UNIX, SOCK_STREAM, 0); bind($s, pack_sockaddr_un("socket")); listen($s, 5);
socket(my $d, AF_UNIX, SOCK_STREAM, 0); bind($d, pack_sockaddr_un("\0tidegate-canary")); listen($d, 5);
open(my $pipe, "+<", "pipe");
my $bits = ""; vec($bits, fileno($_), 1) = 1 for $s, $d, $pipe;
select($bits, undef, undef, undef); open(my $heard, ">", "heard"); exec "sleep", "98764"' &
listener=$!
sleep 98763 &
victim=$!
# Waits until the listener listens: it makes the socket.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -S socket ] && break; sleep 0.1; done

state() {
    stat -c '%n mode %f owner %u:%g links %h modified %Y size %s' canary fd9 "$tidegate" /dev/null /dev/zero /dev/full \
        /dev/random /dev/urandom
    ls "$arena" /etc/tidegate-canary /var/tmp/tidegate-canary /tmp/tidegate-canary typed 2>&1
    cat canary fd9
    stty -a 2>&1
    for pid in $listener $victim; do
        set -- $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null)
        case ${1:-gone} in S | R | D) echo "process runs" ;; *) echo "process is ${1:-gone}" ;; esac
    done
    perl -e 'my $key = syscall($ARGV[0] eq "aarch64" ? 219 : 250, 10, -3, "user", "tidegate-canary", 0);
        my $text = "\0" x 16; my $n = $key == -1 ? -1 : syscall($ARGV[0] eq "aarch64" ? 219 : 250, 11, $key, $text, 16);
        print "key ", ($n > 0 ? substr($text, 0, $n) : "gone"), "\n"' "$(uname -m)"
}

state > "$arena.before" 2>&1
exec 9>> fd9
# In the background of a group of its own, as a shell with job control does it, so that a `kill 0` that got out hits the victim.
timeout --foreground -k 5 330 "$tidegate" run "$@" "$script" -- "$arena" "$tidegate" > "$arena.out" 2> "$arena.err" < /dev/tty
code=$?
exec 9>&-
state > "$arena.after" 2>&1
cat "$arena.out"
echo "code $code"
diff "$arena.before" "$arena.after" > /dev/null || { echo "CHANGED:"; diff "$arena.before" "$arena.after"; }
grep -lz 98765 /proc/[0-9]*/cmdline 2>/dev/null | grep -v "/$$/" | while read -r left; do
    [ -r "$left" ] || continue
    tr '\0' ' ' < "$left" 2>/dev/null | grep -q '^sleep 98765' && echo "LEFT: $left"
done
perl -e 'use Fcntl; fcntl(STDIN, F_SETFL, O_NONBLOCK); my $n = sysread(STDIN, my $typed, 100); print "TYPED: $typed\n" if $n'
kill $listener $victim 2>/dev/null
rm -f "$arena.before" "$arena.after" "$arena.out" "$arena.err"
echo "harness ended"
