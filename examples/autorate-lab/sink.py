# sink.py CALL BYTES: CALL gets each packet of the call, with the time it was sent (monotonic, s) and its delay;
# BYTES the bytes of all transfers that had arrived, each 100 ms.
import socket,threading,struct,time,sys
out=open(sys.argv[1],'w',1); total=[0]; lock=threading.Lock()
def call():
    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',9998))
    while True:
        d=s.recv(2000); n,t=struct.unpack('!Qd',d[:16]); out.write(f'{n} {t} {time.monotonic()-t}\n')
def count():
    counts=open(sys.argv[2],'w',1)
    while True:
        counts.write(f'{time.monotonic()} {total[0]}\n'); time.sleep(.1)
for f in call,count: threading.Thread(target=f,daemon=True).start()
l=socket.socket(); l.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); l.bind(('',9999)); l.listen(9)
def eat(c):
    try:
        while n:=len(c.recv(65536)):
            with lock: total[0]+=n
    except OSError: pass
while True: threading.Thread(target=eat,args=(l.accept()[0],),daemon=True).start()
