# score.py DIR SECONDS [MEAN]: what of a run counts, from second 5 of the load on: the call's delays (a lost packet
# counts as 2 s), and the rate of the transfers and the call with their headers, as a share of MEAN bit/s.
import sys
d,secs=sys.argv[1],float(sys.argv[2]); mean=float(sys.argv[3]) if len(sys.argv)>3 else None
got={int(n):(float(t),float(late)) for n,t,late in (l.split() for l in open(d+'/call.txt') if l.count(' ')==2)}
first=min(got); t0=got[first][0]-first*.02
counted=range(250,min(int(secs/.02),max(got)+1))
late=sorted(got[n][1] if n in got else 2. for n in counted)
at=lambda p: late[min(len(late)-1,int(p/100*len(late)))]*1000
rows=[tuple(map(float,l.split())) for l in open(d+'/bytes.txt') if l.count(' ')==1]
total=lambda t: next((b for when,b in rows if when>=t),rows[-1][1])
# A full frame is 1,514 bytes and carries 1,448; a packet of the call is one of 214.
rate=(total(t0+secs)-total(t0+5))*8/(secs-5)*1514/1448+214*8*50
print(f'median {at(50):.0f} ms, p95 {at(95):.0f} ms, p99 {at(99):.0f} ms, lost {sum(n not in got for n in counted)}, '
      f'{rate/1e6:.3f} Mbit/s'+(f', {100*rate/mean:.1f} % of the line' if mean else ''))
