# ns-2.35 dumbbell equal to ns3.cc: ns ns2.tcl n mbit dur qdisc(DropTail|SFQ|DRR|RED) agent(Sack1|Linux)
set n [lindex $argv 0]; set mb [lindex $argv 1]; set dur [lindex $argv 2]; set qt [lindex $argv 3]; set ag [lindex $argv 4]
set ns [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags
set l [$ns node]; set r [$ns node]
$ns duplex-link $l $r ${mb}Mb 18ms $qt
$ns queue-limit $l $r 1000
Agent/TCP set packetSize_ 1448
Agent/TCP set window_ 3000
Agent/TCP set windowInit_ 10
for {set i 0} {$i<$n} {incr i} {
 set s($i) [$ns node]; set d($i) [$ns node]
 $ns duplex-link $s($i) $l 1000Mb 1ms DropTail; $ns duplex-link $r $d($i) 1000Mb 1ms DropTail
 $ns queue-limit $s($i) $l 1000
 if {$ag=="Linux"} {set t($i) [new Agent/TCP/Linux]; set k($i) [new Agent/TCPSink/Sack1/DelAck]} else {set t($i) [new Agent/TCP/Sack1]; set k($i) [new Agent/TCPSink/Sack1/DelAck]}
 $ns attach-agent $s($i) $t($i); $ns attach-agent $d($i) $k($i); $ns connect $t($i) $k($i)
 $t($i) set fid_ $i
 if {$ag=="Linux"} {$ns at 0 "$t($i) select_ca cubic"}
 set f($i) [new Application/FTP]; $f($i) attach-agent $t($i); $ns at [expr 0.1+0.01*$i] "$f($i) start"
}
$ns at $dur {finish}
proc finish {} {global t n dur mb; set a 0; set p 0; for {set i 0} {$i<$n} {incr i} {set a [expr $a+[$t($i) set ack_]]; set p [expr $p+[$t($i) set ndatapack_]]}; puts "ns2 n=$n mbit=$mb acked_pkts=$a datapack=$p goodput=[expr $a*1448.0*8/1e6/$dur] Mbit/s"; exit 0}
$ns run
