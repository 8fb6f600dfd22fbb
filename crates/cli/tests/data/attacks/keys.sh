# Reads and changes the caller's keys: the harness left one called tidegate-canary in its session keyring.
perl -I"${0%/*}" -MAttack -e '
attempt("keyctl", 10, $_, "user", "tidegate-canary", 0) for -1, -2, -3, -4, -5;   # search
attempt("keyctl", 0, -3, 0); attempt("keyctl", 7, -3, 0);                          # get, clear
attempt("request_key", "user", "tidegate-canary", 0, 0);
attempt("add_key", "user", "tidegate-other", "x", 1, $_) for -3, -4;
attempt("keyctl", 1, 0);'
grep -s tidegate-canary /proc/keys && echo "ESCAPED: /proc/keys"
echo done
