# Holds the caller: requests a byte at a time, and one that never ends.
perl -MSocket -e '
$SIG{PIPE} = "IGNORE";
my @all;
for (1 .. 8) {
    socket(my $s, AF_INET, SOCK_STREAM, 0) or die;
    connect($s, pack_sockaddr_in(5, inet_aton("127.0.0.1"))) or die;
    push @all, $s;
}
while (1) { syswrite($_, "T") for @all; select(undef, undef, undef, 0.5) }'
