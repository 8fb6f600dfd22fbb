# Uses descriptors that the caller left open: number 9 is a file of the harness.
(echo written >&9) 2>/dev/null && echo "ESCAPED: descriptor 9"
for fd in /proc/self/fd/*; do
    case $(readlink "$fd") in
        pipe:* | /dev/null | /proc/* | "$0" | '') ;;
        *) echo "ESCAPED: $fd is $(readlink "$fd")" ;;
    esac
done
for fd in 0 1 2 3 4 5 6 7 8 9; do
    readlink /proc/1/fd/$fd > /dev/null && echo "ESCAPED: descriptor $fd of process 1"
    (: < /proc/1/fd/$fd) 2> /dev/null && echo "ESCAPED: opened descriptor $fd of process 1"
done
echo done
