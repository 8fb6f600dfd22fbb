# Enters a session keyring with a canary in it, and forbids user namespaces if the first word says so; then runs the rest.
use strict; use warnings;
my $arm = `uname -m` =~ /aarch64/;
my ($keyctl, $add_key, $unshare, $prctl, $audit) = $arm ? (219, 217, 97, 167, 0xc00000b7) : (250, 248, 272, 157, 0xc000003e);
syscall($keyctl, 1, 0) != -1 or die "no keyring: $!";
my ($type, $name, $value) = ("user", "tidegate-canary", "canary");
syscall($add_key, $type, $name, $value, length $value, -3) != -1 or die "no key: $!";
if (shift @ARGV eq "no-user-namespaces") {
    # If the call is unshare with CLONE_NEWUSER: EPERM.
    my @steps = ([0x20, 0, 0, 0], [0x15, 0, 3, $unshare], [0x20, 0, 0, 16], [0x45, 0, 1, 0x10000000], [0x06, 0, 0, 0x00050001],
        [0x06, 0, 0, 0x7fff0000]);
    my $program = join "", map { pack "SCCL", @$_ } @steps;
    my $header = pack "S x6 P" . length $program, scalar @steps, $program;
    syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
    syscall($prctl, 22, 2, $header) == 0 or die "seccomp: $!";
}
exec @ARGV or die "@ARGV: $!";
