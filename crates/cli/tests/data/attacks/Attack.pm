# What the attack scripts share: system calls by name, and how their outcome is told.
package Attack;
use strict; use warnings;
use Errno;
use Exporter 'import';
our @EXPORT = qw(attempt call escaped refused);

my ($arch) = grep { $_ } map { chomp; $_ } `uname -m`;
my %number = $arch eq 'aarch64' ? (
    mount => 40, umount2 => 39, unshare => 97, setns => 268, clone3 => 435, keyctl => 219, add_key => 217,
    request_key => 218, bpf => 280, perf_event_open => 241, io_uring_setup => 425, name_to_handle_at => 264,
    open_by_handle_at => 265, ptrace => 117, userfaultfd => 282, init_module => 105, clock_settime => 112,
    settimeofday => 170, memfd_create => 279, process_vm_writev => 271, chroot => 51, pivot_root => 41, reboot => 142,
    sethostname => 161, pidfd_getfd => 438, shmget => 194, adjtimex => 171, swapon => 224, acct => 89, quotactl => 60,
    fanotify_init => 262, open_tree => 428, move_mount => 429, fsopen => 430, mount_setattr => 442, kcmp => 272,
    syslog => 116, pidfd_open => 434, delete_module => 106, mknodat => 33,
) : (
    mount => 165, umount2 => 166, unshare => 272, setns => 308, clone3 => 435, keyctl => 250, add_key => 248,
    request_key => 249, bpf => 321, perf_event_open => 298, io_uring_setup => 425, name_to_handle_at => 303,
    open_by_handle_at => 304, ptrace => 101, userfaultfd => 323, init_module => 175, clock_settime => 227,
    settimeofday => 164, memfd_create => 319, process_vm_writev => 311, chroot => 161, pivot_root => 155, reboot => 169,
    sethostname => 170, pidfd_getfd => 438, shmget => 29, adjtimex => 159, swapon => 167, acct => 163, quotactl => 179,
    fanotify_init => 300, open_tree => 428, move_mount => 429, fsopen => 430, mount_setattr => 442, kcmp => 312,
    syslog => 103, pidfd_open => 434, delete_module => 176, mknodat => 259,
);

sub escaped { print "ESCAPED: $_[0]\n" }
sub refused { print "refused: $_[0]: $!\n" }

# The system call of that name, with numbers and strings as they are; what it returns.
sub call {
    my ($name, @args) = @_;
    my $number = $number{$name} // die "no number for $name";
    push @args, 0 while @args < 6;
    return syscall($number, map { /^-?\d+$/ ? $_ + 0 : $_ } @args);
}

# It must be refused for what it is: a call that fails for what it was given has reached the kernel. So harmful calls are
# given what the kernel would not take.
sub attempt {
    my ($name, @args) = @_;
    my $result = call($name, @args);
    return refused($name) if $result == -1 && ($!{ENOSYS} || $!{EPERM} || $!{EACCES});
    escaped($result == -1 ? "$name reached the kernel: $!" : $name);
}

1;
