# jitter.py DIR [SEED]: recordings of lines with jitter and no other trouble, 16 Mbit/s down (DIR/down) and 4 up (DIR/up).
# uniformJ: the delay is 10 to 10 + J ms, drawn each 5 ms. burstsJ: the line is taken for a quarter of J to J ms, 60 ms
# (exponentially) after the last time, and what waits comes at its end.
import os,random,sys
SECONDS,LEAST=60,10
def uniform(j,draw):
    return [(at/1000,LEAST+draw.random()*j) for at in range(0,SECONDS*1000,5)]
def bursts(j,draw):
    rows,at=[],0.
    while at<SECONDS*1000:
        at+=max(2,draw.expovariate(1/60)); hold=j*(.25+.75*draw.random()); rows.append((at,LEAST+hold)); step=at
        while step<at+hold:
            step+=2; rows.append((step,LEAST+max(0,hold-(step-at))))
        at+=hold; rows.append((at+.001,LEAST))
    kept=[(0.,LEAST)]
    for when,delay in rows:
        if when/1000>kept[-1][0]+.0002 and when<SECONDS*1000: kept.append((when/1000,delay))
    return kept
seed=int(sys.argv[2]) if len(sys.argv)>2 else 0
for way,mbit in ('down',16),('up',4):
    os.makedirs(f'{sys.argv[1]}/{way}',exist_ok=True)
    for j in 0,5,10,20:
        for make in (uniform,bursts) if j else (uniform,):
            rows=make(j,random.Random(j+1+seed)) if j else [(0,LEAST),(SECONDS,LEAST)]
            with open(f'{sys.argv[1]}/{way}/{make.__name__}{j}.csv','w') as out:
                out.write('time,rate_mbit,delay_ms\n')
                out.writelines(f'{when:.4f},{mbit},{delay:.3f}\n' for when,delay in rows)
