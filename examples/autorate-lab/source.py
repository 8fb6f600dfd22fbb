# source.py: whoever connects is sent data without end; whoever sends a datagram, a call of 172 bytes each 20 ms.
import socket,struct,threading,time
def call():
    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',9998)); _,to=s.recvfrom(2000); n=0; due=time.monotonic()
    while True:
        s.sendto(struct.pack('!Qd',n,time.monotonic()).ljust(172,b'.'),to); n+=1; due+=.02
        time.sleep(max(0,due-time.monotonic()))
threading.Thread(target=call,daemon=True).start()
l=socket.socket(); l.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); l.bind(('',9999)); l.listen(9)
def feed(c):
    try:
        while c.send(b'x'*16384): pass
    except OSError: pass
while True: threading.Thread(target=feed,args=(l.accept()[0],),daemon=True).start()
